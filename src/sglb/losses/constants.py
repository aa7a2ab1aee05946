"""The best constant score of any loss, found numerically.

    argmin over z of sum_i w_i L(z, y_i) / sum_i w_i

A scan over quantiles of y and a few round numbers brackets the lowest valley, which may be one of
several; inside the bracket the mean gradient has a root.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar

from sglb import sums
from sglb.losses.base import Floats, Loss
from sglb.losses.minimisers import quantile, spread

LEVELS = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
# For raw scores that are not in the unit of y: logarithms of it, log-odds.
NUMBERS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
DOUBLINGS = 60
ROUNDING = 1e-12  # relative, of a mean of losses


def best_constant(loss: Loss, y: Floats, weight: Floats | None) -> Floats:
    """Return the constant (n_outputs,) of the lowest mean loss.

    Where there is none, because the loss falls towards infinity or is flat, the median of y in
    regression, else 0.
    """
    if loss.n_outputs > 1:
        return _several(loss, y, weight)
    with np.errstate(all="ignore"):
        return np.array([_single(loss, y, weight)])


def _single(loss: Loss, y: Floats, weight: Floats | None) -> float:
    regression = loss.task == "regression"
    middle = quantile(y, weight, 0.5) if regression else 0.0
    length = spread(y, weight) if regression else 1.0

    def mean(method: Callable[[Floats, Floats], Floats], z: float) -> float:
        value = sums.mean(method(y, np.full(len(y), z)), weight)
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
    if min(mean_loss(low), mean_loss(high)) <= lowest + ROUNDING * abs(lowest):  # a plain
        return middle if np.isfinite(mean_loss(middle)) else 0.0

    def mean_gradient(z: float) -> float:
        return mean(loss.gradient, z)

    if mean_gradient(low) * mean_gradient(high) < 0.0:
        root = float(brentq(mean_gradient, low, high, xtol=1e-12 * length, rtol=1e-13))
        if mean_loss(root) <= mean_loss(best):
            return root
    found = minimize_scalar(mean_loss, bounds=(low, high), method="bounded")
    return float(found.x) if found.fun <= mean_loss(best) else best


def _bracket(
    scanned: list[tuple[float, float]], mean_loss: Callable[[float], float], length: float
) -> tuple[float, float, float]:
    """Return the best point and its neighbours, beyond the ends ever farther ones."""
    values = [value for _, value in scanned]
    at = int(np.argmin(values))
    ends = []
    best, value = scanned[at]
    for sign, neighbour in ((-1.0, at - 1), (1.0, at + 1)):
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


def _several(loss: Loss, y: Floats, weight: Floats | None) -> Floats:
    """Return the best of the minima that are found from zero and from the median of y."""
    n_rows, n_outputs = len(y), loss.n_outputs

    def mean_loss(z: Floats) -> tuple[float, Floats]:
        raw = np.broadcast_to(z, (n_rows, n_outputs))
        value = sums.mean(loss.loss(y, raw), weight)
        slope = np.array([sums.mean(one, weight) for one in loss.gradient(y, raw).T])
        if np.isfinite(value) and np.isfinite(slope).all():
            return value, slope
        return np.inf, np.zeros(n_outputs)

    starts = [np.zeros(n_outputs)]
    if loss.task == "regression":
        middle = quantile(y, weight, 0.5)
        starts += [middle * row for row in np.eye(n_outputs)] + [np.full(n_outputs, middle)]
    best, lowest = starts[0], np.inf
    with np.errstate(all="ignore"):
        for start in starts:
            value = mean_loss(start)[0]
            if not np.isfinite(value):
                continue
            found = minimize(mean_loss, start, jac=True, method="L-BFGS-B")
            at, value = (found.x, found.fun) if np.isfinite(found.fun) else (start, value)
            if value < lowest:
                best, lowest = at, value
    return np.asarray(best, dtype=np.float64)
