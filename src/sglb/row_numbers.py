"""Which rows of the whole table these are: noise is a function of a row's number there.

So noise does not depend on how the rows are dealt to shards. The table may stand there in several
copies, one after the other; a shard then holds the same rows of each.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class RowNumbers(NamedTuple):
    """The number of the first row, and rows of a copy of the whole table."""

    first: int
    n_in_all: int
    n_copies: int = 1

    def runs(self, n_rows: int) -> Iterator[tuple[slice, int]]:
        """Yield the rows of each copy, and the number of the first of them."""
        n_here = n_rows // self.n_copies
        for copy in range(self.n_copies):
            yield slice(copy * n_here, (copy + 1) * n_here), copy * self.n_in_all + self.first

    def of(self, n_rows: int) -> NDArray[np.int64]:
        """Return the number of each row."""
        numbers = np.empty(n_rows, dtype=np.int64)
        for rows, first in self.runs(n_rows):
            numbers[rows] = np.arange(first, first + rows.stop - rows.start)
        return numbers
