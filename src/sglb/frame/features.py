"""The features of a table, as the next rooms use them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.columns import Columns
from sglb.held import HeldNumbers
from sglb.labels import LabelColumn


@dataclass(frozen=True)
class Features:
    """A table as read: its numeric columns side by side, its categorical columns one by one."""

    values: NDArray[Any] | Columns | HeldNumbers  # (n_rows, n_numeric)
    labels: tuple[LabelColumn, ...]
    is_categorical: NDArray[np.bool_]  # (n_columns,)

    def __len__(self) -> int:
        return len(self.values)

    def matrix(self) -> NDArray[Any]:
        """Return the numeric columns side by side."""
        values = self.values
        if isinstance(values, np.ndarray):
            return values
        if isinstance(values, HeldNumbers):
            raise ValueError(
                "these rows are held elsewhere, and this needs them in memory: pass them as an"
                " array or a dataframe, some of them at a time"
            )
        return values[:]

    def take(self, rows: Any) -> "Features":
        """Return the selected rows."""
        labels = tuple(column.take(rows) for column in self.labels)
        values = self.values
        taken = values.take(rows) if isinstance(values, HeldNumbers) else values[rows]
        return Features(taken, labels, self.is_categorical)
