"""Raw scores -> calibrated raw scores, by the log loss of rows that the model was not trained on.

    two classes       slope * raw + bias (Platt, 1999)
    several classes   slope * raw, slope = 1 / temperature (Guo, Pleiss, Sun and Weinberger, 2017)

The loss is convex in slope and bias. The summed loss plus a penalty is minimised, the normal prior
of a change by one unit of log odds: (s^2 (slope - 1)^2 + bias^2) / 2, where s is the size of the
raw scores, but at most 1. The penalty keeps the minimum finite where classes are separable. Without
a change it is 0, so that a fit is never worse than no change on the rows that it was fitted to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import sums
from sglb.elementary import exp, log, log1p
from sglb.errors import require_rows
from sglb.weights import read_weights

Floats = NDArray[np.float64]

# Newton's method converges quadratically, in 5 to 15 steps; a step that raises the loss is halved.
MAX_STEPS, MAX_HALVINGS = 100, 60
# Decrease of the summed loss, in nats, at which the fit ends: far below what decides anything.
PRECISION = 1e-9
LARGEST_RAW = 1e100


class _Slopes(NamedTuple):
    """A loss, its gradient (n,) and its hessian (n, n) in slope and, for two classes, bias."""

    value: float
    gradient: Floats
    hessian: Floats


_Objective = Callable[[Floats], _Slopes]


@dataclass(frozen=True)
class ProbabilityScaling:
    """A calibration of raw scores: `slope` >= 0, and a `bias` for two classes.

    A slope below 1 makes probabilities less extreme. The order of rows does not change unless the
    slope is 0, where the raw scores are worse than none.
    """

    slope: float = 1.0
    bias: float = 0.0

    @classmethod
    def fit(cls, raw: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Self:
        """Return the calibration with the lowest log loss.

        raw has shape (n_rows,) with y in 0 and 1, or (n_rows, n_classes) with class indices y; they
        must be of rows that the model was not trained on. Weights count equal rows.
        """
        scores, label, weights = _read(raw, y, weight)
        if scores.ndim == 1:
            objective = _penalise(_two_classes(scores, label, weights), scores, weights)
            slope, bias = _minimise(objective, np.array([1.0, 0.0]))
            return cls(float(slope), float(bias))
        # Only differences matter: from the largest score of a row nothing overflows.
        scores = scores - scores.max(axis=1, keepdims=True)
        objective = _penalise(_several_classes(scores, label, weights), scores, weights)
        return cls(float(_minimise(objective, np.array([1.0]))[0]))

    def apply(self, raw: ArrayLike) -> Floats:
        """Return calibrated raw scores, in the shape of raw; their link gives probabilities."""
        return self.slope * np.asarray(raw, dtype=np.float64) + self.bias


def _read(
    raw: ArrayLike, y: ArrayLike, weight: ArrayLike | None
) -> tuple[Floats, NDArray[np.intp], Floats]:
    scores, label = np.asarray(raw, dtype=np.float64), np.asarray(y)
    if scores.ndim not in (1, 2) or not len(scores) or label.shape != scores.shape[:1]:
        raise ValueError(
            f"raw has shape {scores.shape} and y {label.shape}; expected (n_rows,) or (n_rows,"
            " n_classes), and (n_rows,), with at least a row"
        )
    # Squares of larger ones, times rows, could overflow.
    small = np.asarray((np.abs(scores) <= LARGEST_RAW).reshape(len(scores), -1).all(axis=1))
    require_rows("raw", scores, small, f"numbers of at most {LARGEST_RAW:g}")
    n_classes = 2 if scores.ndim == 1 else scores.shape[1]
    require_rows("y", label, np.isin(label, np.arange(n_classes)), f"a class 0..{n_classes - 1}")
    weights = read_weights(weight, len(label))
    if not weights.any():
        raise ValueError("weight is zero in every row; at least one must be positive")
    return scores, label.astype(np.intp), weights


def _two_classes(raw: Floats, y: NDArray[np.intp], weight: Floats) -> _Objective:
    """Return log(1 + exp(z)) - y z summed over rows, z = slope raw + bias."""

    def slopes(x: Floats) -> _Slopes:
        z = x[0] * raw + x[1]
        tail = exp(-np.abs(z))
        loss = np.maximum(z, 0.0) - y * z + log1p(tail)
        probability = np.where(z > 0.0, 1.0, tail) / (1.0 + tail)
        error, curvature = probability - y, tail / np.square(1.0 + tail)
        gradient = [sums.total(error * raw, weight), sums.total(error, weight)]
        mixed = sums.total(curvature * raw, weight)
        hessian = [
            [sums.total(curvature * np.square(raw), weight), mixed],
            [mixed, sums.total(curvature, weight)],
        ]
        return _Slopes(sums.total(loss, weight), np.array(gradient), np.array(hessian))

    return slopes


def _several_classes(raw: Floats, y: NDArray[np.intp], weight: Floats) -> _Objective:
    """Return log sum_c exp(z_c) - z_y summed over rows, z = slope raw."""
    at_label = np.take_along_axis(raw, y[:, None], axis=1)[:, 0]

    def slopes(x: Floats) -> _Slopes:
        odds = exp(x[0] * raw)
        total = sums.over_axis(odds)
        mean = sums.over_axis(odds * raw) / total
        spread = sums.over_axis(odds * np.square(raw - mean[:, None])) / total
        value = sums.total(log(total) - x[0] * at_label, weight)
        gradient, hessian = sums.total(mean - at_label, weight), sums.total(spread, weight)
        return _Slopes(value, np.array([gradient]), np.array([[hessian]]))

    return slopes


def _penalise(objective: _Objective, raw: Floats, weight: Floats) -> _Objective:
    """Add the penalty of a change to an objective."""
    squares = np.square(raw).reshape(len(raw), -1).max(axis=1)
    mean = sums.mean(squares, weight)
    # Where all raw scores are 0 any slope is as good: 1 is chosen.
    strength = np.array([min(mean, 1.0) or 1.0, 1.0])
    origin = np.array([1.0, 0.0])

    def slopes(x: Floats) -> _Slopes:
        plain, n = objective(x), len(x)
        change = x - origin[:n]
        pull = strength[:n] * change
        return _Slopes(
            plain.value + 0.5 * sums.total(pull * change),
            plain.gradient + pull,
            plain.hessian + np.diag(strength[:n]),
        )

    return slopes


def _minimise(objective: _Objective, start: Floats) -> Floats:
    """Return the minimum over slopes >= 0 of a strictly convex function."""
    flat = _newton(objective, np.zeros(len(start)), np.arange(len(start)) > 0)
    if objective(flat).gradient[0] >= 0.0:  # by convexity all positive slopes are worse
        return flat
    return _newton(objective, start, np.ones(len(start), dtype=bool))


def _newton(objective: _Objective, start: Floats, free: NDArray[np.bool_]) -> Floats:
    """Return the minimum over the free coordinates; the others keep their start."""
    x, at = start, objective(start)
    for _ in range(MAX_STEPS):
        step = np.zeros(len(x))
        step[free] = _solve(at.hessian[np.ix_(free, free)], at.gradient[free])
        if sums.total(step * at.gradient) <= PRECISION:
            break
        if step[0] > 0.9 * x[0] > 0.0:  # the slope stays positive, where nothing overflows
            step = step * (0.9 * x[0] / step[0])
        for _ in range(MAX_HALVINGS):
            trial = objective(x - step)
            if trial.value <= at.value:
                break
            step = 0.5 * step
        else:
            break
        x, at = x - step, trial
    return x


def _solve(hessian: Floats, gradient: Floats) -> Floats:
    """Return the Newton step by Cramer's rule: LAPACK's last bits depend on the processor."""
    if len(gradient) < 2:
        return np.asarray(gradient / hessian.diagonal())
    (a, b), (_, d) = hessian
    p, q = gradient
    return np.asarray(np.array([d * p - b * q, a * q - b * p]) / (a * d - b * b))
