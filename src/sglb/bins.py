"""Turn feature values into codes of one byte, by the thresholds of each feature.

Second room on the data's way, after `frame`:

    code(x) = 0 if x is missing, else 1 + number of thresholds < x
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.columns import Columns, column_blocks
from sglb.held import HeldNumbers

# Thresholds are quantiles. 1,000 rows per bin determine the rank of each to a few hundredths of a
# bin's share, whatever the number of rows.
SAMPLE_ROWS_PER_BIN = 1000


@dataclass(frozen=True)
class Bins:
    """The thresholds of every feature, increasing, padded with infinity to one width."""

    thresholds: NDArray[np.float64]  # (n_features, max_bins - 1)
    n_thresholds: NDArray[np.int32]  # (n_features,)

    @classmethod
    def fit(
        cls,
        X: NDArray[Any] | Columns | HeldNumbers,
        max_bins: int,
        *,
        seed: int = 0,
        n_threads: int = 1,
    ) -> "Bins":
        """Choose thresholds for the columns of X (n_rows, n_features)."""
        n_features, sample_rows = X.shape[1], SAMPLE_ROWS_PER_BIN * max_bins
        if isinstance(X, HeldNumbers):  # all rows of the sample are those chosen of the table
            X = X.sample(threshold_rows(len(X), sample_rows, seed))
        thresholds = np.empty((n_features, max_bins - 1))
        n_thresholds = np.empty(n_features, dtype=np.int32)
        for features, block in column_blocks(X):
            _core.find_thresholds(
                block,
                max_bins,
                sample_rows,
                seed,
                thresholds[features],
                n_thresholds[features],
                n_threads,
            )
        return cls(thresholds, n_thresholds)

    @classmethod
    def of_levels(cls, n_levels: Sequence[int], max_bins: int) -> "Bins":
        """Give each level number 0, 1, ... of columns with `n_levels` levels its own code."""
        thresholds = np.full((len(n_levels), max_bins - 1), np.inf)
        for row, n in zip(thresholds, n_levels, strict=True):
            row[: max(n - 1, 0)] = np.arange(max(n - 1, 0)) + 0.5
        return cls(thresholds, np.array([max(n - 1, 0) for n in n_levels], dtype=np.int32))

    @classmethod
    def join(cls, parts: Sequence["Bins"]) -> "Bins":
        """Concatenate the features of several bins."""
        width = max(part.thresholds.shape[1] for part in parts)
        rows = [
            np.pad(
                part.thresholds,
                ((0, 0), (0, width - part.thresholds.shape[1])),
                constant_values=np.inf,
            )
            for part in parts
        ]
        return cls(np.concatenate(rows), np.concatenate([part.n_thresholds for part in parts]))

    def __getitem__(self, features: slice) -> "Bins":
        """Return the bins of some features."""
        return Bins(self.thresholds[features], self.n_thresholds[features])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.n_thresholds)

    @property
    def n_codes(self) -> NDArray[np.int32]:
        """Codes of each feature: one for missing values, and one more than thresholds."""
        return self.n_thresholds + np.int32(2)

    def encode(self, X: NDArray[Any] | Columns, n_threads: int = 1) -> NDArray[np.uint8]:
        """Return the codes of X (n_rows, n_features) by columns, (n_features, n_rows)."""
        columns = np.empty((X.shape[1], X.shape[0]), dtype=np.uint8)
        for features, block in column_blocks(X):
            thresholds, n_thresholds = self.thresholds[features], self.n_thresholds[features]
            _core.encode(block, thresholds, n_thresholds, columns[features], n_threads)
        return columns


def threshold_rows(n_rows: int, sample_rows: int, seed: int) -> NDArray[np.int64]:
    """Return the rows of a table that thresholds are found on, numbers that never fall."""
    rows = np.empty(min(n_rows, sample_rows), dtype=np.int64)
    _core.threshold_rows(n_rows, seed, rows)
    return rows
