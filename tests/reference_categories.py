"""Plain NumPy twins of the kernels for categorical columns."""

import math

import numpy as np

from reference_noise import PERMUTATION, words


def permutation(seed, copy, n):
    """Fisher-Yates from the end: row i is exchanged with a row j of 0..i."""
    order = list(range(n))
    draws = words(seed, copy, PERMUTATION, 0, 0, n).tolist()
    for i in range(n - 1, 0, -1):
        j = (draws[i][1] << 32 | draws[i][0]) * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return np.array(order, dtype=np.uint32)


def level_sums(levels, n_levels, targets, weight):
    """Weighted sums (K, L) of targets and (L,) of weights by level, column after column, exact."""
    weight = np.ones(levels.shape[1]) if weight is None else weight
    masks = [
        column == level for column, n in zip(levels, n_levels, strict=True) for level in range(n)
    ]
    sums = [[math.fsum((weight * single)[mask]) for mask in masks] for single in targets]
    return np.array(sums), np.array([math.fsum(weight[mask]) for mask in masks])


def ordered_statistics(levels, targets, weight, order, means, unit):
    """(C * K, N): mean of each target over the earlier rows of a level, and `unit` of the mean."""
    weight = np.ones(levels.shape[1]) if weight is None else weight
    out = np.empty((len(levels) * len(targets), levels.shape[1]))
    for c, column in enumerate(levels):
        for k, target in enumerate(targets):
            sums, counts = {}, {}
            for row in order.tolist():
                level = int(column[row])
                s, n = sums.get(level, 0.0), counts.get(level, 0.0)
                out[c * len(targets) + k, row] = (s + unit * means[k]) / (n + unit)
                sums[level] = s + weight[row] * target[row]
                counts[level] = n + weight[row]
    return out


def combine(levels, members):
    """Numbers of the joint levels of the member columns, in order of appearance."""
    number = {}
    joint = levels[[member for member in members if member >= 0]].T.tolist()
    return np.array([number.setdefault(tuple(row), len(number)) for row in joint], dtype=np.int32)


def combination_gain(levels, members, targets, weight, ridge):
    """Share of the squares of targets that the other rows of a joint level explain, and the
    standard deviation of that share if signs are coins: sum over pairs of g_i^2 g_j^2 / d^2.
    """
    weight = np.ones(levels.shape[1]) if weight is None else weight
    number = combine(levels, members)
    gain, variance = 0.0, 0.0
    for level in range(number.max(initial=-1) + 1):
        rows = number == level
        w = weight[rows]
        divisor = w.sum() - (w**2).sum() / w.sum() + ridge
        for g in targets[:, rows]:
            pairs = np.outer(w * g, w * g)
            np.fill_diagonal(pairs, 0.0)
            gain += pairs.sum() / divisor
            variance += 2 * (pairs**2).sum() / divisor**2
    total = (weight * targets**2).sum()
    return gain / total, math.sqrt(variance) / total
