"""Draws of a function from a posterior: values on the leaves of partitions, one for each draw."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.posterior.partitions import Partitions

Floats = NDArray[np.float64]

# Bytes of the arrays that a block of rows needs: enough rows that the cost of a block does not
# matter, and no more than a cache of the last level holds.
BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class LeafDraws:
    """Draw m at a row is the sum over partitions of values[leaf of the row, :, m].

    `values` (leaves of all partitions, n_outputs, M) has the leaves of partition k, n_leaves[k] of
    them, one partition after the other. With `mirror` there are 2 M draws, of which the last M are
    minus the first. `stages` (2, n_outputs, n_watched, n_draws) are the draws at some training rows
    halfway and at the end of `n_steps` steps: where both have the same law, and the chains have
    lasted some `relaxations`, they have forgotten how they began. These are relaxation times of the
    mean over all rows, None where a file does not tell.
    """

    n_leaves: NDArray[np.int64]
    values: NDArray[np.float32]
    mirror: bool = False
    stages: Floats = field(default_factory=lambda: np.empty((2, 1, 0, 0)))
    n_steps: int = 0
    relaxations: float | None = None

    @property
    def n_outputs(self) -> int:
        """Raw scores of a row."""
        return int(self.values.shape[1])

    @property
    def n_draws(self) -> int:
        """Number of draws, mirror images included."""
        return int(self.values.shape[2]) * (2 if self.mirror else 1)

    def predict(self, partitions: Partitions, n_threads: int = 1) -> Floats:
        """Return the draws at all rows of the same partitions, (n_outputs, n_rows, n_draws)."""
        out = np.empty((self.n_outputs, partitions.n_rows, self.n_draws))
        for rows, draws in self.blocks(partitions, n_threads):
            out[:, rows] = draws
        return out

    def blocks(self, partitions: Partitions, n_threads: int = 1) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of rows and their draws (n_outputs, rows of the block, n_draws).

        Memory does not grow with the number of rows.
        """
        if not np.array_equal(partitions.n_leaves, self.n_leaves):
            raise ValueError("the draws are of other partitions than those of the rows")
        bytes_of_row = 4 * len(self.n_leaves) + 8 * self.n_outputs * self.n_draws
        size, n_rows = max(BLOCK_BYTES // bytes_of_row, 64), partitions.n_rows
        for first in range(0, n_rows, size):
            end = min(first + size, n_rows)
            yield slice(first, end), self._predict(partitions.leaves(first, end), n_threads)

    def _predict(self, leaves: NDArray[np.int32], n_threads: int) -> Floats:
        first = np.add.accumulate(self.n_leaves) - self.n_leaves
        n_outputs, n_values = self.values.shape[1:]
        out = np.empty((n_outputs, leaves.shape[1], n_values))
        _core.add_leaf_draws(leaves, first, self.values, out, n_threads)
        return np.concatenate([out, -out], axis=2) if self.mirror else out
