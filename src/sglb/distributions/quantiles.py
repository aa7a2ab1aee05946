"""A distribution known by some of its quantiles."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sglb.distributions.base import Distribution, Floats, as_index
from sglb.errors import require_rows

# The square of its double, which a variance may contain, does not overflow.
LARGEST = 1e150


class Quantiles(Distribution):
    """Distribution with quantiles `values` (n_rows, n_levels) at `levels` (n_levels,).

    The cdf is linear between neighbouring quantiles. Beyond the outermost ones the tails are
    exponential, with the density of the outermost segments: cdf and density are continuous there,
    every level has a quantile, and mean and variance exist. Equal neighbours are an atom.

    Levels increase strictly within (0, 1), at least two of them; values of a row never decrease.

    CRPS    twice the integral of the pinball loss over all levels, in closed form
    """

    name = "quantiles"

    def __init__(self, levels: ArrayLike, values: ArrayLike) -> None:
        self.levels = np.array(levels, dtype=np.float64)
        self.values = np.array(values, dtype=np.float64)
        self._validate()
        self._gap = np.diff(self.levels)
        self._width = np.diff(self.values, axis=1)
        # Scales b of the tails p exp((y - v) / b): p / b is the density of the next segment.
        self._low = self.levels[0] * self._width[:, 0] / self._gap[0]
        self._high = (1.0 - self.levels[-1]) * self._width[:, -1] / self._gap[-1]

    def _validate(self) -> None:
        levels, values = self.levels, self.values
        if levels.ndim != 1 or len(levels) < 2:
            raise ValueError("levels of Quantiles must be a vector of at least two numbers")
        if not (levels[0] > 0.0 and levels[-1] < 1.0 and (np.diff(levels) > 0.0).all()):
            raise ValueError("levels of Quantiles must increase strictly within (0, 1)")
        if values.ndim != 2 or values.shape[1] != len(levels):
            raise ValueError(
                f"values of Quantiles must have shape (n_rows, {len(levels)}), not {values.shape}"
            )
        small = np.asarray((np.abs(values) <= LARGEST).all(axis=1))
        require_rows("values of Quantiles", values, small, f"finite, at most {LARGEST:g}")
        ascending = (np.diff(values, axis=1) >= 0.0).all(axis=1)
        if not ascending.all():
            row = int(np.argmin(ascending))
            raise ValueError(
                f"quantiles cross in row {row}: {values[row].tolist()}; sorted values,"
                " np.sort(values, axis=1), are nearer to the true quantiles (Chernozhukov,"
                " Fernandez-Val and Galichon, 2010)"
            )

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Self:
        """Return the distribution of some rows; a single index gives one row."""
        return type(self)(self.levels, self.values[as_index(rows)])

    def __repr__(self) -> str:
        levels = np.array2string(self.levels, precision=4, threshold=6, separator=", ")
        return f"{type(self).__name__}(n_rows={len(self)}, levels={levels})"

    @property
    def support(self) -> tuple[Floats, Floats]:
        """Infinite, but for a side whose tail is an atom."""
        low = np.where(self._low > 0.0, -np.inf, self.values[:, 0])
        return low, np.where(self._high > 0.0, np.inf, self.values[:, -1])

    @property
    def mean(self) -> Floats:
        """Mean of the pieces."""
        probability, centre, _ = self._pieces()
        return np.asarray(np.sum(probability * centre, axis=1))

    @property
    def variance(self) -> Floats:
        """Variance of the pieces: within and between them."""
        probability, centre, within = self._pieces()
        between = np.square(centre - self.mean[:, None])
        return np.asarray(np.sum(probability * (within + between), axis=1))

    def _pieces(self) -> tuple[Floats, Floats, Floats]:
        """Return probability, mean and variance of lower tail, segments and upper tail."""
        v = self.values
        probability = np.diff(self.levels, prepend=0.0, append=1.0)
        low, high = v[:, :1] - self._low[:, None], v[:, -1:] + self._high[:, None]
        centre = np.hstack([low, 0.5 * (v[:, 1:] + v[:, :-1]), high])
        squares = [self._low[:, None] ** 2, self._width**2 / 12.0, self._high[:, None] ** 2]
        return probability, centre, np.hstack(squares)

    def _segment(self, y: Floats) -> tuple[np.ndarray[Any, np.dtype[np.intp]], Any]:
        """Return the number of quantiles <= y, and the index of each row for lookups."""
        count = np.zeros(y.shape, dtype=np.intp)
        for column in self.values.T:  # far less memory than one comparison of all
            count += column <= y
        return count, np.arange(len(self))

    def _cdf(self, y: Floats) -> Floats:
        count, row = self._segment(y)
        last = len(self.levels) - 1
        left = np.clip(count - 1, 0, last - 1)
        width = self._width[row, left]
        share = _ratio(np.clip(y - self.values[row, left], 0.0, width), width)
        inner = self.levels[left] + share * self._gap[left]
        below = self.levels[0] * np.exp(_ratio(np.minimum(y - self.values[:, 0], 0.0), self._low))
        above = 1.0 - (1.0 - self.levels[-1]) * np.exp(
            -_ratio(np.maximum(y - self.values[:, -1], 0.0), self._high)
        )
        below = np.where(self._low > 0.0, below, 0.0)
        above = np.where(self._high > 0.0, above, 1.0)
        return np.where(count == 0, below, np.where(count > last, above, inner))

    def _logpdf(self, y: Floats) -> Floats:
        count, row = self._segment(y)
        last = len(self.levels) - 1
        left = np.clip(count - 1, 0, last - 1)
        with np.errstate(divide="ignore"):  # an atom has density infinity
            inside = np.log(self._gap[left]) - np.log(self._width[row, left])
            below = np.log(self.levels[0]) - np.log(self._low)
            above = np.log(1.0 - self.levels[-1]) - np.log(self._high)
        below = below + _ratio(np.minimum(y - self.values[:, 0], 0.0), self._low)
        above = above - _ratio(np.maximum(y - self.values[:, -1], 0.0), self._high)
        below = np.where(self._low > 0.0, below, -np.inf)
        above = np.where((self._high > 0.0) | (y == self.values[:, -1]), above, -np.inf)
        at_atom = (self._width[row, np.clip(count - 2, 0, last - 1)] == 0.0) & (count > 1)
        at_atom &= y == self.values[row, np.clip(count - 1, 0, last)]
        density = np.where(count == 0, below, np.where(count > last, above, inside))
        return np.where(at_atom, np.inf, density)

    def _ppf(self, q: Floats) -> Floats:
        last = len(self.levels) - 1
        left = np.clip(np.searchsorted(self.levels, q, side="right") - 1, 0, last - 1)
        row = np.arange(len(self))
        share = np.clip((q - self.levels[left]) / self._gap[left], 0.0, 1.0)
        low, high = self.values[row, left], self.values[row, left + 1]
        inner = low + share * (high - low)
        below = self.values[:, 0] + self._low * np.log(np.minimum(q / self.levels[0], 1.0))
        rest = np.minimum((1.0 - q) / (1.0 - self.levels[-1]), 1.0)
        above = self.values[:, -1] - self._high * np.log(rest)
        return np.where(q < self.levels[0], below, np.where(q > self.levels[-1], above, inner))

    def _crps(self, y: Floats) -> Floats:
        """Add up the integral of (F(x) - [x >= y])^2 dx over tails and segments."""
        first, last = self.values[:, 0], self.values[:, -1]
        score = _tail(self.levels[0], self._low, np.maximum(first - y, 0.0))
        score = score + _tail(1.0 - self.levels[-1], self._high, np.maximum(y - last, 0.0))
        for j, gap in enumerate(self._gap):
            low, high, width = self.values[:, j], self.values[:, j + 1], self._width[:, j]
            split = np.clip(y, low, high)
            level = self.levels[j] + gap * _ratio(split - low, width)
            score = score + (split - low) * _mean_square(self.levels[j], level)
            score = score + (high - split) * _mean_square(1.0 - level, 1.0 - self.levels[j + 1])
        return score


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return the quotient, 0 where the denominator is 0."""
    positive = denominator > 0.0
    return np.where(positive, numerator / np.where(positive, denominator, 1.0), 0.0)


def _mean_square(start: Floats | float, end: Floats | float) -> Floats:
    """Return the mean of the square of a number that goes linearly from start to end."""
    return np.asarray((np.square(start) + start * end + np.square(end)) / 3.0)


def _tail(level: float, scale: Floats, distance: Floats) -> Floats:
    """Return a tail's part of the CRPS for an outcome `distance` inside the tail, 0 if outside.

    The tail is level exp(-t / scale). Its square counts from the outcome outwards, the square of
    its difference from 1 from the outcome to the quantile.
    """
    at_outcome = level * np.exp(-_ratio(distance, scale))
    at_outcome = np.where((scale > 0.0) | (distance == 0.0), at_outcome, 0.0)
    outside = 0.5 * scale * np.square(at_outcome)
    drop = level - at_outcome
    inside = distance - 2.0 * scale * drop + 0.5 * scale * drop * (level + at_outcome)
    return np.asarray(outside + inside)
