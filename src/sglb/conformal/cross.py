"""Conformal intervals from out-of-fold predictions: every row trains and every row calibrates."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb.conformal.intervals import read_scale
from sglb.conformal.ranks import (
    Floats,
    Intervals,
    check_coverage,
    rank,
    read_rows,
    warn_too_few,
)
from sglb.errors import require_rows

# Halvings of a bracket of two floats after which its ends are neighbours: 52 digits, and some more
# for ends of different size.
HALVINGS = 100


class CrossConformal:
    """CV+ intervals (Barber, Candes, Ramdas and Tibshirani, 2021).

    K models are each trained without the rows of a fold. The residual R_i of a row comes from the
    model that was trained without it. The interval of a new row x has the ends

        lower    floor(alpha (n + 1))-th smallest of mean_k(i)(x) - R_i scale_k(i)(x)
        upper    ceil((1 - alpha) (n + 1))-th smallest of mean_k(i)(x) + R_i scale_k(i)(x)

    over all n training rows i, with alpha = 1 - coverage and k(i) the fold of row i. For
    exchangeable rows, and folds drawn independently of them, the coverage is at least

        1 - 2 alpha                                    K = n (jackknife+)
        1 - 2 alpha - 2 (1 - 1/K) / (n/K + 1)          folds of any sizes
        1 - 2 alpha - (1 - K/n) / (K + 1)              folds of equal size

    whatever the models are; the best of these is `Intervals.guarantee`. It is 1 - alpha up to small
    terms for models that change little when a fold is left out, and in practice close to that.

    The last two are Theorem 4, which is stated for folds of equal size. The first of them needs no
    such folds. The conformal p-value of fold k, p_k = (1 + number of its R_i that are not below the
    new residual) / (n_k + 1), is valid whatever n_k is. Outside the interval the sum of
    (n_k + 1) p_k is at most alpha (n + 1) + K - 1, so that the mean of p_k, weighted by n_k + 1, is
    at most alpha + (1 - alpha) (K - 1) / (n + K), and twice such a mean of p-values is a p-value
    (Vovk and Wang, 2020). The second needs rows and new rows to change places fold by fold.

    y, mean and scale (n_rows,) are out-of-fold values of the training rows, fold (n_rows,) their
    folds 0..K-1. Weights are not supported: CV+ has no proof for rows that are not exchangeable.
    """

    def __init__(
        self, y: ArrayLike, mean: ArrayLike, fold: ArrayLike, scale: ArrayLike = 1.0
    ) -> None:
        y, mean = read_rows(y=y, mean=mean)
        scores = np.abs(y - mean) / read_scale(scale, len(y))
        number = read_fold(fold, len(y))
        n_folds = int(number.max()) + 1
        self.scores = [np.sort(scores[number == index]) for index in range(n_folds)]

    def __len__(self) -> int:
        return sum(map(len, self.scores))

    def guarantee(self, coverage: float) -> float:
        """Return the proven coverage of intervals with this nominal coverage, at least 0."""
        n_rows, n_folds = len(self), len(self.scores)
        loss = 2.0 * (1.0 - 1.0 / n_folds) / (n_rows / n_folds + 1.0)
        if len(set(map(len, self.scores))) == 1:
            loss = min(loss, (1.0 - n_folds / n_rows) / (n_folds + 1.0))
        return max(1.0 - 2.0 * (1.0 - coverage) - loss, 0.0)

    def interval(
        self, mean: ArrayLike, scale: ArrayLike | None = None, coverage: float = 0.9
    ) -> Intervals:
        """Return intervals for new rows; mean and scale (n_folds, n_rows) of every fold's model."""
        check_coverage(coverage)
        means = self._read_folds("mean", mean)
        scales = np.ones_like(means) if scale is None else self._read_folds("scale", scale)
        if scales.shape != means.shape:
            raise ValueError(f"scale must have shape {means.shape}, not {scales.shape}")
        require_rows("scale", scales.T, np.asarray((scales > 0.0).all(axis=0)), "positive")
        # The lower end is the negative of an upper end: the k-th smallest of -mean + R scale.
        k = rank(len(self), coverage)
        if k > len(self):
            bounds = np.tile([-math.inf, math.inf], (means.shape[1], 1))
            warn_too_few(len(self), coverage, "intervals are infinite")
        else:
            upper = self._order_statistic(means, scales, k)
            bounds = np.column_stack([-self._order_statistic(-means, scales, k), upper])
        return Intervals(bounds, coverage, self.guarantee(coverage), len(self))

    def _read_folds(self, name: str, values: ArrayLike) -> Floats:
        table = np.asarray(values, dtype=np.float64)
        if table.ndim != 2 or len(table) != len(self.scores):
            raise ValueError(
                f"{name} must have shape ({len(self.scores)}, n_rows), the values of every fold's"
                f" model, not {table.shape}"
            )
        require_rows(name, table.T, np.asarray(np.isfinite(table).all(axis=0)), "finite")
        return table

    def _order_statistic(self, centre: Floats, scale: Floats, k: int) -> Floats:
        """Return the k-th smallest of centre_f + scale_f R over all folds f and residuals R of f.

        Halves a bracket on the value: n_rows * n_new numbers need not be stored. The upper end of
        the bracket is returned, where the count is large enough, so that rounding never narrows.
        """
        largest = np.array([scores[-1] for scores in self.scores])[:, None]
        low, high = centre.min(axis=0), (centre + scale * largest).max(axis=0)
        low = np.nextafter(low, -np.inf)
        for _ in range(HALVINGS):
            middle = low + 0.5 * (high - low)
            enough = self._count(centre, scale, middle) >= k
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
            if (high <= np.nextafter(low, np.inf)).all():
                break
        return np.asarray(high)

    def _count(self, centre: Floats, scale: Floats, value: Floats) -> NDArray[np.intp]:
        """Return how many centre_f + scale_f R are at most a value of every new row."""
        count = np.zeros(len(value), dtype=np.intp)
        for scores, centre_f, scale_f in zip(self.scores, centre, scale, strict=True):
            count += np.searchsorted(scores, (value - centre_f) / scale_f, side="right")
        return count


def read_fold(fold: ArrayLike, n_rows: int) -> NDArray[np.intp]:
    """Return the fold of each row, of at least two folds 0, 1, ... that all have rows."""
    number = np.asarray(fold)
    if number.shape != (n_rows,):
        raise ValueError(f"fold must have shape ({n_rows},), not {number.shape}")
    require_rows("fold", number, (number >= 0) & (number == np.floor(number)), "a fold 0, 1, ...")
    number = number.astype(np.intp)
    sizes = np.bincount(number)
    if len(sizes) < 2 or not sizes.all():
        raise ValueError(
            "fold must number at least two folds 0, 1, ..., each with rows; the numbers of rows"
            f" are {sizes.tolist()}"
        )
    return number
