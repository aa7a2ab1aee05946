"""Differences between two rankers on the same queries."""

from math import sqrt
from statistics import mean
from typing import NamedTuple

import numpy as np

from benchmarks.ranking.methods import variants
from benchmarks.ranking.sets import SETS
from benchmarks.uncertainty.results import Job


class Difference(NamedTuple):
    """Mean over queries, its standard error, p of the paired t-test (two-sided), and a lower bound
    (one-sided, 95 %).
    """

    mean: float
    error: float
    p: float
    bound: float

    def __str__(self):
        return f"{self.mean:+.4f} ± {self.error:.4f}"


def difference(first, second):
    """What `first` is above `second` by; both have a score for each query."""
    from scipy import stats

    gap = np.subtract(first, second)
    error = float(gap.std(ddof=1)) / sqrt(len(gap))
    value = float(gap.mean())
    if error == 0.0:
        return Difference(value, 0.0, 1.0 if value == 0.0 else 0.0, value)
    freedom = len(gap) - 1
    p = 2.0 * stats.t.sf(abs(value) / error, freedom)
    # One-sided: lower than this with probability 5 %.
    return Difference(value, error, float(p), value - error * float(stats.t.ppf(0.95, freedom)))


class Scores:
    """Scores of test queries by set and ranker."""

    def __init__(self, results, part="test"):
        self.results, self.part = results, part
        named = results.names(part, 3)
        self.rankers = [variant for _, variant in variants() if variant in named]
        self.sets = [name for name in SETS if name in results.names(part, 1)]

    def of(self, name, ranker, key="queries"):
        """Scores of a set's queries: means over seeds, or of the mean of several seeds' scores."""
        measured = []
        for job, row in self.results.done.items():
            if (job.part, job.table, job.method) == (self.part, name, ranker) and key in row:
                measured += row[key] if key == "queries" else [row[key]]
        return np.mean(measured, axis=0) if measured else None

    def common(self, *rankers):
        """The sets that all of these rankers have."""
        return [
            name
            for name in self.sets
            if all(self.of(name, ranker) is not None for ranker in rankers)
        ]

    def pooled(self, ranker, key="queries", names=None):
        """Scores of the queries of several sets, of all that the ranker has if none are named."""
        names = self.common(ranker) if names is None else names
        return np.concatenate([self.of(name, ranker, key) for name in names])

    def against(self, first, second):
        """The difference of two rankers over the queries of the sets that both have."""
        names = self.common(first, second)
        return difference(self.pooled(first, names=names), self.pooled(second, names=names))

    def by_set(self, first, second):
        """Mean over the sets that both have of the difference of two rankers' means."""
        return mean(
            float(self.of(name, first).mean() - self.of(name, second).mean())
            for name in self.common(first, second)
        )

    def best(self, library, ours):
        """The ranker of a library with the lowest mean of `own` minus it, chosen in hindsight."""
        named = [r for r in self.rankers if r.startswith(library) and self.common(ours, r)]
        return min(named, key=lambda ranker: self.against(ours, ranker).mean, default=None)


def frozen(results, name, ranker):
    """The tuned setting, None where tuning is missing or failed."""
    row = results.done.get(Job("tune", name, 0, ranker), {})
    return row if "settings" in row else None
