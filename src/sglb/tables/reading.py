"""A table file as an Arrow table: CSV in whatever spelling, or Parquet, by the file's ending."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from sglb.tables.dates import FORMATS as DATE_FORMATS
from sglb.tables.dialect import Dialect, Layout, find_layout, show
from sglb.tables.encodings import FALLBACK, decode_head, detect_encoding, first_bad_byte
from sglb.tables.errors import TableError
from sglb.tables.numbers import (
    MARKS,
    Values,
    as_numbers,
    has_decimal_commas,
    mark_of,
    may_be_thousands,
    pattern,
)
from sglb.tables.sources import Source

Table = Any  # a pyarrow.Table; pyarrow ships no types

SAMPLE = 1 << 18  # bytes that show how a file is spelled
LEADING_ZERO = "^[+-]?0[0-9]"
# What spreadsheets write before the names: sep=;
SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n')


class TableFile:
    """A table file to read, possibly several times; `notes` says what had to be assumed."""

    def __init__(self, path: Path, dialect: Dialect | None = None) -> None:
        self.source = Source(path)
        self.name = self.source.name
        self.dialect = Dialect() if dialect is None else dialect
        self.notes: list[str] = []
        self.is_text = self.source.format.kind == "text"
        self._skipped = 0  # lines before the names
        self.header: list[str] = []
        try:
            if self.is_text:
                self._detect()
            else:
                with self.source.open() as stream:
                    self.header = pa.parquet.read_schema(stream).names
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from error
        self._check_names(self.header)

    def _detect(self) -> None:
        """Find in the first bytes how the file is spelled, as far as nobody has said it."""
        head = self.source.head(SAMPLE)
        if not head.strip():
            raise TableError(f"{self.name}: the file is empty")
        known = self.dialect.encoding or detect_encoding(head)
        self._knows_encoding, encoding = known is not None, known or "utf-8"
        self.dialect = replace(self.dialect, encoding=encoding)
        if "\ufffd" in decode_head(head, encoding):
            self._change_encoding()
        size = SAMPLE
        layout, notes = self._layout(head, whole=len(head) < size)
        while len(layout.records) == 1 and len(head) == size:  # a very long row of names
            size *= 4
            head = self.source.head(size)
            layout, notes = self._layout(head, whole=len(head) < size)
        self.notes += notes
        self.dialect = replace(self.dialect, separator=layout.separator, quote=layout.quote)
        self._sample = layout.records
        self.header = layout.records[0] if layout.records else []

    def _layout(self, head: bytes, *, whole: bool) -> tuple[Layout, list[str]]:
        text = decode_head(head, str(self.dialect.encoding))
        if stated := SEPARATOR_LINE.match(text):
            self._skipped = 1
            text = text[stated.end() :]
            self.dialect = replace(self.dialect, separator=self.dialect.separator or stated[1])
        return find_layout(text, self.dialect, self.source.format.separator, whole=whole)

    def _change_encoding(self) -> bool:
        """Assume another encoding if bytes break this one; reject them if it is no assumption."""
        encoding = str(self.dialect.encoding)
        bad = first_bad_byte(self.source, encoding)
        if bad is None:
            return False
        if self._knows_encoding or encoding == FALLBACK:
            raise TableError(f"{self.name}: {bad}; --encoding states another encoding")
        if first_bad_byte(self.source, FALLBACK) is not None:
            raise TableError(
                f"{self.name}: {bad}; nor is it {FALLBACK}: state its encoding with --encoding"
            )
        self.notes.append(f"{bad}; {FALLBACK} is assumed: --encoding decides")
        self.dialect = replace(self.dialect, encoding=FALLBACK)
        return True

    @property
    def spelling(self) -> str:
        """What is not as in an ordinary file of its ending, in words."""
        if not self.is_text:
            return ""
        dialect, words = self.dialect, []
        if dialect.separator is not None and dialect.separator != self.source.format.separator:
            words.append(f"separator {show(dialect.separator)}")
        if dialect.quote not in ('"', None):
            words.append("no quotes" if dialect.quote == "none" else f"quote {dialect.quote}")
        if dialect.decimal == ",":
            words.append("decimal comma")
        if dialect.encoding != "utf-8":
            words.append(str(dialect.encoding))
        return ", ".join(words)

    def read(
        self, text: Sequence[str] = (), *, only: Sequence[str] | None = None, dates: bool = False
    ) -> Table:
        """Read the table; columns without any value become floats, all missing.

        The columns `text` of a CSV file are text even if all of it looks like numbers. With `dates`
        dates in other spellings than ISO 8601 are dates, too.
        """
        try:
            if not self.is_text:
                with self.source.open() as stream:
                    table = pa.parquet.read_table(stream, columns=only)
                return _without(_filled(table), self.dialect.missing)
            table = self._parse(text, only, dates)
            self.header = self.header or table.column_names
            table = self._read_decimals(table, text, lambda: self._parse(text, only, dates))
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from error
        return _filled(table)

    def as_written(self, names: Sequence[str]) -> Table:
        """Return columns as they stand in the file: those of a text file as text."""
        if not self.is_text:
            return self.read(only=names)
        try:
            return self._parse(names, names, False, missing=False)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from error

    def read_names(self, names: Sequence[str], *, dates: bool = False) -> Table:
        """Read a table some of whose numbers are names: with a leading zero all are text."""
        table = self.read(dates=dates)
        numbers = [name for name in names if name in table.column_names]
        numbers = [name for name in numbers if name not in text_columns(table)]
        if not numbers or not self.is_text:
            return table
        as_text = self.read(numbers, only=numbers)
        for name in numbers:
            cells = as_text.column(name)
            if pc.any(pc.match_substring_regex(cells, LEADING_ZERO)).as_py():
                table = table.set_column(table.column_names.index(name), name, cells)
        return table

    def leading_zeros(self) -> dict[str, str]:
        """Return columns some of whose first values are whole numbers with a leading zero."""
        found = {}
        for place, name in enumerate(self.header):
            cells = [row[place] for row in self._sample[1:] if len(row) > place]
            zero = [cell for cell in cells if cell.isdigit() and len(cell) > 1 and cell[0] == "0"]
            if zero and all(cell.isdigit() or not cell for cell in cells):
                found[name] = zero[0]
        return found

    def _parse(
        self, text: Sequence[str], only: Sequence[str] | None, dates: bool, *, missing: bool = True
    ) -> Table:
        """Parse a text file in its dialect."""
        try:
            table = self._parse_once(text, only, dates, missing)
        except (UnicodeDecodeError, pa.ArrowInvalid):
            if not self._change_encoding():
                raise
        else:
            # Arrow takes text of another encoding for bytes.
            if not any(pa.types.is_binary(kind) for kind in table.schema.types):
                return table
            self._change_encoding()
        return self._parse_once(text, only, dates, missing)

    def _parse_once(
        self, text: Sequence[str], only: Sequence[str] | None, dates: bool, missing: bool
    ) -> Table:
        dialect = self.dialect
        options: dict[str, Any] = {}
        if dates or dialect.date_formats:
            spellings = (*dialect.date_formats, pa.csv.ISO8601, *DATE_FORMATS)
            options["timestamp_parsers"] = list(spellings)
        nulls = pa.csv.ConvertOptions().null_values
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()),
            include_columns=list(only or ()),
            # An empty field is missing in a column of text, too, as it is in other files.
            strings_can_be_null=missing,
            null_values=[*nulls, *dialect.missing],
            decimal_point=dialect.decimal or ".",
            **options,
        )
        encoding = "utf8" if dialect.encoding == "utf-8" else dialect.encoding

        def parse(*, use_threads: bool, on_ragged: Any = None) -> Table:
            with self.source.open() as stream:
                return pa.csv.read_csv(
                    stream,
                    read_options=pa.csv.ReadOptions(
                        encoding=encoding, use_threads=use_threads, skip_rows=self._skipped
                    ),
                    parse_options=pa.csv.ParseOptions(
                        delimiter=dialect.separator,
                        quote_char=False if dialect.quote == "none" else dialect.quote,
                        newlines_in_values=True,
                        invalid_row_handler=on_ragged,
                    ),
                    convert_options=convert,
                )

        ragged: list[Any] = []

        def remember(row: Any) -> str:
            ragged.append(row)
            return "error"

        try:
            table = parse(use_threads=True, on_ragged=remember)
        except pa.ArrowInvalid as error:
            if not ragged:
                raise
            ragged.clear()
            try:  # rows have numbers only in a single thread
                parse(use_threads=False, on_ragged=remember)
            except pa.ArrowInvalid:
                raise self._ragged(ragged[0]) from error
            raise
        return table

    def _read_decimals(self, table: Table, text: Sequence[str], again: Any) -> Table:
        """Read numbers with decimal commas and thousands separators as numbers."""
        dialect = self.dialect
        loose = {name: table.column(name) for name in text_columns(table) if name not in text}
        if dialect.decimal is None and dialect.separator != "," and self._finds_commas(loose):
            self.dialect = dialect = replace(dialect, decimal=",")
            with_points, table = table, again()
            for place, name in enumerate(table.column_names):
                points = with_points.column(place)
                if not pa.types.is_floating(points.type) or name not in text_columns(table):
                    continue
                values = Values.of(table.column(place))
                if mark_of(values, ",", (".",)) is None:
                    self.notes.append(f"column {name!r} has decimal points, others have commas")
                    table = table.set_column(place, name, points)
                else:
                    shown = values.texts[0].as_py()
                    self.notes.append(
                        f"column {name!r}: the point in {shown!r} is taken to separate thousands,"
                        " because other columns have decimal commas: --decimal decides"
                    )
        marks: tuple[str, ...] = ()
        if dialect.thousands is not None:
            marks = (dialect.thousands,)
        elif dialect.decimal == ",":
            marks = MARKS
        for place, name in enumerate(table.column_names):
            if not marks or name in text or name not in text_columns(table):
                continue
            mark = mark_of(Values.of(table.column(place)), dialect.decimal or ".", marks)
            if mark is not None:
                numbers = as_numbers(table.column(place), dialect.decimal or ".", mark)
                table = table.set_column(place, name, numbers)
        return table

    def _finds_commas(self, columns: dict[str, Any]) -> bool:
        """Tell whether columns of text show that the file has decimal commas."""
        values = {name: Values.of(column) for name, column in columns.items()}
        found = {name: one for name, one in values.items() if has_decimal_commas(one)}
        if any(not may_be_thousands(one) for one in found.values()):
            return True
        if not found or self.dialect.separator != ";":
            return False
        # Programs write semicolons where the comma is taken, by decimals.
        name, one = next(iter(found.items()))
        shown = one.texts.filter(pc.match_substring(one.texts, ","))[0].as_py()
        self.notes.append(
            f"column {name!r}: the comma in {shown!r} is taken for a decimal comma:"
            " --decimal and --thousands decide"
        )
        return True

    def _check_names(self, names: Sequence[str]) -> None:
        """Reject columns of the same name."""
        for name, count in Counter(names).items():
            if count > 1:
                which = f"column {name!r}" if name else "a column without a name"
                raise TableError(f"{self.name}: {which} is there more than once{self.advice}")

    @property
    def advice(self) -> str:
        """What may be wrong if a column is not there, as the end of a message."""
        notes = [note for note in self.notes if "--separator" in note or "--quote" in note]
        if self.is_text and _look_like_data(self.header):
            notes.append(
                "the first row looks like data: the file needs a first row with the columns' names"
            )
        return "".join(f"; {note}" for note in notes)

    def _ragged(self, row: Any) -> TableError:
        return TableError(
            f"{self.name}: row {row.number - 2} has {row.actual_columns} fields where the first"
            f" row has {row.expected_columns} names: {_shortened(row.text)!r}; columns were cut at"
            f" {show(str(self.dialect.separator))} (--separator, --quote)"
        )

    def _unreadable(self, error: BaseException) -> TableError:
        kind = "CSV" if self.is_text else "Parquet"
        words = " ".join(str(error).split()) or type(error).__name__
        if "cannot infer number of columns" in words:  # what Arrow says of a quote left open
            words = "there is no whole row; a quote may be left open (--quote)"
        return TableError(f"{self.name}: cannot be read as {kind}: {words}")


def _look_like_data(header: Sequence[str]) -> bool:
    """Tell whether most names of columns are numbers."""
    names = Values.of(pa.chunked_array([header], pa.string()))
    return any(names.share(pattern(sign, None)) > 0.5 for sign in ".,")


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _filled(table: Table) -> Table:
    """Return the table with columns that hold nothing as floats."""
    for place, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.float64()))
    return table


def _without(table: Table, missing: Sequence[str]) -> Table:
    """Return the table with values that stand for a missing one taken out of columns of text."""
    for name in text_columns(table) if missing else ():
        column = table.column(name)
        known = pc.invert(pc.is_in(column, pa.array(missing, column.type)))
        kept = pc.if_else(known, column, pa.scalar(None, column.type))
        table = table.set_column(table.column_names.index(name), name, kept)
    return table


def text_columns(table: Table) -> list[str]:
    """Return the columns that hold text."""
    kinds = (pa.types.is_string, pa.types.is_large_string)
    return [field.name for field in table.schema if any(is_kind(field.type) for is_kind in kinds)]


def read_table(path: Path, text: Sequence[str] = (), dialect: Dialect | None = None) -> Table:
    """Read a table file; the columns `text` of a CSV file are text whatever they look like."""
    return TableFile(path, dialect).read(text)
