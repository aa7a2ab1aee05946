"""The best constant score of any loss, by numerical search.

    argmin over z of sum_i w_i L(z, y_i) / sum_i w_i

A scan over quantiles of y and a few round numbers brackets the lowest of possibly several minima;
inside the bracket the mean gradient has a root.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from sglb import sums
from sglb.losses.base import Floats, Loss
from sglb.losses.minimisers import quantile, spread
from sglb.target import Target

LEVELS = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
# For raw scores that are not in the unit of y: logarithms of y, log-odds.
NUMBERS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
DOUBLINGS = 60
ROUNDING = 1e-12  # relative error of a mean loss
# Of a descent over several outputs: steps, halvings of a step, and the share of the fall that its
# slope promises which a step must achieve (Armijo).
MOST_STEPS, MOST_HALVINGS, ENOUGH = 200, 50, 1e-4


def best_constant(loss: Loss, target: Target) -> Floats:
    """Return the constant (n_outputs,) of the lowest mean loss.

    Where it does not exist, because the loss falls towards infinity or is flat, the median of y in
    regression, else 0.
    """
    with np.errstate(all="ignore"):
        if loss.n_outputs > 1:
            return _several_outputs(loss, target)
        return np.array([_single_output(loss, target)])


def _single_output(loss: Loss, target: Target) -> float:
    y = target.values
    regression = loss.task == "regression"
    median = quantile(target, 0.5) if regression else 0.0
    length = spread(target) if regression else 1.0

    def mean(method: Callable[[Floats, Floats], Floats], z: float) -> float:
        value = target.mean(method(y, np.full(len(y), z)))
        return value if np.isfinite(value) else np.inf

    def mean_loss(z: float) -> float:
        return mean(loss.loss, z)

    points = {0.0, *NUMBERS, *(-number for number in NUMBERS)}
    if regression:
        points |= {float(z) for z in np.quantile(y, LEVELS)}
    scanned = sorted((z, mean_loss(z)) for z in points)
    low, best, high = _bracket(scanned, mean_loss, length)
    lowest = mean_loss(best)
    if not np.isfinite(lowest):
        return 0.0
    is_flat = min(mean_loss(low), mean_loss(high)) <= lowest + ROUNDING * abs(lowest)
    if is_flat:
        return median if np.isfinite(mean_loss(median)) else 0.0

    def mean_gradient(z: float) -> float:
        return mean(loss.gradient, z)

    if mean_gradient(low) * mean_gradient(high) < 0.0:
        root = float(brentq(mean_gradient, low, high, xtol=1e-12 * length, rtol=1e-13))
        if mean_loss(root) <= mean_loss(best):
            return root
    minimum = minimize_scalar(mean_loss, bounds=(low, high), method="bounded")
    return float(minimum.x) if minimum.fun <= mean_loss(best) else best


def _bracket(
    scanned: list[tuple[float, float]], mean_loss: Callable[[float], float], length: float
) -> tuple[float, float, float]:
    """Return the best point between two neighbours; beyond the scan, steps double until the loss
    rises.
    """
    lowest = int(np.argmin([value for _, value in scanned]))
    ends = []
    best, value = scanned[lowest]
    for sign, neighbour in ((-1.0, lowest - 1), (1.0, lowest + 1)):
        if 0 <= neighbour < len(scanned):
            ends.append(scanned[neighbour][0])
            continue
        step, edge = sign * length, best
        for _ in range(DOUBLINGS):
            edge = best + step
            if not mean_loss(edge) < value:
                break
            best, value, step = edge, mean_loss(edge), 2.0 * step
        ends.append(edge)
    return ends[0], best, ends[1]


def _several_outputs(loss: Loss, target: Target) -> Floats:
    """Return the best of the minima that descents from zero and from the median of y reach."""
    y, n_rows, n_outputs = target.values, len(target), loss.n_outputs

    def mean_loss(z: Floats) -> tuple[float, Floats]:
        raw = np.broadcast_to(z, (n_rows, n_outputs))
        value = target.mean(loss.loss(y, raw))
        slope = np.array([target.mean(output) for output in loss.gradient(y, raw).T])
        if np.isfinite(value) and np.isfinite(slope).all():
            return value, slope
        return np.inf, np.zeros(n_outputs)

    starts = [np.zeros(n_outputs)]
    if loss.task == "regression":
        median = quantile(target, 0.5)
        starts += [median * row for row in np.eye(n_outputs)] + [np.full(n_outputs, median)]
    best, lowest = starts[0], np.inf
    for start in starts:
        value = mean_loss(start)[0]
        if not np.isfinite(value):
            continue
        z, value = _descend(mean_loss, start)
        if value < lowest:
            best, lowest = z, value
    return np.asarray(best, dtype=np.float64)


def _descend(
    function: Callable[[Floats], tuple[float, Floats]], start: Floats
) -> tuple[Floats, float]:
    """Return a local minimum and its value by the method of Broyden, Fletcher, Goldfarb and Shanno.

    SciPy's adds in an order that depends on the processor.
    """
    z, (value, slope) = start, function(start)
    inverse = np.eye(len(start)) / max(1.0, float(np.abs(slope).max()))
    for _ in range(MOST_STEPS):
        direction = -sums.product(inverse, slope)
        fall = sums.total(direction * slope)
        if not fall < 0.0:
            break
        length = 1.0
        for _ in range(MOST_HALVINGS):
            trial, trial_slope = function(z + length * direction)
            if trial <= value + ENOUGH * length * fall:
                break
            length *= 0.5
        else:
            break
        change = length * direction
        inverse = _update(inverse, change, trial_slope - slope)
        fallen = value - trial
        z, value, slope = z + change, trial, trial_slope
        if fallen <= ROUNDING * abs(value):
            break
    return z, value


def _update(inverse: Floats, change: Floats, slope_change: Floats) -> Floats:
    """Return the inverse Hessian that explains how a change of z changes the slope."""
    curvature = sums.total(change * slope_change)
    if not curvature > 0.0:
        return inverse
    moved = sums.product(inverse, slope_change)
    factor = (1.0 + sums.total(slope_change * moved) / curvature) / curvature
    mixed = np.outer(moved, change) / curvature
    return np.asarray(inverse + factor * np.outer(change, change) - mixed - mixed.T)
