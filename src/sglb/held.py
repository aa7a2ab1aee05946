"""Tables whose rows are held elsewhere: in files that are larger than memory, by other processes.

A fit asks a table twice: for the values of a few rows, on which it chooses thresholds, and for the
codes of all rows by these thresholds, which stay where the holder wants them. All decisions are
those of a table in memory, and so is the model, bit for bit.

What is held here all the same: 8 bytes a row of y, of weights and of groups, if stated; 4 bytes a
row of each categorical column.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sglb.bins import Bins
    from sglb.cluster import TrainingData
    from sglb.labels import LabelColumn
    from sglb.target import Target

Bytes = NDArray[np.uint8]


class HeldTable(ABC):
    """A table for `fit` and its evaluation sets.

    Rows have a fixed order. It is the holder who must see to it that they do not change during a
    fit, or raise an error.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def empty(self) -> Any:
        """An array of numbers, or a frame of a library that narwhals reads, without rows."""

    @abstractmethod
    def held_labels(self, column: int) -> "LabelColumn":
        """Return the labels of a categorical column of all rows."""

    @abstractmethod
    def held_numbers(self, columns: list[int]) -> "HeldNumbers":
        """Return numeric columns."""


class HeldNumbers(ABC):
    """Numeric columns, (n_rows, n_columns).

    A value is what it would be in memory, of one type for all columns; NaN is missing. Infinity is
    an error that names column and row, in `encode` at the latest.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def sample(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the values of rows, whose numbers never fall, in a type that kernels read."""

    @abstractmethod
    def take(self, kept: NDArray[np.bool_]) -> "HeldNumbers":
        """Return the rows of a mask."""

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield all rows, some at a time: their numbers and values. Predictions need it."""
        raise ValueError(
            f"{type(self).__name__} does not give its rows here: pass an array or a dataframe, some"
            " rows at a time"
        )

    @abstractmethod
    def encode(self, bins: "Bins", n_threads: int) -> "HeldCodes":
        """Return the codes of all rows by the thresholds of `bins`, one feature a column."""


class HeldCodes(ABC):
    """Codes by columns, (n_features, n_copies * n_rows)."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of features and of rows, copies included."""

    @abstractmethod
    def sample(self, rows: NDArray[np.intp]) -> Bytes:
        """Return the codes (n_features, n) of some rows of the first copy, rising numbers."""

    @abstractmethod
    def gather(self) -> Bytes:
        """Return all codes here: an array, or a map of memory onto files that cannot be written."""

    @abstractmethod
    def extended(self, n_copies: int, columns: Bytes) -> "HeldCodes":
        """Return the codes `n_copies` times, copy after copy, and after them further features.

        `columns` (n_more, n_copies * n_rows) are codes of all copies.
        """

    @abstractmethod
    def training_set(
        self,
        n_codes: NDArray[np.int32],
        is_level: NDArray[np.bool_],
        target: "Target",
        n_copies: int,
        n_threads: int,
    ) -> "TrainingData":
        """Lay out the codes for a chain, as `TrainingSet.build` does; `target` is of all copies.

        Of rows in parts: `CodeCounts.of` each, their sum, `CodeLayout.decide` with
        `Bundles.find_in_parts`, and `layout.rows` of each.
        """
