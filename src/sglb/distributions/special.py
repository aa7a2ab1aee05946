"""Special functions that keep their digits where textbook formulas cancel.

The density of counts and of gamma outcomes is exp(-x) x^k / Gamma(k + 1) up to simple factors. Its
logarithm by that formula is a small difference of terms of size k log k: at k = 1e12 no digit is
left. Loader (2000), "Fast and accurate computation of binomial probabilities", writes it as a
sum of small terms.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

Floats = NDArray[np.float64]

LOG_TWO_PI = float(np.log(2.0 * np.pi))
# From here on five terms of Stirling's series are exact: the sixth, .0019 / k^11, is below 1e-15.
STIRLING_FROM = 15.0
STIRLING_TERMS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
# Below, d - log(1 + d) loses more than one digit. Eight terms of the series in s^2 < 0.0028 leave
# an error of 0.0028^8 < 1e-20.
SMALL_EXCESS = 0.1
EXCESS_TERMS = 8
# Up to here the textbook formula, five times as fast, has terms below 1e4 and an error below 1e-11.
DIRECT_TO = 1e3
# Outcomes in units of a scale are cut here: densities are 0 long before, and infinity - infinity is
# avoided.
FARTHEST = 1e300


def stirling_error(k: Floats) -> Floats:
    """Return log Gamma(k + 1) - [(k + 1/2) log k - k + log(2 pi) / 2] for k > 0."""
    large = np.maximum(k, STIRLING_FROM)
    inverse_square = 1.0 / np.square(large)
    series = np.zeros_like(large)
    for term in reversed(STIRLING_TERMS):
        series = series * inverse_square + term
    small = np.minimum(k, STIRLING_FROM)
    direct = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - 0.5 * LOG_TWO_PI
    return np.where(k >= STIRLING_FROM, series / large, direct)


def excess(log_ratio: Floats, difference: Floats) -> Floats:
    """Return r - 1 - log r for log_ratio = log r and difference = r - 1: never negative.

    Near r = 1 by the series of log r = 2 artanh(s), s = d / (2 + d), without its first term.
    """
    near = np.abs(difference) < SMALL_EXCESS
    d = np.where(near, difference, 0.0)
    s = d / (2.0 + d)
    square = np.square(s)
    series = np.zeros_like(s)
    for power in range(2 * EXCESS_TERMS + 1, 1, -2):
        series = series * square + 1.0 / power
    return np.where(near, s * d - 2.0 * s * square * series, difference - log_ratio)


def log_poisson(k: Floats, x: Floats) -> Floats:
    """Return log(exp(-x) x^k / Gamma(k + 1)) for real k >= 0 and x >= 0.

    For whole k it is the log of the Poisson probability of k with mean x.
    """
    k, x = np.broadcast_arrays(np.asarray(k, np.float64), np.asarray(x, np.float64))
    if k.max(initial=0.0) <= DIRECT_TO and x.max(initial=0.0) <= DIRECT_TO:
        return np.asarray(xlogy(k, x) - x - gammaln(k + 1.0))
    inner = (k > 0.0) & (x > 0.0)
    safe_k, safe_x = np.where(inner, k, 1.0), np.where(inner, x, 1.0)
    distance = safe_k * excess(np.log(safe_x) - np.log(safe_k), (safe_x - safe_k) / safe_k)
    value = -distance - 0.5 * (LOG_TWO_PI + np.log(safe_k)) - stirling_error(safe_k)
    return np.where(inner, value, np.where(k == 0.0, -x, -np.inf))
