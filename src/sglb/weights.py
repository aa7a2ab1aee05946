"""Weights of rows; where none are stated, every row weighs 1.

Such weights are a single number seen as an array: they need no memory, and kernels, which are told
so, skip the multiplication.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.intp] | NDArray[np.bool_]


def equal_weights(n_rows: int) -> Floats:
    """Return a weight of 1 for each row: a read-only view of one number."""
    return np.broadcast_to(np.float64(1.0), n_rows)


def as_weights(weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return stated weights as floats, else a weight of 1 for each row."""
    if weight is None:
        return equal_weights(n_rows)
    if isinstance(weight, np.ndarray) and _are_equal(weight):
        return weight
    return np.ascontiguousarray(weight, dtype=np.float64).reshape(-1)


def kernel_weight(weight: Floats) -> Floats | None:
    """Return weights as kernels read them: None for `equal_weights`."""
    return None if _are_equal(weight) else weight


def take_weight(weight: Floats, rows: Rows) -> Floats:
    """Return the weights of some rows; those of equal weights are equal weights."""
    if not _are_equal(weight):
        return weight[rows]
    if isinstance(rows, slice):
        return equal_weights(len(range(*rows.indices(len(weight)))))
    return equal_weights(int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows))


def _are_equal(weight: NDArray[np.float64]) -> bool:
    """Whether weights are made by `equal_weights`: no step from a row to the next, and 1."""
    return weight.strides == (0,) and (not len(weight) or weight[0] == 1.0)
