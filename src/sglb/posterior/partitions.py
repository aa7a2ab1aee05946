"""Partitions of rows: all that a posterior needs to know of the trees of a model.

Partition k puts each row into one of `n_leaves[k]` leaves. The trees of a chain are partitions
whose leaves are found from the codes of the rows when they are asked for; the trees of any other
model are partitions as soon as somebody has the leaf numbers of its rows.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import _core
from sglb.trace import Trace

Ints = NDArray[np.int32]


class Partitions(Protocol):
    """K partitions of some rows."""

    @property
    def n_leaves(self) -> NDArray[np.int64]:
        """Leaves of each partition, (K,), those without rows included."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def leaf(self, k: int) -> Ints:
        """Return the leaf of every row in partition k, (n_rows,), valid until the next call."""
        ...

    def leaves(self, first: int, end: int) -> Ints:
        """Return the leaves of rows first .. end - 1 in all partitions, (K, end - first)."""
        ...


class TreePartitions:
    """The oblivious trees of a chain at codes (n_features, n_rows): 2^depth leaves, some empty."""

    def __init__(self, trace: Trace, columns: NDArray[np.uint8], n_threads: int = 1) -> None:
        self.columns = columns
        self.n_threads = n_threads
        self.n_leaves = np.left_shift(1, trace.depths, dtype=np.int64)
        self._structures = [trace.structure(t) for t in range(len(trace))]
        self._leaf: Ints = np.empty((1, self.n_rows), dtype=np.int32)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.columns.shape[1])

    def leaf(self, k: int) -> Ints:
        """Return the leaf of every row in tree k, (n_rows,), valid until the next call."""
        structures = self._structures[k : k + 1]
        _core.tree_leaves(self.columns, structures, 0, self._leaf, self.n_threads)
        leaf_of_rows: Ints = self._leaf[0]
        return leaf_of_rows

    def leaves(self, first: int, end: int) -> Ints:
        """Return the leaves of rows first .. end - 1 in all trees, (K, end - first)."""
        leaf_of_rows = np.empty((len(self._structures), end - first), dtype=np.int32)
        _core.tree_leaves(self.columns, self._structures, first, leaf_of_rows, self.n_threads)
        return leaf_of_rows


class StoredPartitions:
    """Leaf numbers (K, n_rows) from 0 on, as other libraries give them for their trees.

    `n_leaves` (K,) is by default one more than the largest number of each partition. Rows that are
    predicted need that of the rows that were drawn on.
    """

    def __init__(self, leaves: ArrayLike, n_leaves: ArrayLike | None = None) -> None:
        self._leaves: Ints = np.ascontiguousarray(leaves, dtype=np.int32)
        if self._leaves.ndim != 2:
            raise ValueError(f"leaves must be (n_partitions, n_rows), not {self._leaves.shape}")
        largest = self._leaves.max(axis=1, initial=-1).astype(np.int64)
        self.n_leaves = largest + 1 if n_leaves is None else np.array(n_leaves, dtype=np.int64)
        if self.n_leaves.shape != largest.shape:
            raise ValueError(f"n_leaves must be ({len(largest)},), not {self.n_leaves.shape}")
        wrong = (largest >= self.n_leaves) | (self._leaves.min(axis=1, initial=0) < 0)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(
                f"partition {k} has leaves 0..{self.n_leaves[k] - 1}, and its rows the numbers"
                f" {self._leaves[k].min()}..{largest[k]}"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._leaves.shape[1])

    def leaf(self, k: int) -> Ints:
        """Return the leaf of every row in partition k, (n_rows,)."""
        leaf_of_rows: Ints = self._leaves[k]
        return leaf_of_rows

    def leaves(self, first: int, end: int) -> Ints:
        """Return the leaves of rows first .. end - 1 in all partitions, (K, end - first)."""
        return np.ascontiguousarray(self._leaves[:, first:end])
