"""The features of a table, as the next rooms use them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.columns import Columns
from sglb.labels import LabelColumn


@dataclass(frozen=True)
class Features:
    """A table as read: its numeric columns side by side, its categorical columns one by one."""

    values: NDArray[Any] | Columns  # (n_rows, n_numeric)
    labels: tuple[LabelColumn, ...]
    is_categorical: NDArray[np.bool_]  # (n_columns,)

    def __len__(self) -> int:
        return len(self.values)

    def matrix(self) -> NDArray[Any]:
        """Return the numeric columns side by side."""
        return self.values[:] if isinstance(self.values, Columns) else self.values

    def take(self, rows: Any) -> "Features":
        """Return the selected rows."""
        labels = tuple(column.take(rows) for column in self.labels)
        return Features(self.values[rows], labels, self.is_categorical)
