"""Read a table file as an Arrow table: CSV in any common format, or Parquet, by its extension."""

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

from sglb.tables.arrow import ArrowTable
from sglb.tables.dates import FORMATS as DATE_FORMATS
from sglb.tables.dialect import Dialect, Layout, find_layout, show
from sglb.tables.encodings import FALLBACK, decode_head, detect_encoding, first_bad_byte
from sglb.tables.errors import TableError
from sglb.tables.numbers import (
    THOUSANDS,
    Values,
    as_numbers,
    find_thousands,
    has_decimal_commas,
    may_be_thousands,
    number_pattern,
)
from sglb.tables.sources import TableSource

SAMPLE = 1 << 18  # bytes in which the format of a file is detected
LEADING_ZERO = "^[+-]?0[0-9]"
# The line that spreadsheets write before the names: sep=;
SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n')


class TableFile:
    """A table file, which can be read several times; `notes` lists what had to be assumed."""

    def __init__(self, path: Path, dialect: Dialect | None = None) -> None:
        self.source = TableSource(path)
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
            raise self._read_error(error) from error
        self._check_names(self.header)

    def _detect(self) -> None:
        """Detect in the first bytes what the dialect does not state."""
        head = self.source.head(SAMPLE)
        if not head.strip():
            raise TableError(f"{self.name}: the file is empty")
        certain = self.dialect.encoding or detect_encoding(head)
        self._encoding_is_certain, encoding = certain is not None, certain or "utf-8"
        self.dialect = replace(self.dialect, encoding=encoding)
        if "\ufffd" in decode_head(head, encoding):
            self._change_encoding()
        size = SAMPLE
        layout, notes = self._layout(head, complete=len(head) < size)
        while len(layout.records) == 1 and len(head) == size:  # a very long row of names
            size *= 4
            head = self.source.head(size)
            layout, notes = self._layout(head, complete=len(head) < size)
        self.notes += notes
        self.dialect = replace(self.dialect, separator=layout.separator, quote=layout.quote)
        self._sample = layout.records
        self.header = layout.records[0] if layout.records else []

    def _layout(self, head: bytes, *, complete: bool) -> tuple[Layout, list[str]]:
        text = decode_head(head, str(self.dialect.encoding))
        if stated := SEPARATOR_LINE.match(text):
            self._skipped = 1
            text = text[stated.end() :]
            self.dialect = replace(self.dialect, separator=self.dialect.separator or stated[1])
        return find_layout(text, self.dialect, self.source.format.separator, complete=complete)

    def _change_encoding(self) -> bool:
        """Fall back to another encoding if a byte is invalid; reject the file if that fails."""
        encoding = str(self.dialect.encoding)
        bad = first_bad_byte(self.source, encoding)
        if bad is None:
            return False
        if self._encoding_is_certain or encoding == FALLBACK:
            raise TableError(f"{self.name}: {bad}; state its encoding with --encoding")
        if first_bad_byte(self.source, FALLBACK) is not None:
            raise TableError(
                f"{self.name}: {bad}, nor {FALLBACK}; state its encoding with --encoding"
            )
        self.notes.append(f"{bad}; {FALLBACK} is assumed, state it with --encoding")
        self.dialect = replace(self.dialect, encoding=FALLBACK)
        return True

    @property
    def unusual_format(self) -> str:
        """Description of what differs from the usual format of the file's extension."""
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
    ) -> ArrowTable:
        """Read the table; columns without any value become floats, all missing.

        The columns `text` of a CSV file are text even if their values look like numbers. With
        `dates` dates in other formats than ISO 8601 are read as dates, too.
        """
        try:
            if not self.is_text:
                with self.source.open() as stream:
                    table = pa.parquet.read_table(stream, columns=only)
                return _with_missing(_with_empty_as_floats(table), self.dialect.missing)
            table = self._parse(text, only, dates)
            self.header = self.header or table.column_names
            table = self._convert_numbers(table, text, lambda: self._parse(text, only, dates))
        except (pa.ArrowException, OSError) as error:
            raise self._read_error(error) from error
        return _with_empty_as_floats(table)

    def as_written(self, names: Sequence[str]) -> ArrowTable:
        """Return columns exactly as in the file: those of a text file as text."""
        if not self.is_text:
            return self.read(only=names)
        try:
            return self._parse(names, names, False, missing=False)
        except (pa.ArrowException, OSError) as error:
            raise self._read_error(error) from error

    def read_names(self, names: Sequence[str], *, dates: bool = False) -> ArrowTable:
        """Read a table; columns of `names` that hold a number with a leading zero become text."""
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
        """Map columns of whole numbers with leading zeros to the first such value."""
        columns = {}
        for index, name in enumerate(self.header):
            cells = [row[index] for row in self._sample[1:] if len(row) > index]
            zeros = [cell for cell in cells if cell.isdigit() and len(cell) > 1 and cell[0] == "0"]
            if zeros and all(cell.isdigit() or not cell for cell in cells):
                columns[name] = zeros[0]
        return columns

    def _parse(
        self, text: Sequence[str], only: Sequence[str] | None, dates: bool, *, missing: bool = True
    ) -> ArrowTable:
        """Parse a text file in its dialect."""
        try:
            table = self._parse_once(text, only, dates, missing)
        except (UnicodeDecodeError, pa.ArrowInvalid):
            if not self._change_encoding():
                raise
        else:
            # Arrow reads text that is not valid UTF-8 as bytes.
            if not any(pa.types.is_binary(dtype) for dtype in table.schema.types):
                return table
            self._change_encoding()
        return self._parse_once(text, only, dates, missing)

    def _parse_once(
        self, text: Sequence[str], only: Sequence[str] | None, dates: bool, missing: bool
    ) -> ArrowTable:
        dialect = self.dialect
        options: dict[str, Any] = {}
        if dates or dialect.date_formats:
            spellings = (*dialect.date_formats, pa.csv.ISO8601, *DATE_FORMATS)
            options["timestamp_parsers"] = list(spellings)
        nulls = pa.csv.ConvertOptions().null_values
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()),
            include_columns=list(only or ()),
            # An empty field is missing in a column of text, too, as in other columns.
            strings_can_be_null=missing,
            null_values=[*nulls, *dialect.missing],
            decimal_point=dialect.decimal or ".",
            **options,
        )
        encoding = "utf8" if dialect.encoding == "utf-8" else dialect.encoding

        def parse(*, use_threads: bool, on_ragged: Any = None) -> ArrowTable:
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
            try:  # Arrow knows the numbers of rows in a single thread only
                parse(use_threads=False, on_ragged=remember)
            except pa.ArrowInvalid:
                raise self._ragged_error(ragged[0]) from error
            raise
        return table

    def _convert_numbers(
        self, table: ArrowTable, text: Sequence[str], parse_again: Any
    ) -> ArrowTable:
        """Convert text with decimal commas and thousands separators to numbers."""
        dialect = self.dialect
        candidates = {name: table.column(name) for name in text_columns(table) if name not in text}
        if (
            dialect.decimal is None
            and dialect.separator != ","
            and self._has_decimal_commas(candidates)
        ):
            self.dialect = dialect = replace(dialect, decimal=",")
            with_points, table = table, parse_again()
            for index, name in enumerate(table.column_names):
                points = with_points.column(index)
                if not pa.types.is_floating(points.type) or name not in text_columns(table):
                    continue
                values = Values.of(table.column(index))
                if find_thousands(values, ",", (".",)) is None:
                    self.notes.append(f"column {name!r} has decimal points, others have commas")
                    table = table.set_column(index, name, points)
                else:
                    shown = values.texts[0].as_py()
                    self.notes.append(
                        f"column {name!r}: the point in {shown!r} is assumed to separate thousands,"
                        " because other columns have decimal commas; state it with --decimal"
                    )
        separators: tuple[str, ...] = ()
        if dialect.thousands is not None:
            separators = (dialect.thousands,)
        elif dialect.decimal == ",":
            separators = THOUSANDS
        for index, name in enumerate(table.column_names):
            if not separators or name in text or name not in text_columns(table):
                continue
            thousands = find_thousands(
                Values.of(table.column(index)), dialect.decimal or ".", separators
            )
            if thousands is not None:
                numbers = as_numbers(table.column(index), dialect.decimal or ".", thousands)
                table = table.set_column(index, name, numbers)
        return table

    def _has_decimal_commas(self, columns: dict[str, Any]) -> bool:
        """Whether columns of text show that the file has decimal commas."""
        values = {name: Values.of(column) for name, column in columns.items()}
        with_commas = {name: v for name, v in values.items() if has_decimal_commas(v)}
        if any(not may_be_thousands(v) for v in with_commas.values()):
            return True
        if not with_commas or self.dialect.separator != ";":
            return False
        # Programs separate by semicolons where the comma is the decimal sign.
        name, first = next(iter(with_commas.items()))
        shown = first.texts.filter(pc.match_substring(first.texts, ","))[0].as_py()
        self.notes.append(
            f"column {name!r}: the comma in {shown!r} is assumed to be a decimal comma;"
            " state it with --decimal or --thousands"
        )
        return True

    def _check_names(self, names: Sequence[str]) -> None:
        """Reject columns of the same name."""
        for name, count in Counter(names).items():
            if count > 1:
                column = f"column {name!r}" if name else "a column without a name"
                raise TableError(f"{self.name}: {column} occurs more than once{self.advice}")

    @property
    def advice(self) -> str:
        """What may be wrong if a column does not exist, as the end of a message."""
        notes = [note for note in self.notes if "--separator" in note or "--quote" in note]
        if self.is_text and _looks_like_data(self.header):
            notes.append(
                "the first row looks like data: the file needs a first row with the columns' names"
            )
        return "".join(f"; {note}" for note in notes)

    def _ragged_error(self, row: Any) -> TableError:
        return TableError(
            f"{self.name}: row {row.number - 2} has {row.actual_columns} fields where the first"
            f" row has {row.expected_columns} names: {_shortened(row.text)!r}; the separator is"
            f" {show(str(self.dialect.separator))} (--separator, --quote)"
        )

    def _read_error(self, error: BaseException) -> TableError:
        format_name = "CSV" if self.is_text else "Parquet"
        words = " ".join(str(error).split()) or type(error).__name__
        if "cannot infer number of columns" in words:  # Arrow's message for an open quote
            words = "there is no complete row; a quote may not be closed (--quote)"
        return TableError(f"{self.name}: cannot be read as {format_name}: {words}")


