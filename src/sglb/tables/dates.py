"""Dates as numbers: a column of dates becomes columns of its parts, `when.year`, `when.month`, ...

The names of the parts are all that has to be remembered: from them the parts are made again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sglb.tables.errors import TableError

Table = Any
Column = Any

# Monday is 1. What a column does not hold, the hour of a date, is 0; a time has no year.
PARTS: dict[str, Callable[[Column], Column]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "weekday": lambda column: pc.day_of_week(column, count_from_zero=False, week_start=1),
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
OF_TIME = ("hour", "minute", "second")

# Spellings that are read as dates besides ISO 8601; a point after the day leaves no doubt.
FORMATS = ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S")
READ_AS_DATES = r"^\s*(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4})"
# Text that looks like dates in some spelling.
LOOKS_LIKE_DATES = (
    r"^\s*(?:[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})\b"
)


def is_date(kind: Any) -> bool:
    """Tell whether a column's type is a date, a time or both."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def looks_like_dates(column: Column) -> bool:
    """Tell whether every value of a column of text looks like a date in some spelling."""
    values = column.drop_null()
    return bool(len(values) and pc.all(pc.match_substring_regex(values, LOOKS_LIKE_DATES)).as_py())


def part_of(column: Column, part: str) -> Column:
    """Return one part of a column of dates as numbers."""
    kind = column.type
    if pa.types.is_time(kind) and part not in OF_TIME:
        return pa.chunked_array([pa.nulls(len(column), pa.float64())])
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("s"))
    return PARTS[part](column).cast(pa.int32())


def split_dates(
    table: Table, keep: Sequence[str | None] = ()
) -> tuple[Table, dict[str, list[str]]]:
    """Put the parts that vary in place of every column of dates but those to keep.

    Return the table and the parts of each column; a column may have none.
    """
    parts: dict[str, list[str]] = {}
    for name in [field.name for field in table.schema if is_date(field.type)]:
        if name in keep:
            continue
        column, place = table.column(name), table.column_names.index(name)
        _check_years(column, name)
        table, parts[name] = table.remove_column(place), []
        for part in PARTS:
            values = part_of(column, part)
            if pc.count_distinct(values).as_py() < 2:
                continue
            made = f"{name}.{part}"
            if made in table.column_names:
                raise TableError(f"column {made!r} is there already: the parts of {name!r} need it")
            table = table.add_column(place + len(parts[name]), made, values)
            parts[name].append(part)
    return table, parts


def _check_years(column: Column, name: str) -> None:
    """Reject years of two digits, which are read as those of the first century."""
    if pa.types.is_time(column.type):
        return
    first = pc.min(pc.year(column)).as_py()
    if first is not None and first < 100:
        raise TableError(
            f"column {name!r} has dates in the year {first}: years of two digits need"
            " --date-format, for example '%d.%m.%y'"
        )


def sources_of(names: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """Return the columns of dates behind those of the names that are not columns themselves."""
    found = {}
    for name in names:
        stem, _, part = name.rpartition(".")
        if name not in columns and part in PARTS and stem in columns:
            found[name] = stem
    return found


def described(name: str) -> str:
    """Return a column's name and, if it may be a part of dates, what it would be made of."""
    stem, _, part = name.rpartition(".")
    made = f" (the {part} of a column of dates {stem!r})" if stem and part in PARTS else ""
    return f"{name!r}{made}"


def add_parts(table: Table, names: Sequence[str]) -> Table:
    """Add the parts of dates that `names` speaks of and the table does not hold."""
    for name, stem in sources_of(names, table.column_names).items():
        column = table.column(stem)
        if column.null_count == len(column):
            values = pa.chunked_array([pa.nulls(len(column), pa.float64())])
        elif is_date(column.type):
            _check_years(column, stem)
            values = part_of(column, name.rpartition(".")[2])
        else:
            raise _no_dates(column, name, stem)
        table = table.append_column(name, values)
    return table


def _no_dates(column: Column, name: str, stem: str) -> TableError:
    """Return the error that names the first value of a column that is no date."""
    row = 0
    if pa.types.is_string(column.type):
        wrong = pc.invert(pc.match_substring_regex(column, READ_AS_DATES))
        row = max(0, pc.index(wrong, pa.scalar(True)).as_py())
    return TableError(
        f"column {stem!r}, the source of {name!r}, must hold dates; row {row} has"
        f" {column[row].as_py()!r} (--date-format says how dates are spelled)"
    )
