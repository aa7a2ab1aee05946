"""Turn a column of dates into columns of its parts, `when.year`, `when.month`, ...

The names of the parts say how to compute them, so a model needs to remember nothing else.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sglb.tables.arrow import ArrowColumn, ArrowTable
from sglb.tables.errors import TableError

# Monday is 1. A date has the hour 0; the year of a time is missing.
PARTS: dict[str, Callable[[ArrowColumn], ArrowColumn]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "weekday": lambda column: pc.day_of_week(column, count_from_zero=False, week_start=1),
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
TIME_PARTS = ("hour", "minute", "second")

# Formats that are read as dates besides ISO 8601: points after day and month are unambiguous.
FORMATS = ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S")
READ_AS_DATES = r"^\s*(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4})"
# Text that looks like a date in any format.
LOOKS_LIKE_DATES = (
    r"^\s*(?:[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})\b"
)


def is_date(dtype: Any) -> bool:
    """Whether a column's type is a date, a time or both."""
    return bool(pa.types.is_date(dtype) or pa.types.is_timestamp(dtype) or pa.types.is_time(dtype))


def looks_like_dates(column: ArrowColumn) -> bool:
    """Whether every value of a column of text looks like a date in any format."""
    values = column.drop_null()
    return bool(len(values) and pc.all(pc.match_substring_regex(values, LOOKS_LIKE_DATES)).as_py())


def part_of(column: ArrowColumn, part: str) -> ArrowColumn:
    """Return a part, such as the year, of a column of dates as numbers."""
    dtype = column.type
    if pa.types.is_time(dtype) and part not in TIME_PARTS:
        return pa.chunked_array([pa.nulls(len(column), pa.float64())])
    if pa.types.is_date(dtype):
        column = column.cast(pa.timestamp("s"))
    return PARTS[part](column).cast(pa.int32())


def split_dates(
    table: ArrowTable, keep: Sequence[str | None] = ()
) -> tuple[ArrowTable, dict[str, list[str]]]:
    """Replace columns of dates, except those to keep, by their parts that vary.

    Return the table and the names of the parts of each column, which may be none.
    """
    parts: dict[str, list[str]] = {}
    for name in [field.name for field in table.schema if is_date(field.type)]:
        if name in keep:
            continue
        column, index = table.column(name), table.column_names.index(name)
        _check_years(column, name)
        table, parts[name] = table.remove_column(index), []
        for part in PARTS:
            values = part_of(column, part)
            if pc.count_distinct(values).as_py() < 2:
                continue
            part_name = f"{name}.{part}"
            if part_name in table.column_names:
                raise TableError(
                    f"column {part_name!r} already exists, but the parts of {name!r} need it"
                )
            table = table.add_column(index + len(parts[name]), part_name, values)
            parts[name].append(part)
    return table, parts


def _check_years(column: ArrowColumn, name: str) -> None:
    """Reject years of two digits, which are read as years of the first century."""
    if pa.types.is_time(column.type):
        return
    first = pc.min(pc.year(column)).as_py()
    if first is not None and first < 100:
        raise TableError(
            f"column {name!r} has dates in the year {first}: years of two digits need"
            " --date-format, for example '%d.%m.%y'"
        )


def sources_of(names: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """Map each of `names` that is a part of dates, and not a column itself, to its column."""
    sources = {}
    for name in names:
        stem, _, part = name.rpartition(".")
        if name not in columns and part in PARTS and stem in columns:
            sources[name] = stem
    return sources


def describe_column(name: str) -> str:
    """Return a column's name and, if it may be a part of dates, which part of which column."""
    stem, _, part = name.rpartition(".")
    origin = f" (the {part} of a column of dates {stem!r})" if stem and part in PARTS else ""
    return f"{name!r}{origin}"


def add_parts(table: ArrowTable, names: Sequence[str]) -> ArrowTable:
    """Add those of `names` that are parts of dates and that the table does not have."""
    for name, stem in sources_of(names, table.column_names).items():
        column = table.column(stem)
        if column.null_count == len(column):
            values = pa.chunked_array([pa.nulls(len(column), pa.float64())])
        elif is_date(column.type):
            _check_years(column, stem)
            values = part_of(column, name.rpartition(".")[2])
        else:
            raise _not_dates(column, name, stem)
        table = table.append_column(name, values)
    return table


def _not_dates(column: ArrowColumn, name: str, stem: str) -> TableError:
    """Return the error that names the first value of a column that is not a date."""
    row = 0
    if pa.types.is_string(column.type):
        wrong = pc.invert(pc.match_substring_regex(column, READ_AS_DATES))
        row = max(0, pc.index(wrong, pa.scalar(True)).as_py())
    return TableError(
        f"column {stem!r}, the source of {name!r}, must hold dates; row {row} has"
        f" {column[row].as_py()!r} (--date-format states the format of dates)"
    )
