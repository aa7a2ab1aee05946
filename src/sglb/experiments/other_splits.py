"""Test the parameters that the searches chose on other splits of the same rows.

A single split shows how the test rows vary, not how the training rows do. Here parameters stay as
they were chosen, and rows are split again: seed + 1, seed + 2, ... instead of the search's seed.
Splits share most of their rows, so their differences d_1 .. d_K are not independent; the t-test is
Nadeau and Bengio's (2003), which estimates the variance of their mean by

    (1 / K + n_test / n_train) * variance of the d_k.

The parameters were chosen by validation rows some of which are test rows here, but for both methods
alike.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from pathlib import Path

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from sglb.datasets import data_folder
from sglb.errors import ChainDiverged
from sglb.experiments.real_data import TEST, TRAIN, split_table
from sglb.experiments.search import Search, fit, row_losses, use_tables
from sglb.experiments.synthetic import paired_p_value
from sglb.files import whole_file

OVERLAP = TEST / TRAIN


@dataclass(frozen=True)
class Rival:
    """A method's search and the number of its best trial."""

    search: Search
    number: int


@dataclass(frozen=True)
class Pair:
    """The best trials of two methods on a table; their losses on other splits are in a folder.

    Each split has a file with the mean test losses of both, NaN for a chain that diverged.
    """

    first: Rival
    second: Rival

    @property
    def _folder(self) -> Path:
        search = self.first.search
        trials = "-".join(f"{r.search.method}{r.number}" for r in (self.first, self.second))
        conditions = f"{search.goal}-{search.table}-trees{search.max_trees}-seed{search.seed}"
        return search.folder / "other_splits" / conditions / trials

    def _file(self, split: int) -> Path:
        return self._folder / f"{split}.json"

    def is_done(self, split: int) -> bool:
        """Whether a split has been run."""
        return self._file(split).is_file()

    def losses(self) -> list[tuple[float, float]]:
        """Return the mean test losses on every split that is done."""
        files = sorted(self._folder.glob("*.json"), key=lambda path: int(path.stem))
        return [(float(a), float(b)) for a, b in (json.loads(f.read_text()) for f in files)]

    def run(self, split: int, tables: Path | None = None) -> None:
        """Fit both methods to split number 1, 2, ... and test them, with rows from `tables`."""
        use_tables(tables)
        search = self.first.search
        rows = split_table(search.table, search.seed + split)
        losses = []
        for rival in (self.first, self.second):
            try:
                model = fit(rival.search, rival.number, rows)
                losses.append(float(row_losses(model, search.goal, *rows.test).mean()))
            except ChainDiverged:
                losses.append(nan)
        self._folder.mkdir(parents=True, exist_ok=True)
        with whole_file(self._file(split)) as draft:
            draft.write_text(json.dumps(losses))


def run(
    pairs: Sequence[Pair],
    n_splits: int,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Run the splits 1 .. n_splits that are missing, `n_jobs` at a time in processes."""
    requested = [(pair, split) for pair in pairs for split in range(1, n_splits + 1)]
    missing = [(pair, split) for pair, split in requested if not pair.is_done(split)]
    tables = data_folder() if n_jobs > 1 else None
    done = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(pair.run)(split, tables) for pair, split in missing
    )
    for count, _ in enumerate(done, start=len(requested) - len(missing) + 1):
        if progress is not None:
            progress(count)


@dataclass(frozen=True)
class Verdict:
    """Mean test losses over splits, their standard deviations, their difference (second - first)
    with its standard error and p-value.
    """

    losses: tuple[float, float]
    spreads: tuple[float, float]
    difference: float
    standard_error: float
    p_value: float  # NaN if the difference is the same on all splits
    n_better: int  # splits on which the second is better
    n_splits: int
    n_diverged: int  # splits left out


def judge(losses: Sequence[tuple[float, float]]) -> Verdict | None:
    """Compare two methods by their mean test losses on the same splits; None below two splits."""
    good = [(a, b) for a, b in losses if isfinite(a) and isfinite(b)]
    if len(good) < 2:
        return None
    first, second = np.array(good).T
    difference = second - first
    n = len(good)
    return Verdict(
        (float(first.mean()), float(second.mean())),
        (float(first.std(ddof=1)), float(second.std(ddof=1))),
        float(difference.mean()),
        sqrt((1.0 / n + OVERLAP) * float(difference.var(ddof=1))),
        paired_p_value(first, second, OVERLAP),
        int((difference < 0.0).sum()),
        n,
        len(losses) - n,
    )
