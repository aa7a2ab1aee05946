"""Weights of rows; where none are stated, every row weighs 1.

Such weights are a view of a single number: they need no memory, and kernels skip the
multiplication.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb.errors import require_rows

Floats = NDArray[np.float64]
RowSelection = slice | NDArray[np.intp] | NDArray[np.bool_]


def equal_weights(n_rows: int) -> Floats:
    """Return a weight of 1 for each row: a read-only view of one number."""
    return np.broadcast_to(np.float64(1.0), n_rows)


def are_equal(weight: Floats) -> bool:
    """Whether weights are made by `equal_weights`: no step from a row to the next, and 1."""
    return weight.strides == (0,) and (not len(weight) or bool(weight[0] == 1.0))


def read_weights(weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return weights that a user states, rejected unless they are n_rows numbers >= 0."""
    if weight is None:
        return equal_weights(n_rows)
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"weight must have shape ({n_rows},), not {weights.shape}")
    valid = np.isfinite(weights) & (weights >= 0.0)
    require_rows("weight", weights, valid, "finite and at least 0")
    return weights


def as_weights(weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return stated weights as floats, else a weight of 1 for each row."""
    if weight is None:
        return equal_weights(n_rows)
    if isinstance(weight, np.ndarray) and are_equal(weight):
        return weight
    return np.ascontiguousarray(weight, dtype=np.float64).reshape(-1)


def kernel_weight(weight: Floats) -> Floats | None:
    """Return weights as kernels read them: None for `equal_weights`."""
    return None if are_equal(weight) else weight


def take_weight(weight: Floats, rows: RowSelection) -> Floats:
    """Return the weights of some rows; those of equal weights are equal weights."""
    if not are_equal(weight):
        return weight[rows]
    if isinstance(rows, slice):
        return equal_weights(len(range(*rows.indices(len(weight)))))
    return equal_weights(int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows))
