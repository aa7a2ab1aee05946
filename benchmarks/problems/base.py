"""A problem: rows, what is asked of a library on them, and what is measured."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from benchmarks.settings import Settings


class Data(NamedTuple):
    X: np.ndarray  # float32, row-major
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Problem:
    measure: str  # a function of `benchmarks.measures`
    description: str  # the data in words
    data: Callable[[int, int], tuple[np.ndarray, np.ndarray]] | None = None  # (n_rows, seed)
    n_rows: int = 0
    n_test: int = 0
    task: str = "binary"
    n_classes: int = 2
    n_trees: int = 100
    rounds_by_class: int | None = None  # n_trees of a library that grows a tree for each class
    depth: int = 6
    learning_rate: float = 0.1
    max_bins: int = 64
    threads: int | None = None  # None: as many as the run is asked for
    default_threads: bool = False  # the library chooses; `threads` is what the process may use
    libraries: tuple[str, ...] | None = None  # None: all that can
    fastest_of: str | None = None  # only sglb and the two fastest peers of another problem
    repeats: int = 3  # processes of each library; of short fits, which vary most, more
    setup: str = ""  # imports only: what is there already
    timeout: float = 900.0  # seconds for one process

    def smaller(self, n_rows=None, n_trees=None):
        """The same problem cut down, to try things out."""
        return replace(
            self,
            n_rows=min(self.n_rows, n_rows or self.n_rows),
            n_test=min(self.n_test, n_rows or self.n_test),
            n_trees=min(self.n_trees, n_trees or self.n_trees),
        )

    def settings(self, threads, seed, by_class=False):
        """What to ask of a library; `by_class` of one that grows a tree for each class."""
        rounds = self.rounds_by_class if by_class and self.rounds_by_class else self.n_trees
        return Settings(
            task=self.task,
            n_classes=self.n_classes,
            n_trees=min(rounds, self.n_trees),
            depth=self.depth,
            learning_rate=self.learning_rate,
            max_bins=self.max_bins,
            threads=None if self.default_threads else self.threads or threads,
            seed=seed,
        )

    def make(self):
        """Draw the rows, the same in every process; the last ones are for testing."""
        X, y = self.data(self.n_rows + self.n_test, 0)
        n = len(X) - self.n_test
        return Data(X[:n], y[:n], X[n:], y[n:])
