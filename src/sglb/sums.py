"""Sums over rows that do not depend on the order of the rows.

A sum is exact until it is rounded, once, to the nearest float. So it has the same bits on any
processor, for any number of threads, and where a table is cut into shards: each shard fills an
`ExactSum`, and these are merged. With weights a summand is the product w_i * v_i rounded to a
float; without weights every row weighs 1.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import _core
from sglb._core import ExactSum
from sglb.weights import are_equal, as_weights, kernel_weight

__all__ = ["ExactSum", "by_group", "mean", "over_axis", "product", "running", "total", "variance"]

Floats = NDArray[np.float64]


def total(values: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the sum of weight * values, in any shape; 0 for no values."""
    values = _flat(values)
    return _core.total(values, kernel_weight(as_weights(weight, len(values))))


def mean(values: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return sum w v / sum w, both sums exact; ZeroDivisionError if the weights add up to 0."""
    values = _flat(values)
    weights = as_weights(weight, len(values))
    return total(values, weights) / (len(values) if are_equal(weights) else total(weights))


def over_axis(values: Floats, axis: int = -1) -> Floats:
    """Return sums over an axis of few entries, from the first to the last.

    Of outputs, classes or parts of a state, whose order is fixed, never of rows: NumPy's sums and
    products of matrices add in an order that depends on its version and on the processor.
    """
    entries = np.moveaxis(values, axis, 0)
    result: Floats = entries[0].copy()
    for entry in entries[1:]:
        result += entry
    return result


def variance(values: Floats, axis: int, *, n_lost: int = 1) -> Floats:
    """Return the variance over an axis of chains or draws, with n - n_lost degrees of freedom."""
    n = values.shape[axis]
    centre = np.expand_dims(over_axis(values, axis) / n, axis)
    squares = over_axis(np.square(values - centre), axis)
    return np.asarray(squares / (n - n_lost))


def product(a: Floats, b: Floats) -> Floats:
    """Return the product of a small matrix and a small matrix or vector."""
    if b.ndim == 1:
        return over_axis(a * b)
    return over_axis(a[:, :, None] * b, axis=1)


def running(values: ArrayLike) -> Floats:
    """Return the sums of the first 1, 2, ... values, which must not be negative.

    The sum up to a value depends on which values come before it, not on their order.
    """
    values = _flat(values)
    sums = np.empty(len(values))
    _core.running_totals(values, sums)
    return sums


def by_group(
    group: NDArray[np.integer[Any]],
    values: ArrayLike,
    n_groups: int,
    weight: ArrayLike | None = None,
) -> Floats:
    """Return the sum of weight * values of each group 0..n_groups - 1, (n_groups,).

    Digits below 2^-95 times the largest finite summand are cut off.
    """
    values = _flat(values)
    values = values * as_weights(weight, len(values))
    groups = _core.Levels(
        np.ascontiguousarray(group, dtype=np.int32)[None], np.array([n_groups], dtype=np.int64)
    )
    summands = _core.LevelTargets(np.empty((0, len(values))), values)
    sums = np.empty(n_groups)
    _core.level_sums(groups, summands, np.empty((0, n_groups)), sums, 1)
    return sums


def _flat(values: ArrayLike) -> Floats:
    """Return values as kernels read them: contiguous floats in one dimension."""
    return np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
