"""Displays of progress: lines, a bar in a terminal, a bar in a notebook."""

import html
import sys
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Report:
    """What a display shows: `remaining` seconds, and the `reason` if the chain ended early."""

    step: int
    n_steps: int
    scores: str
    elapsed: float
    remaining: float
    reason: str | None = None

    @property
    def times(self) -> str:
        """Elapsed and remaining time."""
        elapsed = "" if self._is_last else f"{duration(self.elapsed)} elapsed, "
        return elapsed + self.time_left

    @property
    def time_left(self) -> str:
        """Remaining time; at the end, elapsed time."""
        if self._is_last:
            return f"{duration(self.elapsed)} in all"
        return f"{duration(self.remaining)} left"

    @property
    def _is_last(self) -> bool:
        return self.step == self.n_steps or self.reason is not None

    @property
    def end(self) -> str:
        """A sentence with the reason of an early end."""
        return f"stopped after step {self.step}/{self.n_steps}: {self.reason}"


def duration(seconds: float) -> str:
    """Return a time in words, with two significant digits."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min"


class Display(Protocol):
    """Shows reports; `interval` is the time between two of them, in seconds."""

    interval: float

    def show(self, report: Report) -> None:
        """Show a report, replacing the previous one where possible."""
        ...

    def close(self) -> None:
        """Release what the display holds."""
        ...


class Lines:
    """One line on stderr per report, flushed at once."""

    interval = 5.0

    def __init__(self) -> None:
        self._step: int | None = None

    def show(self, report: Report) -> None:
        """Print a line, once per step, and the reason of an early end."""
        if report.step != self._step:
            self._step = report.step
            step = f"{report.step:{len(str(report.n_steps))}}/{report.n_steps}"
            say(f"step {step}  {report.scores}  {report.times}")
        if report.reason is not None:
            say(report.end)

    def close(self) -> None:
        """Do nothing: lines hold nothing."""


def say(text: str) -> None:
    """Print a line on stderr."""
    if sys.stderr is not None:  # None in a program without a console
        print(f"sglb: {text}", file=sys.stderr, flush=True)


class TerminalBar:
    """A progress bar of rich on stderr."""

    interval = 0.1

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._end: str | None = None

    @classmethod
    def open(cls, n_steps: int) -> "TerminalBar | None":
        """Return a running bar; None without rich, or while another bar uses the terminal."""
        try:
            from rich.console import Console
            from rich.errors import LiveError
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
            from rich.table import Column
        except ImportError:
            return None
        console = Console(stderr=True)
        # rich can be told to treat a log file as a terminal, where each frame would be a line.
        is_terminal = sys.stderr is not None and sys.stderr.isatty() and console.is_terminal
        if not is_terminal or console.is_dumb_terminal:
            return None
        bar = Progress(
            BarColumn(bar_width=20),
            # In a narrow terminal the other columns shrink.
            MofNCompleteColumn(table_column=Column(min_width=2 * len(str(n_steps)) + 1)),
            TextColumn("{task.fields[scores]}", markup=False),
            TextColumn("{task.fields[time_left]}", markup=False, style="progress.remaining"),
            console=console,
        )
        bar.add_task("steps", total=n_steps, scores="", time_left="")
        try:
            bar.start()
        except LiveError:
            return None
        return cls(bar)

    def show(self, report: Report) -> None:
        """Move the bar."""
        self._bar.update(
            self._bar.task_ids[0],
            completed=report.step,
            scores=report.scores,
            time_left=report.time_left,
        )
        self._end = None if report.reason is None else report.end

    def close(self) -> None:
        """Stop the bar, and print below it why the chain ended early."""
        self._bar.stop()
        if self._end is not None:
            say(self._end)


class NotebookBar:
    """A bar in the output of a notebook's cell, plain HTML that each report replaces."""

    interval = 0.2

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    @classmethod
    def open(cls) -> "NotebookBar | None":
        """Return a bar that is not shown yet; None outside a notebook."""
        if "IPython" not in sys.modules:  # a notebook's kernel imports it
            return None
        from IPython import get_ipython
        from IPython.display import display

        # The shell of a terminal has no kernel, and cannot show HTML.
        return None if getattr(get_ipython(), "kernel", None) is None else cls(display)

    def show(self, report: Report) -> None:
        """Update the bar; the first time, add it below the output of the cell."""
        data = {"text/html": _as_html(report), "text/plain": _as_text(report)}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def close(self) -> None:
        """Do nothing: the output of a cell stays."""


def _as_text(report: Report) -> str:
    text = f"step {report.step}/{report.n_steps}  {report.scores}  {report.times}"
    return text if report.reason is None else f"{text}\n{report.end}"


def _as_html(report: Report) -> str:
    line = f"{report.step}/{report.n_steps} &ensp; {_escaped(report.scores)} &ensp; {report.times}"
    end = "" if report.reason is None else f"<br>{_escaped(report.end)}"
    return (
        '<div style="font-family: monospace; font-size: 90%">'
        f'<progress value="{report.step}" max="{report.n_steps}" style="vertical-align: middle; '
        f'width: 16em"></progress> &ensp; {line}{end}</div>'
    )


def _escaped(text: str) -> str:
    return html.escape(text).replace("  ", " &ensp; ")


def open_display(n_steps: int) -> Display:
    """Return a bar in a notebook or terminal, else lines."""
    return NotebookBar.open() or TerminalBar.open(n_steps) or Lines()
