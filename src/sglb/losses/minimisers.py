"""Constants of a weighted target in closed form: where a chain may start, how wide the target is.

Weights are multiplicities. No result depends on the order of the rows: sums are exact, and
quantiles are looked up in sums that are.
"""

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.elementary import log
from sglb.target import Target
from sglb.weights import are_equal

Floats = NDArray[np.float64]


def quantile(target: Target, level: float) -> float:
    """Return a minimiser of the pinball loss: the midpoint of all minimisers if several."""
    if are_equal(target.weight):
        return float(np.quantile(target.values, level, method="averaged_inverted_cdf"))
    target = target.take(target.weight > 0)
    y, weight = target.values, target.weight
    order = np.argsort(y)
    # Rows of equal y may come in any order: the sum up to the last of them is the same.
    y, below = y[order], sums.running(weight[order])
    first = int(np.searchsorted(below, level * below[-1], side="left"))
    last = int(np.searchsorted(below, level * below[-1], side="right"))
    last = min(last, len(y) - 1)
    return float(0.5 * y[first] + 0.5 * y[last])


def class_weights(target: Target, n_classes: int) -> Floats:
    """Return the weight of each class; an absent class counts as half a row of average weight.

    So its probability is about 1 / (2 N) instead of 0, and its logarithm finite.
    """
    y, weight = target.values, target.weight
    weights = sums.by_group(y.astype(np.int32), np.ones_like(y), n_classes, weight)
    weights[weights == 0] = target.total_weight / (2 * np.count_nonzero(weight))
    return weights


def log_odds(target: Target) -> float:
    """Return log(W_1 / W_0); +-log(2 N) when a class is absent."""
    negative, positive = class_weights(target, 2)
    return log(float(positive / negative))


def log_mean(target: Target) -> float:
    """Return log(mean of y); log(1 / (2 N)) when every y is 0."""
    return log(target.mean(target.values) or 0.5 / np.count_nonzero(target.weight))


def spread(target: Target) -> float:
    """Return the interquartile range / 1.349: the standard deviation of a normal y, and robust to
    outliers. Where more than half of the rows are equal, the standard deviation; 1 for a constant.
    """
    low, high = (quantile(target, level) for level in (0.25, 0.75))
    if high > low:
        return (high - low) / 1.349
    y = target.values
    deviation = float(np.sqrt(target.mean(np.square(y - target.mean(y)))))
    return deviation if deviation > 0.0 else 1.0
