"""How train uses each column: number, category, date, target, weight, or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.table import Table

from sglb.tables import (
    ArrowTable,
    TableError,
    TableFile,
    find_non_number,
    is_date,
    looks_like_dates,
    text_columns,
)

# More columns than this are grouped by role.
MOST_LINES = 30
# Characters for the names beside a role, so that a line has less than 80.
MOST_CHARACTERS = 48


@dataclass(frozen=True)
class Role:
    """How a column is used."""

    column: str
    kind: str
    detail: str = ""


def roles_of(
    table: ArrowTable,
    *,
    target: str,
    weight: str | None,
    drop: Sequence[str],
    categorical: Sequence[str],
    dates: Mapping[str, Sequence[str]],
) -> list[Role]:
    """Return the role of each column of a table, in its order."""
    roles = []
    for name in table.column_names:
        column = table.column(name)
        if name == target:
            roles.append(Role(name, "target", _levels(column, "different value")))
        elif name == weight:
            roles.append(Role(name, "weight"))
        elif name in drop:
            roles.append(Role(name, "dropped"))
        elif name in dates:
            parts = ", ".join(dates[name])
            roles.append(Role(name, "date", parts or "the same in every row, left out"))
        elif column.null_count == len(column):
            roles.append(Role(name, "number", "no values"))
        elif name in categorical or _is_label(column.type):
            roles.append(Role(name, "category", _levels(column)))
        else:
            roles.append(Role(name, "number", _missing(column)))
    return roles


def _is_label(dtype: Any) -> bool:
    return bool(
        pa.types.is_string(dtype)
        or pa.types.is_large_string(dtype)
        or pa.types.is_dictionary(dtype)
    )


def _levels(column: Any, noun: str = "level") -> str:
    dtype = column.type
    if pa.types.is_dictionary(dtype):
        column = column.cast(dtype.value_type)
    count = pc.count_distinct(column).as_py()
    words = [f"{count:,} {noun if count == 1 else f'{noun}s'}", _missing(column)]
    return ", ".join(word for word in words if word)


def _missing(column: Any) -> str:
    return f"{column.null_count:,} missing" if column.null_count else ""


def roles_table(roles: Sequence[Role]) -> Table:
    """Return the roles as a table to print, by column or, if there are many, by role."""
    printed = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    if len(roles) <= MOST_LINES:
        for heading in ("column", "role", ""):
            printed.add_column(heading, overflow="fold")
        for role in roles:
            printed.add_row(role.column, role.kind, role.detail)
        return printed
    printed.add_column("role")
    printed.add_column("columns", justify="right")
    printed.add_column("")
    for kind in dict.fromkeys(role.kind for role in roles):
        names = [role.column for role in roles if role.kind == kind]
        printed.add_row(kind, f"{len(names):,}", _first_names(names))
    return printed


def _first_names(names: Sequence[str]) -> str:
    """Return as many names as fit into a line."""
    shown = ""
    for name in names:
        longer = f"{shown}, {name}" if shown else name
        if len(longer) > MOST_CHARACTERS:
            return f"{shown or name[:MOST_CHARACTERS]}, ..."
        shown = longer
    return shown


def column_notes(file: TableFile, table: ArrowTable, roles: Sequence[Role]) -> list[str]:
    """Return notes on features that look odd, each with a remedy."""
    if not file.is_text:
        return []
    zeros, notes = file.leading_zeros(), []
    for role in roles:
        name = role.column
        if role.kind in ("dropped", "date", "weight"):
            continue
        if name in text_columns(table):
            note = why_text(table.column(name), file.dialect.decimal)
            if note:
                notes.append(f"column {name!r} {note}")
        elif role.kind == "number" and name in zeros:
            notes.append(
                f"column {name!r} has leading zeros ({zeros[name]}) and is read as numbers; if they"
                f" are codes: --categorical {name}"
            )
    return notes


def why_text(column: Any, decimal: str | None) -> str:
    """Return why a column of numbers or dates is text, and the remedy; "" for other columns."""
    culprit = find_non_number(column, decimal or ".")
    if culprit is not None:
        return f"is text because of {culprit}"
    if looks_like_dates(column):
        first = column.drop_null()[0].as_py()
        date_format = "" if "." in first else " --date-format FORMAT"
        return f"is text, but {first!r} looks like a date; remedy: --dates{date_format}"
    return ""


def check_numbers(file: TableFile, table: ArrowTable, numbers: Sequence[str]) -> None:
    """Reject text in columns that a model needs as numbers."""
    for name in text_columns(table):
        column = table.column(name)
        if name in numbers and column.null_count < len(column):
            first = column.drop_null()[0].as_py()
            why = why_text(column, file.dialect.decimal) or f"holds text, for example {first!r}"
            raise TableError(
                f"{file.name}: the model needs numbers in column {name!r}, which {why}"
            )


def reject_dates(table: ArrowTable) -> None:
    """Reject columns of dates, with advice."""
    for field in table.schema:
        if is_date(field.type):
            raise ValueError(
                f"column {field.name!r} holds dates or times: --dates turns them into numbers"
                f" (year, month, day, ...), --drop {field.name} leaves them out"
            )
        if pa.types.is_duration(field.type):
            raise ValueError(
                f"column {field.name!r} holds time differences: turn them into numbers, or leave"
                f" them out with --drop {field.name}"
            )
