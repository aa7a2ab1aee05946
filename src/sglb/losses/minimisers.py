"""Constants of a weighted target, closed form: where a chain may start, how wide the target is.

Weights are multiplicities. No result depends on the order of the rows: sums are exact, and
quantiles are found among sums that are.
"""

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.elementary import log

Floats = NDArray[np.float64]


def total(weight: Floats | None, y: Floats) -> float:
    """W = sum of weights."""
    return float(len(y)) if weight is None else sums.total(weight)


def mean(y: Floats, weight: Floats | None) -> float:
    """sum w y / W, the minimiser of the squared loss."""
    return sums.mean(y, weight)


def quantile(y: Floats, weight: Floats | None, level: float) -> float:
    """A minimiser of the pinball loss: the midpoint of all of them if there are several."""
    if weight is None:
        return float(np.quantile(y, level, method="averaged_inverted_cdf"))
    kept = weight > 0
    y, weight = y[kept], weight[kept]
    order = np.argsort(y)
    # Rows of equal y may come in any order: where they end, the sum is the same.
    y, below = y[order], sums.running(weight[order])
    first = int(np.searchsorted(below, level * below[-1], side="left"))
    last = int(np.searchsorted(below, level * below[-1], side="right"))
    last = min(last, len(y) - 1)
    return float(0.5 * y[first] + 0.5 * y[last])


def class_weights(y: Floats, weight: Floats | None, n_classes: int) -> Floats:
    """Weight of each class; an absent class counts as half a row of average weight.

    So its probability is about 1 / (2 N) instead of 0, and its logarithm finite.
    """
    if weight is None:
        found = np.bincount(y.astype(np.intp), minlength=n_classes).astype(np.float64)
    else:
        found = sums.by_group(y.astype(np.int32), weight, n_classes)
    rows = len(y) if weight is None else int(np.count_nonzero(weight))
    found[found == 0] = total(weight, y) / (2 * rows)
    return found


def log_odds(y: Floats, weight: Floats | None) -> float:
    """log(W_1 / W_0); +-log(2 N) when a class is absent."""
    negative, positive = class_weights(y, weight, 2)
    return log(float(positive / negative))


def log_mean(y: Floats, weight: Floats | None) -> float:
    """log(mean of y); log(1 / (2 N)) when every y is 0."""
    rows = len(y) if weight is None else int(np.count_nonzero(weight))
    return log(mean(y, weight) or 0.5 / rows)


def spread(y: Floats, weight: Floats | None) -> float:
    """Interquartile range / 1.349, a normal's standard deviation that outliers cannot inflate.

    Where more than half of the rows are equal, the standard deviation itself; 1 for a constant.
    """
    low, high = (quantile(y, weight, level) for level in (0.25, 0.75))
    if high > low:
        return (high - low) / 1.349
    deviation = float(np.sqrt(mean(np.square(y - mean(y, weight)), weight)))
    return deviation if deviation > 0.0 else 1.0
