"""The format of a text table: separator, quotes, decimal sign and so on, stated or detected.

What is not stated is detected in the first rows. The usual format of a file's extension, a comma
in .csv and a tab in .tsv with double quotes, is preferred wherever it fits.
"""

import csv
import io
from dataclasses import dataclass

from sglb.tables.encodings import canonical_encoding
from sglb.tables.errors import TableError

SEPARATORS = (",", ";", "\t", "|")
QUOTES = ('"', "'")
NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}


@dataclass(frozen=True)
class Dialect:
    """The format of a text table; None means that it is detected."""

    separator: str | None = None
    quote: str | None = None  # "none" if quotes are ordinary characters
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()  # besides the usual values
    date_formats: tuple[str, ...] = ()  # besides ISO 8601

    def __post_init__(self) -> None:
        for name in ("separator", "decimal", "thousands"):
            character = getattr(self, name)
            if character is not None:
                object.__setattr__(self, name, NAMES.get(character, character))
        if self.quote != "none":
            _check_character("quote", self.quote)
        _check_character("separator", self.separator)
        _check_character("thousands", self.thousands)
        if self.separator is not None and self.separator == self.quote:
            raise TableError(f"--separator and --quote are both {self.separator!r}")
        if self.thousands is not None and (self.thousands.isalnum() or self.thousands in "+-"):
            raise TableError(f"--thousands {self.thousands!r} cannot separate digits")
        if self.decimal not in (None, ".", ","):
            raise TableError(f"--decimal must be '.' or ',', got {self.decimal!r}")
        if self.thousands in (".", ",") and self.decimal is None:
            object.__setattr__(self, "decimal", "," if self.thousands == "." else ".")
        if self.thousands is not None and self.thousands == self.decimal:
            raise TableError(f"--thousands and --decimal are both {self.decimal!r}")
        if self.encoding is not None:
            object.__setattr__(self, "encoding", canonical_encoding(self.encoding))


def _check_character(name: str, character: str | None) -> None:
    """Reject anything but a single character that is a single byte in the file."""
    if character is None or (len(character) == 1 and (character.isascii() or name == "thousands")):
        return
    examples = {"separator": ", ';', tab or '|'", "quote": '"\', "\'" or none'}.get(name, "")
    advice = f", for example {examples.removeprefix(', ')}" if examples else ""
    raise TableError(f"--{name} must be one character{advice}; got {character!r}")


@dataclass(frozen=True)
class Layout:
    """A way to split the first characters of a file into fields."""

    separator: str
    quote: str
    records: list[list[str]]

    @property
    def width(self) -> int:
        """Number of fields of every record, 0 if records differ."""
        widths = {len(record) for record in self.records}
        return widths.pop() if len(widths) == 1 else 0


def split_records(text: str, separator: str, quote: str, *, complete: bool) -> Layout:
    """Split text into records of fields; drop the last one unless the text is `complete`."""
    reader = csv.reader(
        io.StringIO(text, newline=None),
        delimiter=separator,
        quotechar=None if quote == "none" else quote,
        quoting=csv.QUOTE_NONE if quote == "none" else csv.QUOTE_MINIMAL,
    )
    try:
        records = [record for record in reader if record]
    except csv.Error:  # a field longer than the module allows
        return Layout(separator, quote, [])
    return Layout(separator, quote, records if complete or len(records) < 2 else records[:-1])


def find_layout(
    text: str, dialect: Dialect, preferred: str, *, complete: bool
) -> tuple[Layout, list[str]]:
    """Return how a file is split into fields, and notes on what had to be assumed."""
    separators = [preferred, *(s for s in SEPARATORS if s != preferred)]
    if dialect.separator is not None:
        separators = [dialect.separator]
    for quote in QUOTES if dialect.quote is None else (dialect.quote,):
        layouts = [split_records(text, s, quote, complete=complete) for s in separators]
        fitting = [layout for layout in layouts if layout.width > 1]
        if dialect.quote is None and quote == "'":  # only if the file cannot be split without them
            fitting = [
                layout
                for layout in fitting
                if not split_records(text, layout.separator, "none", complete=complete).width
            ]
        if not fitting:
            continue
        chosen = fitting[0]
        if chosen.separator != preferred:
            chosen = max(fitting, key=lambda layout: layout.width)
        notes = []
        others = [show(layout.separator) for layout in fitting if layout is not chosen]
        if others:
            notes.append(
                f"{show(chosen.separator)} is assumed to separate columns, {' or '.join(others)}"
                " would also fit; state it with --separator"
            )
        if dialect.quote is None:
            notes += _single_quotes(chosen)
        return chosen, notes
    quote = dialect.quote or QUOTES[0]
    return split_records(text, separators[0], quote, complete=complete), []


def _single_quotes(layout: Layout) -> list[str]:
    """Return a note on the first column whose values are all in single quotes."""
    if layout.quote == "'":
        return ["single quotes are assumed to enclose text; state them with --quote"]
    header, *rows = layout.records
    for index, name in enumerate(header):
        values = [row[index] for row in rows if row[index]]
        if values and all(len(v) > 1 and v[0] == v[-1] == "'" for v in values):
            words = 'keeps the single quotes around its values: --quote "\'" removes them'
            return [f"column {name!r} {words}"]
    return []


def show(character: str) -> str:
    """Return a character as messages print it."""
    return "tab" if character == "\t" else repr(character)
