"""Split conformal intervals, from calibration rows that no model was trained on."""

import numpy as np
from numpy.typing import ArrayLike

from sglb.conformal.ranks import Floats, Intervals, Scores, read_rows, warn_too_few
from sglb.errors import require_rows


class ConformalResiduals:
    """Intervals mean +- q * scale, where q is a quantile of |y - mean| / scale.

    y, mean and scale (n_rows,) are those of calibration rows. With a constant scale all intervals
    have the same width; with a model of the scale they are narrow where it is small (Lei et al.,
    2018).
    """

    def __init__(self, y: ArrayLike, mean: ArrayLike, scale: ArrayLike = 1.0) -> None:
        y, mean = read_rows(y=y, mean=mean)
        self.scores = Scores(np.abs(y - mean) / read_scale(scale, len(y)))

    def interval(self, mean: ArrayLike, scale: ArrayLike = 1.0, coverage: float = 0.9) -> Intervals:
        """Return intervals for new rows, valid together with calibration rows of the same law."""
        (mean,) = read_rows(mean=mean)
        half = self.scores.bound(coverage) * read_scale(scale, len(mean))
        return _intervals(mean - half, mean + half, coverage, self.scores)


class ConformalQuantiles:
    """Conformalised quantile regression: [low - q, high + q], q a quantile of the misses.

    The score of a calibration row is max(low - y, y - high), negative inside the interval, so that
    intervals that are too wide shrink (Romano, Patterson and Candes, 2019). Where an interval
    shrinks below nothing, both its ends are its middle.
    """

    def __init__(self, y: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
        y, low, high = read_rows(y=y, low=low, high=high)
        require_rows("high", high, high >= low, "at least low")
        self.scores = Scores(np.maximum(low - y, y - high))

    def interval(self, low: ArrayLike, high: ArrayLike, coverage: float = 0.9) -> Intervals:
        """Return intervals for new rows from their two predicted quantiles."""
        low, high = read_rows(low=low, high=high)
        require_rows("high", high, high >= low, "at least low")
        margin = self.scores.bound(coverage)
        # An empty interval becomes a point: more than the guarantee asks for.
        middle = low + 0.5 * (high - low)
        lower, upper = np.minimum(low - margin, middle), np.maximum(high + margin, middle)
        return _intervals(lower, upper, coverage, self.scores)


def read_scale(scale: ArrayLike, n_rows: int) -> Floats:
    """Return a positive scale of every row; a number is that of all rows."""
    scales = np.asarray(scale, dtype=np.float64)
    (scales,) = read_rows(n_rows, scale=np.full(n_rows, scales) if scales.ndim == 0 else scales)
    require_rows("scale", scales, scales > 0.0, "positive")
    return scales


def _intervals(low: Floats, high: Floats, coverage: float, scores: Scores) -> Intervals:
    if len(low) and not np.isfinite(high).all():
        warn_too_few(len(scores), coverage, "intervals are infinite")
    return Intervals(np.column_stack([low, high]), coverage, coverage, len(scores))
