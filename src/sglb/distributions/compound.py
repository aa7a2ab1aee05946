"""Sums over the number of jumps of a compound Poisson-gamma law (see `tweedie.py`).

The number of jumps n is Poisson with mean `rate`, and n jumps add up to a gamma of shape n alpha in
units of the jumps' scale. The terms of every sum over n are smooth in n with a single peak. A sum
is taken over a window around the peak in strides of a quarter of the shortest length over which a
term changes: the trapezoidal rule with this stride is exact to exp(-2 pi^2 4^2), so that about a
hundred terms are enough for any rate.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from sglb.distributions.special import log_poisson

Floats = NDArray[np.float64]
RowNumbers = NDArray[np.intp]

# A window ends where terms are below exp(-9^2 / 2) = 3e-18 of the peak. Twenty more terms cover
# peaks at few jumps, where the right tail of n is longer than the normal's.
DEVIATIONS, MARGIN = 9.0, 20.0
STRIDES_PER_LENGTH = 4.0
# Terms in memory at a time: 16 MB an array.
BLOCK = 2**21
# The integral over log u in `mean_difference`: the integrand falls as exp(-|log u|), to 1e-12 of
# its peak in 28 units. A step of 0.15 is exact to exp(-pi^2 / 0.3) = 5e-15 where the law is nearly
# normal; jumps of nearly equal size (large alpha) make narrow peaks and need a finer step.
LOG_MARGIN, LOG_STEP = 28.0, 0.15


class Window(NamedTuple):
    """The numbers of jumps that a sum visits: first, first + stride, ..., for each row."""

    first: Floats
    stride: Floats
    n_terms: NDArray[np.int64]


def _window(peak: Floats, deviation: Floats, length: Floats) -> Window:
    """Cover a peak of this standard deviation whose terms change over `length` at least."""
    stride = np.maximum(np.floor(length / STRIDES_PER_LENGTH), 1.0)
    half_width = DEVIATIONS * deviation + MARGIN
    first = np.maximum(np.floor(peak - half_width), 1.0)
    return Window(first, stride, np.ceil((peak + half_width - first) / stride).astype(np.int64) + 1)


def _sum(window: Window, term: Callable[[RowNumbers, Floats], Floats]) -> Floats:
    """Return the sum of term(rows, n) over n, (n_rows,); n has shape (rows, n_terms)."""
    result = np.empty(len(window.first))
    order = np.argsort(window.n_terms, kind="stable")[::-1]  # rows of similar length share a block
    start = 0
    while start < len(order):
        longest = int(window.n_terms[order[start]])
        rows = order[start : start + max(BLOCK // longest, 1)]
        stride = window.stride[rows, None]
        n = window.first[rows, None] + stride * np.arange(longest)
        result[rows] = np.sum(stride * term(rows, n), axis=1)
        start += len(rows)
    return result


def log_density(x: Floats, rate: Floats, alpha: Floats) -> Floats:
    """Return the log density at x > 0, in units of the jumps' scale; all (n_rows,).

    It is the sum of Poisson(n; rate) gamma(x; n alpha) over n >= 1. By Stirling's formula the peak
    is at n = (rate (x / alpha)^alpha)^(1 / (1 + alpha)), with variance n / (1 + alpha) (Dunn and
    Smyth, 2005, eq. 13).
    """

    def log_term(rows: RowNumbers, n: Floats) -> Floats:
        shape = n * alpha[rows, None]
        return log_poisson(n, rate[rows, None]) + log_poisson(shape, x[rows, None]) + np.log(shape)

    peak = np.exp((np.log(rate) + alpha * (np.log(x) - np.log(alpha))) / (1.0 + alpha))
    deviation = np.sqrt(peak / (1.0 + alpha))
    top = np.maximum(np.round(peak), 1.0)[:, None]
    largest = log_term(np.arange(len(x)), top)[:, 0]
    total = _sum(
        _window(peak, deviation, deviation),
        lambda rows, n: np.exp(log_term(rows, n) - largest[rows, None]),
    )
    return largest + np.log(total) - np.log(x)


def _window_of_counts(rate: Floats, alpha: Floats) -> Window:
    """Cover Poisson(n; rate) times a gamma cdf, which rises over sqrt(rate / alpha) jumps."""
    return _window(rate, np.sqrt(rate), np.sqrt(rate / (1.0 + alpha)))


def cdf(x: Floats, rate: Floats, alpha: Floats) -> Floats:
    """Return the probability of at most x >= 0, in units of the jumps' scale; all (n_rows,)."""

    def term(rows: RowNumbers, n: Floats) -> Floats:
        mass = np.exp(log_poisson(n, rate[rows, None]))
        return np.asarray(mass * gammainc(n * alpha[rows, None], x[rows, None]))

    return np.exp(-rate) + _sum(_window_of_counts(rate, alpha), term)


def partial_deficit(x: Floats, rate: Floats, alpha: Floats) -> Floats:
    """Return E[(m - X) [X <= x]] for X in units of the jumps' scale with mean m = rate alpha.

    Given n jumps it is alpha [(rate - n) F_k(x) + n (F_k - F_{k+1})(x)] with k = n alpha, and the
    difference of gamma cdfs is exp(-x) x^k / Gamma(k + 1).
    """

    def term(rows: RowNumbers, n: Floats) -> Floats:
        shape, at = n * alpha[rows, None], x[rows, None]
        mass = np.exp(log_poisson(n, rate[rows, None]))
        step = np.exp(log_poisson(shape, at))
        return np.asarray(mass * ((rate[rows, None] - n) * gammainc(shape, at) + n * step))

    return alpha * (rate * np.exp(-rate) + _sum(_window_of_counts(rate, alpha), term))


def mean_difference(rate: Floats, alpha: Floats) -> Floats:
    """Return E|X - X'| of two independent outcomes, in units of the jumps' scale.

    E|Z| = 2 / pi * integral over u > 0 of (1 - E cos(u Z)) / u^2, where for Z = X - X'
    E cos(u Z) = exp(-2 rate (1 - h)), h = (1 + u^2)^(-alpha / 2) cos(alpha arctan u). The integral
    is taken over log u, around the u at which the integrand bends.
    """
    crossover = -0.5 * np.log(alpha * (alpha + 1.0) * np.maximum(rate, 1.0))
    end = -0.5 * np.log(alpha * (alpha + 1.0))
    step = LOG_STEP / np.sqrt(1.0 + alpha / 10.0)
    n_terms = np.ceil((end - crossover + 2.0 * LOG_MARGIN) / step).astype(np.int64)

    def term(rows: RowNumbers, n: Floats) -> Floats:
        log_u = crossover[rows, None] - LOG_MARGIN + step[rows, None] * n
        u, power = np.exp(log_u), alpha[rows, None]
        angle = power * np.arctan(u)
        # 1 - exp(a) cos(b) without cancellation at small u.
        decay = -0.5 * power * np.log1p(np.square(u))
        lost = 2.0 * np.square(np.sin(0.5 * angle)) - np.expm1(decay) * np.cos(angle)
        return np.asarray(-np.expm1(-2.0 * rate[rows, None] * lost) / u)

    window = Window(np.ones_like(rate), np.ones_like(rate), n_terms)
    return 2.0 / np.pi * step * _sum(window, term)
