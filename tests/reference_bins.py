"""Plain NumPy twins of the kernels that turn numbers into codes."""

import math
from functools import cache
from itertools import pairwise

import numpy as np

from reference_noise import THRESHOLDS, stretch_points, words


def logarithm(x):
    """ln x by 2 artanh((m - 1) / (m + 1)) + e ln 2, every operation as the core has it.

    Gains of cuts can tie, then the last bit of a logarithm decides.
    """
    m, e = math.frexp(x)  # m in [1/2, 1)
    if m < math.sqrt(0.5):
        m, e = 2 * m, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 21.0
    for odd in range(19, 1, -2):
        p = p * z + 1.0 / odd
    high, low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    return e * high + (e * low + 2.0 * s * z * p) + 2.0 * s


def best_cut(counts, begin, end):
    """Where to cut the distinct values begin..end: next to the median, and the gain of it."""
    below = np.concatenate([[0], np.cumsum(counts[begin:end])]).tolist()
    total = below[-1]
    best = (-math.inf, None)
    if end - begin < 2:
        return best
    median = next((i for i in range(1, end - begin) if below[i] >= total // 2), end - begin)
    for i in (median - 1, median):
        if 0 < i < end - begin:
            gain = logarithm(below[i]) + logarithm(total - below[i]) - logarithm(total)
            if gain > best[0]:
                best = (gain, begin + i)
    return best


def column_thresholds(values, max_bins):
    """Thresholds of one column: greedy cuts that gain most log count, midway between values."""
    values = np.asarray(values, dtype=np.float64)
    distinct, counts = np.unique(values[~np.isnan(values)] + 0.0, return_counts=True)
    edges = [0, len(distinct)]
    if len(distinct) <= max_bins:
        edges = list(range(len(distinct) + 1))
    cut = cache(lambda begin, end: best_cut(counts, begin, end))
    while len(edges) - 1 < max_bins and len(distinct) > max_bins:
        # max takes the first of equals: the leftmost bin.
        _, edge = max((cut(*bin) for bin in pairwise(edges)), key=lambda best: best[0])
        edges = sorted([*edges, edge])
    return [between(distinct[i - 1], distinct[i]) for i in edges[1:-1]]


def between(low, high):
    """A number t with low <= t < high, halfway where that can be represented."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


def find_thresholds(x, max_bins, sample_rows, seed):
    """thresholds (F, max_bins - 1) padded with infinity, n_thresholds (F,)."""
    n_rows, n_features = x.shape
    rows = np.arange(n_rows)
    if sample_rows < n_rows:
        points = words(seed, 0, THRESHOLDS, 0, 0, sample_rows)[:, 0]
        rows = stretch_points(n_rows, points)
    thresholds = np.full((n_features, max_bins - 1), np.inf)
    n_thresholds = np.zeros(n_features, dtype=np.int32)
    for f in range(n_features):
        column = column_thresholds(x[rows, f], max_bins)
        thresholds[f, : len(column)] = column
        n_thresholds[f] = len(column)
    return thresholds, n_thresholds


def encode(x, thresholds, n_thresholds):
    """Codes (F, N): 0 for a missing value, else 1 + number of thresholds below it."""
    columns = np.empty(x.shape[::-1], dtype=np.uint8)
    for f, n in enumerate(n_thresholds):
        values = x[:, f].astype(np.float64)
        below = (thresholds[f, :n] < values[:, None]).sum(axis=1)
        columns[f] = np.where(np.isnan(values), 0, 1 + below)
    return columns


def to_rows(columns):
    """Codes (F, N) to (N, S), a multiple of eight features padded with 0."""
    n_features, n_rows = columns.shape
    rows = np.zeros((n_rows, -(-n_features // 8) * 8), dtype=np.uint8)
    rows[:, :n_features] = columns.T
    return rows
