"""Rows of a table of any kind, as a table of the same kind."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from sglb.frame.dataframes import as_frame
from sglb.held import HeldTable


class Table:
    """A table of any kind that `fit` reads, whose rows can be taken."""

    def __init__(self, X: Any) -> None:
        if isinstance(X, HeldTable):
            raise ValueError(
                f"{type(X).__name__} holds its rows elsewhere, and this takes some of them: pass an"
                " array or a dataframe"
            )
        self._frame = as_frame(X)
        self._rows = X
        if self._frame is None and not isinstance(X, np.ndarray | list | tuple):
            self._rows = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")

    def __len__(self) -> int:
        return len(self._rows if self._frame is None else self._frame)

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Return the selected rows: a frame of the same library, an array or a list."""
        if self._frame is not None:
            return self._frame[rows].to_native()
        if isinstance(self._rows, np.ndarray):
            return self._rows[rows]
        return [self._rows[row] for row in rows.tolist()]
