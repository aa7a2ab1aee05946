"""Results -> what each library scored on each table, over the splits that all of them have seen."""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import fmean, median

import numpy as np

from benchmarks.quality.libraries import LIBRARIES, OWN
from benchmarks.quality.protocol import TEST
from benchmarks.quality.significance import LEVEL, paired

OVERLAP = TEST / (1.0 - TEST)
QUIET = 0.1  # cores that others may take before times suffer


@dataclass(frozen=True)
class Cell:
    """One library on one table. With one failure or more it has no mean: it failed."""

    results: list[dict]  # one a seed

    @property
    def errors(self):
        return [result["error"] for result in self.results if "error" in result]

    @property
    def failed(self):
        return bool(self.errors)

    def values(self, key):
        return [result[key] for result in self.results]

    def mean(self, key):
        return inf if self.failed else fmean(self.values(key))

    @property
    def quiet(self):
        """Splits during which other processes left the machine alone: their times count."""
        return [result for result in self.results if result.get("others", 0.0) <= QUIET]

    def seconds(self, key):
        """Mean time over the quiet splits, over all where none was quiet."""
        if self.failed:
            return inf
        return fmean(result[key] for result in self.quiet or self.results)


class Comparison:
    """Tables by libraries. Tables that some library has not seen at all are left out, and named.

    `wanted` tells of a table's name whether it counts.
    """

    def __init__(self, results, wanted=lambda table: True):
        self.results = results
        done = {job.library for job in results.done}
        self.libraries = [name for name in LIBRARIES if name in done]
        self.cells, self.unfinished = {}, []
        for table in sorted({job.table for job in results.done if wanted(job.table)}):
            row = self._row(table)
            if row is None:
                self.unfinished.append(table)
            else:
                self.cells[table] = row

    def _row(self, table):
        """Cells of a table over the seeds that every library has."""
        seen = [
            {job.seed: result for job, result in self.results.done.items() if job[::2] == key}
            for key in ((table, library) for library in self.libraries)
        ]
        seeds = sorted(set.intersection(*(set(by_seed) for by_seed in seen)))
        cells = [Cell([by_seed[seed] for seed in seeds]) for by_seed in seen]
        if not seeds or all(cell.failed for cell in cells):
            return None
        return dict(zip(self.libraries, cells, strict=True))

    @property
    def tables(self):
        return list(self.cells)

    @property
    def peers(self):
        return [name for name in self.libraries if name != OWN]

    @cached_property
    def n_seeds(self):
        """The least and the most splits of a table."""
        counts = [len(next(iter(row.values())).results) for row in self.cells.values()]
        return min(counts), max(counts)

    def fact(self, table, key):
        """Task, rows or features of a table."""
        for cell in self.cells[table].values():
            for result in cell.results:
                if key in result:
                    return result[key]
        raise KeyError(key)

    def loss(self, table, library):
        return self.cells[table][library].mean("loss")

    def best(self, table, among=None):
        """The library with the least mean loss."""
        return min(among or self.libraries, key=lambda name: self.loss(table, name))

    def relative(self, table, library, base):
        """Loss of a library above that of another one, in percent of it."""
        ours, theirs = self.loss(table, library), self.loss(table, base)
        if theirs == inf:
            return 0.0 if ours == inf else -inf
        if theirs == 0.0:
            return 0.0 if ours == 0.0 else inf
        return 100.0 * (ours / theirs - 1.0)

    @cached_property
    def losses(self):
        """(n_tables, n_libraries), infinity where a library failed."""
        return np.array(
            [[self.loss(table, name) for name in self.libraries] for table in self.cells]
        )

    def verdict(self, table, peer):
        """Is sglb "better" or "worse" than a peer on a table beyond chance, or "alike"?"""
        reference, other = self.cells[table][OWN], self.cells[table][peer]
        if reference.failed or other.failed:
            return (
                "alike"
                if reference.failed and other.failed
                else "worse"
                if reference.failed
                else "better"
            )
        test = paired(reference.values("loss"), other.values("loss"), OVERLAP)
        if test is None or test.p >= LEVEL:
            return "alike"
        return "better" if test.t < 0 else "worse"

    def wins(self, peer):
        """Tables on which sglb has the smaller mean loss, and those on which it has the larger."""
        ahead = [name for name in self.cells if self.loss(name, OWN) < self.loss(name, peer)]
        behind = [name for name in self.cells if self.loss(name, OWN) > self.loss(name, peer)]
        return ahead, behind

    def times(self, library, base, key="fit_seconds"):
        """Total of a library, total of another one and the median of their ratios a table.

        Over the tables that both have finished; None if there are none.
        """
        both = [
            (row[library].seconds(key), row[base].seconds(key))
            for row in self.cells.values()
            if not (row[library].failed or row[base].failed)
        ]
        if not both:
            return None
        ours, theirs = (sum(column) for column in zip(*both, strict=True))
        return ours, theirs, median(first / second for first, second in both)
