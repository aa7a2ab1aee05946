"""`sglb paper zero-one` and `sglb paper logloss`: SGB against SGLB on real data, Tables 2 and 3.

Both methods are tuned by random search (`search`) on the validation rows, and the model chosen is
tested. The difference is judged by the two-tailed paired t-test on the losses of the test rows.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from sglb.datasets import data_folder
from sglb.experiments.page import Report, bar, check_page, console, put
from sglb.experiments.real_data import (
    METHODS,
    DataSet,
    Goal,
    MethodName,
    check_tables,
    get_data_sets,
)
from sglb.experiments.search import Search
from sglb.experiments.synthetic import paired_p_value

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Order:
    """What to search, how long, and where to keep it."""

    goal: Goal
    folder: Path
    n_trials: int = 200
    data_sets: Sequence[str] | None = None
    max_trees: int = 1000
    seed: int = 0
    n_jobs: int = 1

    def search(self, data: DataSet, method: MethodName) -> Search:
        """Return the search of a method on a data set."""
        return Search(self.folder, self.goal, data.table, method, self.max_trees, self.seed)


@dataclass(frozen=True)
class Row:
    """What was measured on a data set: the mean test losses, p-value, trials done."""

    data: DataSet
    test: tuple[float, float]
    p_value: float
    n_trials: int
    seconds: float


def run(order: Order, write: Path | None = None) -> None:
    """Run what is missing, then print the table and put it into a page."""
    data_sets = get_data_sets(order.data_sets)
    check_tables(data_sets)
    if write is not None:
        check_page(write, order.goal)
    out = console()
    search(order, data_sets)
    rows = [row for row in (measure(order, data) for data in data_sets) if row is not None]
    report = make_report(order, rows)
    report.print(out)
    out.print(f"\nTrials are kept in {order.folder}; more --trials go on from there.")
    if write is not None:
        put(write, order.goal, report.markdown())
        out.print(f"The table is in {write}.")


def search(order: Order, data_sets: Sequence[DataSet]) -> None:
    """Run all trials that are not there yet, `n_jobs` at a time in processes."""
    searches = [order.search(data, method) for data in data_sets for method in METHODS]
    # Two processes may have run the same trial at the same moment, so another stayed undone. Trials
    # that other commands are at work on are left to them.
    while _search_round(order, searches):
        pass


def _search_round(order: Order, searches: Sequence[Search]) -> bool:
    """Run as many trials of each search as are missing; tell whether there was any to run."""
    left = [(one, order.n_trials - len(one.finished(order.n_trials))) for one in searches]
    jobs = [one for one, count in left for _ in range(count)]
    if not jobs:
        return False
    folder = data_folder() if order.n_jobs > 1 else None
    numbers = []
    with bar(f"trials of {order.goal}", len(jobs)) as progress:
        done = Parallel(n_jobs=order.n_jobs, return_as="generator_unordered")(
            delayed(_run_next)(one, order.n_trials, folder) for one in jobs
        )
        for count, number in enumerate(done, start=1):
            numbers.append(number)
            progress(count)
    return any(number is not None for number in numbers)


def _run_next(one: Search, n_trials: int, folder: Path | None) -> int | None:
    """Run the next trial on tables of `folder`: a process that is older than this search may have
    been told another one.
    """
    if folder is not None:
        os.environ["SGLB_DATA"] = str(folder.resolve())
    return one.run_next(n_trials)


def measure(order: Order, data: DataSet) -> Row | None:
    """Test the model that each method chose; None before both have a trial."""
    losses: list[NDArray[np.float64]] = []
    done, seconds = order.n_trials, 0.0
    for method in METHODS:
        one = order.search(data, method)
        best = one.best(order.n_trials)
        if best is None or not np.isfinite(best.score):
            return None
        trials = one.finished(order.n_trials)
        done, seconds = min(done, len(trials)), seconds + sum(t.seconds for t in trials)
        losses.append(one.test_losses(best))
    first, second = losses
    means = float(first.mean()), float(second.mean())
    return Row(data, means, paired_p_value(first, second), done, seconds)


def make_report(order: Order, rows: Sequence[Row]) -> Report:
    """Lay out the measured rows beside the published ones."""
    percent = order.goal == "zero-one"
    report = Report()
    title = "Table 2: test 0-1 error in %" if percent else "Table 3: test log loss"
    report.heading(f"{title}, tuned SGB against tuned SGLB")
    report.table(
        ["", "published SGB", "SGLB", "p-value", "here SGB", "SGLB", "p-value", "trials", "min"],
        [_cells(row, order.goal) for row in rows],
    )
    report.text(
        f"{order.n_trials} trials of random search a method, at most {order.max_trees:,} trees,"
        f" best iteration and best trial by the validation rows, seed {order.seed}."
        f" Bold: better than the other with a p-value below {SIGNIFICANT}."
        " p-value: two-tailed paired t-test over the test rows. min: minutes of fitting, one"
        " thread, both methods."
    )
    for row in rows:
        if row.n_trials < order.n_trials:
            report.text(f"{row.data.name}: only {row.n_trials} of {order.n_trials} trials so far.")
        if row.data.deviation:
            report.text(f"{row.data.name} ({row.data.paper} in the paper): {row.data.deviation}.")
    return report


def _cells(row: Row, goal: Goal) -> list[str]:
    published = row.data.published(goal)
    scale, digits = (100.0, 2) if goal == "zero-one" else (1.0, 4)
    here = [f"{scale * value:.{digits}f}" for value in row.test]
    if row.p_value < SIGNIFICANT:
        better = int(row.test[1] < row.test[0])
        here[better] = f"**{here[better]}**"
    return [
        row.data.name,
        f"{published.sgb:g}",
        f"{published.sglb:g}",
        "" if published.p_value is None else f"{published.p_value:.2g}",
        *here,
        f"{row.p_value:.2g}",
        f"{row.n_trials}",
        f"{row.seconds / 60:.1f}",
    ]
