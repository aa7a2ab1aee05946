"""A matrix whose columns lie apart, as frames hold them: side by side only a few at a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Columns that are copied at a time: enough for the threads, little beside the table.
TOGETHER = 4


class Columns:
    """Columns (n_rows,) that are read when they are wanted, as a matrix of one type."""

    def __init__(self, n_rows: int, readers: Sequence[Callable[[], Array]], dtype: Any) -> None:
        self.shape = n_rows, len(readers)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._readers = tuple(readers)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        """Return some of the rows, all columns side by side."""
        return self._side_by_side(slice(None), rows)

    def some(self) -> Iterator[tuple[slice, Array]]:
        """Yield the places of a few columns and these side by side, until all were there."""
        for begin in range(0, len(self._readers), TOGETHER):
            places = slice(begin, begin + TOGETHER)
            yield places, self._side_by_side(places, slice(None))

    def _side_by_side(self, places: slice, rows: Any) -> Array:
        # Column by column is how frames lie in memory and how the kernels read.
        readers = self._readers[places]
        n_rows = len(np.broadcast_to(False, len(self))[rows])
        table = np.empty((n_rows, len(readers)), dtype=self.dtype, order="F")
        for place, read in enumerate(readers):
            table[:, place] = read()[rows]
        return table


def a_few_at_a_time(X: "Array | Columns") -> Iterator[tuple[slice, Array]]:
    """Yield places of columns and these columns; an array has all of them in one."""
    if isinstance(X, Columns):
        yield from X.some()
    else:
        yield slice(0, X.shape[1]), X
