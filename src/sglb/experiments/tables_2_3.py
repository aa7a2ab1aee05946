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

from sglb.datasets import data_folder, stored_tables
from sglb.experiments.page import Report, bar, check_page, console, put
from sglb.experiments.real_data import (
    METHODS,
    DataSet,
    Goal,
    MethodName,
    find_tables,
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


def run(order: Order, write: Path | None = None, *, only_report: bool = False) -> None:
    """Run what is missing, or nothing; then print the table and put it into a page."""
    data_sets, missing = find_tables(get_data_sets(order.data_sets))
    if missing and (order.data_sets or not data_sets):
        one, there = missing[0], ", ".join(stored_tables()) or "nothing"
        raise ValueError(
            f"data set {one.name!r} needs the table {one.table}.parquet, which is not in the"
            f" folder that SGLB_DATA names, nor on OpenML; there: {there}"
        )
    if write is not None:
        check_page(write, order.goal)
    out = console()
    if not only_report:
        search(order, data_sets)
    rows = [row for row in (measure(order, data) for data in data_sets) if row is not None]
    report = make_report(order, rows)
    for one in missing:
        report.text(f"{one.name}: left out, there is no table {one.table}.")
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
    """Test the model that each method chose; None before both have a trial.

    Where one method has more trials than the other, both choose from as many.
    """
    searches = [order.search(data, method) for method in METHODS]
    done = min(len(one.finished(order.n_trials)) for one in searches)
    losses: list[NDArray[np.float64]] = []
    seconds = 0.0
    for one in searches:
        trials = one.finished(order.n_trials)[:done]
        best = min(trials, key=lambda trial: trial.rank, default=None)
        if best is None or not np.isfinite(best.score):
            return None
        seconds += sum(trial.seconds for trial in trials)
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
    counts = sorted({row.n_trials for row in rows}) or [order.n_trials]
    trials = " to ".join(f"{count}" for count in dict.fromkeys((counts[0], counts[-1])))
    report.text(
        f"{trials} trials of random search a method, at most {order.max_trees:,} trees,"
        f" best iteration and best trial by the validation rows, seed {order.seed}."
        f" Bold: better than the other with a p-value below {SIGNIFICANT}."
        " p-value: two-tailed paired t-test over the test rows. min: minutes of fitting, one"
        " thread, both methods."
    )
    same = [row.data.name for row in rows if not row.data.copy.deviation]
    if same:
        report.text(f"{', '.join(same)}: the rows and columns of the paper.")
    for row in rows:
        if row.n_trials < order.n_trials:
            report.text(f"{row.data.name}: only {row.n_trials} of {order.n_trials} trials so far.")
        deviation = row.data.copy.deviation
        if deviation:
            report.text(f"{row.data.name} ({row.data.paper} in the paper): {deviation}.")
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
        f"{published.p_value:.2g}",
        *here,
        f"{row.p_value:.2g}",
        f"{row.n_trials}",
        f"{row.seconds / 60:.1f}",
    ]
