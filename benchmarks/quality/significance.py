"""Which differences are more than chance: of two libraries on a table, of all over the tables."""

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

LEVEL = 0.05


class Paired(NamedTuple):
    t: float
    p: float


def paired(first, second, overlap):
    """Two-sided t-test of the mean of first - second, losses of two libraries on the same splits.

    Random splits of one table share rows, so their differences vary less than those on new data
    would; Nadeau and Bengio (2003) put 1/n + overlap for 1/n, overlap = n_test / n_train. An
    overlap of 0 is the ordinary paired test. None with fewer than two splits.
    """
    from scipy import stats

    difference = np.subtract(first, second)
    n = len(difference)
    if n < 2:
        return None
    spread = difference.std(ddof=1)
    if spread == 0.0:
        mean = difference.mean()
        return Paired(0.0, 1.0) if mean == 0.0 else Paired(inf * np.sign(mean), 0.0)
    t = float(difference.mean() / (spread * sqrt(1.0 / n + overlap)))
    return Paired(t, float(2.0 * stats.t.sf(abs(t), n - 1)))


def mean_ranks(losses):
    """Mean over tables of the rank of each library; losses (n_tables, n_libraries), inf = failed.

    Rank 1 is the best; equal losses share the mean of their ranks.
    """
    from scipy import stats

    return stats.rankdata(losses, axis=1).mean(axis=0)


def friedman(losses):
    """P-value of "all libraries are alike"; None with fewer than three libraries or two tables."""
    from scipy import stats

    if losses.shape[1] < 3 or len(losses) < 2:
        return None
    return float(stats.friedmanchisquare(*losses.T).pvalue)


def critical_difference(n_libraries, n_tables, level=LEVEL):
    """Nemenyi: mean ranks further apart than this differ, over all pairs at once."""
    from scipy import stats

    q = stats.studentized_range.ppf(1.0 - level, n_libraries, inf) / sqrt(2.0)
    return float(q * sqrt(n_libraries * (n_libraries + 1) / (6.0 * n_tables)))


def alike(ranks, difference):
    """Longest runs of sorted ranks that lie within `difference`: (first, last) positions."""
    runs = []
    for first in range(len(ranks)):
        last = max(
            position for position, rank in enumerate(ranks) if rank - ranks[first] <= difference
        )
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs
