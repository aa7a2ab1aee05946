"""Take target, weights and features from the columns of a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sglb.tables.arrow import ArrowTable
from sglb.tables.dates import describe_column
from sglb.tables.errors import TableError
from sglb.tables.numbers import find_non_number


def column_values(table: ArrowTable, name: str, role: str, advice: str = "") -> NDArray[Any]:
    """Return a column without missing values as an array of text, booleans or numbers.

    `advice` is appended to the message if the column does not exist.
    """
    if name not in table.column_names:
        known = ", ".join(repr(column) for column in table.column_names[:20])
        more = ", ..." if table.num_columns > 20 else ""
        raise TableError(f"no {role} column {name!r}; the table has {known}{more}{advice}")
    column = table.column(name)
    dtype = column.type
    if pa.types.is_dictionary(dtype):
        column = column.cast(dtype.value_type)
        dtype = dtype.value_type
    if column.null_count:
        row = pc.index(pc.is_null(column), pa.scalar(True)).as_py()
        raise TableError(f"{role} column {name!r} has a missing value in row {row}")
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return np.asarray(column.to_pylist(), dtype=np.str_)
    if not (
        pa.types.is_boolean(dtype) or pa.types.is_integer(dtype) or pa.types.is_floating(dtype)
    ):
        raise TableError(f"{role} column {name!r} is of type {dtype}; it must be text or numbers")
    return np.asarray(column.to_numpy())


def weight_values(table: ArrowTable, name: str) -> NDArray[np.float64]:
    """Return a column of weights."""
    values = column_values(table, name, "weight")
    if values.dtype.kind == "U":
        culprit = find_non_number(table.column(name))
        why = "" if culprit is None else f": {culprit}"
        raise TableError(f"weight column {name!r} holds text, not numbers{why}")
    return values.astype(np.float64)


def select(table: ArrowTable, names: Sequence[str], advice: str = "") -> ArrowTable:
    """Return the named columns in this order; `advice` is appended if one does not exist."""
    for name in names:
        if name not in table.column_names:
            raise TableError(
                f"the table has no column {describe_column(name)}, which the model needs{advice}"
            )
    return table.select(list(names))
