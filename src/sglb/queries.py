"""Rows in groups: where the rows of each query are, and sums over them.

Rows come in any order. `order` lists them query by query, in the order of the table within one:

    groups   7 3 7 7 3          order  1 4 | 0 2 3        starts  0 2 5
    query    1 0 1 1 0          (number of the query of each row)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb.caching import cached_property
from sglb.weights import are_equal

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Bits of a sum of integers: one for the sign, one to spare.
SUM_BITS = 62


@dataclass(frozen=True)
class Queries:
    """Which rows belong to which query."""

    order: NDArray[np.intp]  # (n_rows,)
    starts: Integers  # (n_queries + 1,), where each query begins in `order`
    query: NDArray[np.intp]  # (n_rows,), of each row

    @classmethod
    def of(cls, groups: Integers) -> "Queries":
        """Find the rows of each group; queries are numbered by their groups in rising order."""
        _, query, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        query = query.reshape(-1)
        starts = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.add.accumulate(sizes, out=starts[1:])
        return cls(np.argsort(query, kind="stable"), starts, query)

    @property
    def n_queries(self) -> int:
        """Number of queries, none of which is empty."""
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> Integers:
        """Rows of each query."""
        return np.diff(self.starts)

    @cached_property
    def _is_sorted(self) -> bool:
        return bool((self.order == np.arange(len(self.order))).all())

    def sort(self, values: Floats) -> Floats:
        """Return values of rows query by query."""
        return values if self._is_sorted else values[self.order]

    def largest(self, values: Floats) -> Floats:
        """Return the largest value of each query."""
        if not self.n_queries:
            return np.empty(0)
        return np.maximum.reduceat(self.sort(values), self.starts[:-1])

    def sums(self, values: Floats) -> Floats:
        """Return the sum over the rows of each query, the same for any order of the rows.

        Values are added as integers of 2^-k, with the largest k at which the sum of the query
        cannot overflow: with 1,000 rows these are 2^-51 of the largest value.
        """
        if not self.n_queries:
            return np.empty(0)
        values = self.sort(values)
        largest = np.maximum.reduceat(np.abs(values), self.starts[:-1])
        bits = SUM_BITS - np.frexp(self.sizes.astype(np.float64))[1] - np.frexp(largest)[1]
        # A value that is not finite has no integer: its query's sum is NaN.
        finite = np.isfinite(largest)
        scale = np.where(finite, bits, 0)
        by_row = np.repeat(scale, self.sizes)
        integers = np.rint(np.ldexp(values, by_row))
        if not finite.all():
            integers[~np.repeat(finite, self.sizes)] = 0.0
        total = np.add.reduceat(integers.astype(np.int64), self.starts[:-1])
        return np.where(finite, np.ldexp(total.astype(np.float64), -scale), np.nan)

    def means(self, values: Floats, weight: Floats) -> Floats:
        """Return the weighted mean of each query, 0 of a query without weight."""
        if are_equal(weight):
            return self.sums(values) / self.sizes
        return self.sums(values * weight) / self.totals(weight)

    def totals(self, weight: Floats) -> Floats:
        """Return what a mean divides by: the weight of each query, 1 of a query without weight."""
        if are_equal(weight):
            return self.sizes.astype(np.float64)
        total = self.sums(weight)
        return np.where(total > 0.0, total, 1.0)
