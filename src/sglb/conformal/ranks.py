"""The quantile that makes a set valid for finite samples, and the intervals it leads to.

Among n + 1 scores, those of n calibration rows and of a new row, the new score has each rank with
equal probability. So it is at most the k-th smallest of the others, k = ceil((n + 1) coverage),
with a probability of at least k / (n + 1) >= coverage; without ties it is k / (n + 1). If k > n no
finite bound is valid.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import sums
from sglb.errors import require_rows, warn

Floats = NDArray[np.float64]

# Products such as (n + 1) * coverage are whole numbers but for rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Intervals:
    """Intervals of rows and what is promised of them.

    bounds       (n_rows, 2), infinite where there are too few calibration rows
    coverage     probability that was asked for
    guarantee    probability that is proven, on average over rows and calibration samples
    n_rows       calibration rows
    """

    bounds: Floats
    coverage: float
    guarantee: float
    n_rows: int

    @property
    def mean_width(self) -> float:
        """Mean of upper - lower bound; NaN without rows."""
        if not len(self.bounds):
            return math.nan
        width = self.bounds[:, 1] - self.bounds[:, 0]
        return sums.mean(width) if np.isfinite(width).all() else math.inf

    def __len__(self) -> int:
        return len(self.bounds)

    def __str__(self) -> str:
        return (
            f"{len(self):,} intervals of mean width {self.mean_width:.4g}: each contains its"
            f" outcome with a probability of at least {self.guarantee:.4g}, on average over rows"
            f" and over samples of {self.n_rows:,} calibration rows"
        )


def check_coverage(coverage: float) -> None:
    """Reject a coverage outside (0, 1)."""
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage must be in (0, 1), got {coverage!r}")


def rank(n_rows: int, coverage: float) -> int:
    """Return k = ceil((n_rows + 1) coverage)."""
    exact = (n_rows + 1) * coverage
    return math.ceil(exact * (1.0 - ROUNDING))


def rows_needed(coverage: float) -> int:
    """Return the least number of calibration rows with finite intervals: n >= c / (1 - c)."""
    check_coverage(coverage)
    n_rows = math.floor(coverage / (1.0 - coverage))
    while rank(n_rows, coverage) > n_rows:
        n_rows += 1
    return n_rows


def warn_too_few(n_rows: int, coverage: float, consequence: str) -> None:
    """Warn that n_rows rows are too few for a finite bound, and of the consequence."""
    warn(
        f"{n_rows} calibration rows are too few for a coverage of {coverage:g}, which needs"
        f" {rows_needed(coverage)}: {consequence}",
    )


def read_rows(n_rows: int | None = None, **arrays: ArrayLike) -> list[Floats]:
    """Return vectors of one length without NaN or infinity; names are those of the parameters."""
    vectors = []
    for name, values in arrays.items():
        vector = np.asarray(values, dtype=np.float64)
        if vector.ndim != 1 or (n_rows is not None and len(vector) != n_rows):
            shape = "(n_rows,)" if n_rows is None else f"({n_rows},)"
            raise ValueError(f"{name} must have shape {shape}, not {vector.shape}")
        require_rows(name, vector, np.isfinite(vector), "finite")
        vectors.append(vector)
        n_rows = len(vector)
    return vectors


class Scores:
    """Sorted scores of calibration rows."""

    def __init__(self, scores: Floats) -> None:
        self.scores = np.sort(scores)

    def __len__(self) -> int:
        return len(self.scores)

    def bound(self, coverage: float) -> float:
        """Return the bound of the score of a new row, infinite where rows are too few."""
        check_coverage(coverage)
        k = rank(len(self), coverage)
        return float(self.scores[k - 1]) if k <= len(self) else math.inf
