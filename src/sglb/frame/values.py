"""Numbers in the types that the kernels read, without infinity."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb import _core

Array = NDArray[Any]

READY_DTYPES = frozenset(np.dtype(code) for code in ("?", *"bhilBHIL", "f", "d"))


def as_readable(values: Array) -> Array:
    """Return the array in a type of the kernels: native float32/float64, integers, booleans.

    A field of packed records is copied: its values are not aligned to their type, and the distance
    between its rows is not a multiple of the value's size.
    """
    return values.astype(readable_dtype(values.dtype), copy=not values.flags.aligned)


def readable_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the kernels that holds the values of `dtype`."""
    dtype = dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype not in (np.float32, np.float64):
        return np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return dtype


def reject_infinity(
    values: Array, name_of: Callable[[int], str], n_threads: int, first_row: int = 0
) -> None:
    """Reject infinite values; the message names the first one's row and column, by `name_of`.

    Rows are counted from `first_row` on.
    """
    if values.dtype.kind != "f":
        return
    position = _core.first_infinity(values, n_threads)
    if position >= 0:
        row, column = divmod(position, values.shape[1])
        raise ValueError(f"X contains infinity in column {name_of(column)}, row {first_row + row}")


def shape_checks(reset: bool) -> dict[str, Any]:
    """Return the options of scikit-learn's checks; X needs a row in fit alone (`reset`)."""
    return {
        "dtype": "numeric",
        "ensure_all_finite": False,
        "ensure_min_samples": 1 if reset else 0,
    }
