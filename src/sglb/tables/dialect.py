"""How a text file spells a table: what stands between its columns, around text and in numbers.

What is not stated is found in the first rows. The ordinary spelling of a file's ending, a comma
in .csv and a tab in .tsv with double quotes, wins wherever it fits.
"""

import csv
import io
from dataclasses import dataclass

from sglb.tables.encodings import known_encoding
from sglb.tables.errors import TableError

SEPARATORS = (",", ";", "\t", "|")
QUOTES = ('"', "'")
NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}


@dataclass(frozen=True)
class Dialect:
    """A spelling of tables; None stands for what a file shows by itself."""

    separator: str | None = None
    quote: str | None = None  # "none" if quotes are characters like others
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()  # besides the usual ones
    date_formats: tuple[str, ...] = ()  # besides ISO 8601

    def __post_init__(self) -> None:
        for name in ("separator", "decimal", "thousands"):
            sign = getattr(self, name)
            if sign is not None:
                object.__setattr__(self, name, NAMES.get(sign, sign))
        if self.quote != "none":
            _check_sign("quote", self.quote)
        _check_sign("separator", self.separator)
        _check_sign("thousands", self.thousands)
        if self.separator is not None and self.separator == self.quote:
            raise TableError(f"--separator and --quote are both {self.separator!r}")
        if self.thousands is not None and (self.thousands.isalnum() or self.thousands in "+-"):
            raise TableError(f"--thousands {self.thousands!r} cannot stand within a number")
        if self.decimal not in (None, ".", ","):
            raise TableError(f"--decimal must be '.' or ',', got {self.decimal!r}")
        if self.thousands in (".", ",") and self.decimal is None:
            object.__setattr__(self, "decimal", "," if self.thousands == "." else ".")
        if self.thousands is not None and self.thousands == self.decimal:
            raise TableError(f"--thousands and --decimal are both {self.decimal!r}")
        if self.encoding is not None:
            object.__setattr__(self, "encoding", known_encoding(self.encoding))


def _check_sign(name: str, sign: str | None) -> None:
    """Reject what is not one character, in the file one byte."""
    if sign is None or (len(sign) == 1 and (sign.isascii() or name == "thousands")):
        return
    known = {"separator": ", ';', tab or '|'", "quote": '"\', "\'" or none'}.get(name, "")
    advice = f", for example {known.removeprefix(', ')}" if known else ""
    raise TableError(f"--{name} must be one character{advice}; got {sign!r}")


@dataclass(frozen=True)
class Layout:
    """One way to cut the first characters of a file into fields."""

    separator: str
    quote: str
    records: list[list[str]]

    @property
    def width(self) -> int:
        """Fields of every record, 0 if records differ."""
        widths = {len(record) for record in self.records}
        return widths.pop() if len(widths) == 1 else 0


def cut(text: str, separator: str, quote: str, *, whole: bool) -> Layout:
    """Cut text into records of fields; the last record may be incomplete unless it is `whole`."""
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
    return Layout(separator, quote, records if whole or len(records) < 2 else records[:-1])


def find_layout(
    text: str, dialect: Dialect, preferred: str, *, whole: bool
) -> tuple[Layout, list[str]]:
    """Return how a file is cut into fields, and what had to be assumed, as lines to print."""
    separators = [preferred, *(sign for sign in SEPARATORS if sign != preferred)]
    if dialect.separator is not None:
        separators = [dialect.separator]
    for quote in QUOTES if dialect.quote is None else (dialect.quote,):
        layouts = [cut(text, sign, quote, whole=whole) for sign in separators]
        fitting = [layout for layout in layouts if layout.width > 1]
        if dialect.quote is None and quote == "'":  # only if the file cannot be cut without them
            fitting = [
                layout
                for layout in fitting
                if not cut(text, layout.separator, "none", whole=whole).width
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
                f"{show(chosen.separator)} is taken to separate columns, {' or '.join(others)}"
                " would fit, too: --separator decides"
            )
        if dialect.quote is None:
            notes += _single_quotes(chosen)
        return chosen, notes
    return cut(text, separators[0], dialect.quote or QUOTES[0], whole=whole), []


def _single_quotes(layout: Layout) -> list[str]:
    """Return a line on the first column whose values all stand in single quotes."""
    if layout.quote == "'":
        return ["single quotes are taken to stand around text: --quote decides"]
    header, *rows = layout.records
    for place, name in enumerate(header):
        values = [row[place] for row in rows if row[place]]
        if values and all(len(v) > 1 and v[0] == v[-1] == "'" for v in values):
            words = 'keeps the single quotes around its values: --quote "\'" removes them'
            return [f"column {name!r} {words}"]
    return []


def show(sign: str) -> str:
    """Return a sign as it is printed."""
    return "tab" if sign == "\t" else repr(sign)
