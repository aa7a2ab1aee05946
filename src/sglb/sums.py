"""Sums over rows that do not depend on the order of the rows.

A sum is exact until it is rounded, once, to the nearest float. So it has the same bits on any
processor, for any number of threads, and where a table is cut into shards: each shard fills an
`ExactSum`, and these are merged. With weights a summand is the product w_i * v_i as a float has it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import _core
from sglb._core import ExactSum

__all__ = ["ExactSum", "by_group", "mean", "running", "total"]

Floats = NDArray[np.float64]


def total(values: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the sum of values, or of weight * values, in any shape; 0 without any."""
    return _core.total(_plain(values), None if weight is None else _plain(weight))


def mean(values: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return sum w v / sum w, both sums exact; ZeroDivisionError where there is no weight."""
    values = _plain(values)
    return total(values, weight) / (len(values) if weight is None else total(weight))


def running(values: ArrayLike) -> Floats:
    """Return the sums of the first 1, 2, ... values, which must not be negative.

    Values in another order have the same sum wherever the same values came before.
    """
    values = _plain(values)
    sums = np.empty(len(values))
    _core.running_totals(values, sums)
    return sums


def by_group(group: NDArray[np.integer[Any]], values: ArrayLike, n_groups: int) -> Floats:
    """Return the sum of the values of each group 0..n_groups - 1, (n_groups,).

    What is 2^-95 times the largest value or less is cut off.
    """
    values = _plain(values)
    groups = _core.Levels(
        np.ascontiguousarray(group, dtype=np.int32)[None], np.array([n_groups], dtype=np.int64)
    )
    weights = _core.LevelTargets(np.empty((0, len(values))), values)
    sums = np.empty(n_groups)
    _core.level_sums(groups, weights, np.empty((0, n_groups)), sums, 1)
    return sums


def _plain(values: ArrayLike) -> Floats:
    """Return values as the kernels read them."""
    return np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
