"""Columns of a table as a target, as weights and as features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sglb.tables.dates import described
from sglb.tables.errors import TableError
from sglb.tables.numbers import find_spoiler

Table = Any  # a pyarrow.Table; pyarrow ships no types


def column_values(table: Table, name: str, role: str, advice: str = "") -> NDArray[Any]:
    """Return a column without missing values as an array of text, booleans or numbers.

    `advice` ends the message that there is no such column.
    """
    if name not in table.column_names:
        known = ", ".join(repr(column) for column in table.column_names[:20])
        more = ", ..." if table.num_columns > 20 else ""
        raise TableError(f"no {role} column {name!r}; the table has {known}{more}{advice}")
    column = table.column(name)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if column.null_count:
        row = pc.index(pc.is_null(column), pa.scalar(True)).as_py()
        raise TableError(f"{role} column {name!r} has a missing value in row {row}")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.asarray(column.to_pylist(), dtype=np.str_)
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TableError(f"{role} column {name!r} has the type {kind}: text or numbers are needed")
    return np.asarray(column.to_numpy())


def weight_values(table: Table, name: str) -> NDArray[np.float64]:
    """Return a column of weights."""
    values = column_values(table, name, "weight")
    if values.dtype.kind == "U":
        spoiler = find_spoiler(table.column(name))
        why = "" if spoiler is None else f": {spoiler}"
        raise TableError(f"weight column {name!r} holds text, not numbers{why}")
    return values.astype(np.float64)


def select(table: Table, names: Sequence[str], advice: str = "") -> Table:
    """Return the named columns in this order; `advice` ends the message that one is not there."""
    for name in names:
        if name not in table.column_names:
            raise TableError(
                f"the table has no column {described(name)}, which the model needs{advice}"
            )
    return table.select(list(names))