def _looks_like_data(header: Sequence[str]) -> bool:
    """Whether most names of columns are numbers."""
    names = Values.of(pa.chunked_array([header], pa.string()))
    return any(names.share(number_pattern(decimal, None)) > 0.5 for decimal in ".,")


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _with_empty_as_floats(table: ArrowTable) -> ArrowTable:
    """Return the table with columns without any value as floats."""
    for index, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.float64()))
    return table


def _with_missing(table: ArrowTable, values_to_drop: Sequence[str]) -> ArrowTable:
    """Return the table with these values of text columns replaced by missing values."""
    for name in text_columns(table) if values_to_drop else ():
        column = table.column(name)
        present = pc.invert(pc.is_in(column, pa.array(values_to_drop, column.type)))
        values = pc.if_else(present, column, pa.scalar(None, column.type))
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def text_columns(table: ArrowTable) -> list[str]:
    """Return the names of the columns of text."""
    is_text = (pa.types.is_string, pa.types.is_large_string)
    return [field.name for field in table.schema if any(check(field.type) for check in is_text)]


def read_table(path: Path, text: Sequence[str] = (), dialect: Dialect | None = None) -> ArrowTable:
    """Read a table file; the columns `text` of a CSV file are read as text."""
    return TableFile(path, dialect).read(text)
