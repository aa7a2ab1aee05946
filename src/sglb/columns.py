"""A matrix whose columns are stored apart, as in frames, and copied a few at a time."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Columns copied at a time: enough for the threads, small beside the table.
BLOCK_COLUMNS = 4


class Columns:
    """A matrix of one type whose columns (n_rows,) are read when they are needed."""

    def __init__(self, n_rows: int, readers: Sequence[Callable[[], Array]], dtype: Any) -> None:
        self.shape = n_rows, len(readers)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._readers = tuple(readers)

    @classmethod
    def of(cls, values: "Array | Columns") -> "Columns":
        """Return the columns of an array."""
        if isinstance(values, Columns):
            return values
        readers = [partial(values.__getitem__, (slice(None), c)) for c in range(values.shape[1])]
        return cls(len(values), readers, values.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, kept: Array, dtype: Any) -> "Columns":
        """Return the rows of a mask in another type, still read when they are needed."""
        readers = [partial(_read_kept, read, kept) for read in self._readers]
        return Columns(int(np.count_nonzero(kept)), readers, dtype)

    def __getitem__(self, rows: Any) -> Array:
        """Return the selected rows of all columns."""
        return self._copy(slice(None), rows)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield the columns block by block: their indices and a matrix of them."""
        for begin in range(0, len(self._readers), BLOCK_COLUMNS):
            columns = slice(begin, begin + BLOCK_COLUMNS)
            yield columns, self._copy(columns, slice(None))

    def _copy(self, columns: slice, rows: Any) -> Array:
        # Frames and kernels both go column by column, hence the order.
        readers = self._readers[columns]
        n_rows = len(np.broadcast_to(False, len(self))[rows])
        matrix = np.empty((n_rows, len(readers)), dtype=self.dtype, order="F")
        for column, read in enumerate(readers):
            matrix[:, column] = read()[rows]
        return matrix


def _read_kept(read: Callable[[], Array], kept: Array) -> Array:
    column: Array = read()[kept]
    return column


def column_blocks(X: "Array | Columns") -> Iterator[tuple[slice, Array]]:
    """Yield indices of columns and a matrix of them; an array is a single block."""
    if isinstance(X, Columns):
        yield from X.blocks()
    else:
        yield slice(0, X.shape[1]), X
