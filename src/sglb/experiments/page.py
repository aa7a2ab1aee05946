"""Report experiments: headings, tables and text, on a terminal or between marks of a page."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sglb.files import whole_file

# Width of the widest table in characters.
WIDTH = 130


def console() -> Console:
    """Return a console that prints names unchanged, without markup or wrapping."""
    out = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
    out.width = max(out.width, WIDTH)
    return out


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr; yield a function that sets the number of finished parts."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


@dataclass(frozen=True)
class _Grid:
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class PageReport:
    """A report: its parts in the order in which they were added."""

    parts: list[tuple[str, str] | _Grid] = field(default_factory=list)

    def heading(self, words: str) -> None:
        """Start a section."""
        self.parts.append(("heading", words))

    def text(self, words: str) -> None:
        """Add a paragraph."""
        self.parts.append(("text", words))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table: first column flush left, the others flush right."""
        wrong = [row for row in rows if len(row) != len(columns)]
        if wrong:
            raise ValueError(f"a row must have {len(columns)} cells: {wrong[0]}")
        self.parts.append(_Grid(columns, rows))

    def print(self, out: Console) -> None:
        """Print the report to a terminal."""
        for part in self.parts:
            if isinstance(part, _Grid):
                table = Table(header_style="bold")
                for index, name in enumerate(part.columns):
                    table.add_column(name, justify="right" if index else "left")
                for row in part.rows:
                    table.add_row(*(cell.replace("**", "") for cell in row))
                out.print(table)
            elif part[0] == "heading":
                out.print(f"\n{part[1]}", style="bold")
            else:
                out.print(part[1])

    def markdown(self) -> str:
        """Return the report as Markdown."""
        lines: list[str] = []
        for part in self.parts:
            if isinstance(part, _Grid):
                lines.append("| " + " | ".join(part.columns) + " |")
                lines.append("|---" + "|--:" * (len(part.columns) - 1) + "|")
                lines += ["| " + " | ".join(row) + " |" for row in part.rows]
            elif part[0] == "heading":
                lines.append(f"### {part[1]}")
            else:
                lines.append(part[1])
            lines.append("")
        return "\n".join(lines).rstrip()


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def check_page(page: Path, name: str) -> str:
    """Return the text of a page; reject a page without the marks of `name`, before the work."""
    begin, end = _marks(name)
    try:
        text = page.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"{page}: no such page to write to") from None
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"{page} has no marks {begin} and {end} to write between")
    return text


def write_section(page: Path, name: str, text: str) -> None:
    """Write `text` between the marks `<!-- name -->` and `<!-- end of name -->` of a page."""
    begin, end = _marks(name)
    head, rest = check_page(page, name).split(begin)
    tail = rest.split(end)[1]
    with whole_file(page) as draft:
        draft.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")
