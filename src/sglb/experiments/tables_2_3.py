"""`sglb paper zero-one` and `sglb paper logloss`: SGB against SGLB on real data, Tables 2 and 3.

Both methods are tuned by random search (`search`) on the validation rows, and the model chosen is
tested. The difference is judged by the two-tailed paired t-test on the losses of the test rows, and
if wanted by that on mean losses over other splits (`other_splits`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from sglb.datasets import data_folder, stored_tables
from sglb.experiments import other_splits
from sglb.experiments.other_splits import Pair, Rival, Verdict, judge
from sglb.experiments.page import Report, bar, check_page, console, put
from sglb.experiments.real_data import DataSet, Goal, MethodName, find_tables, get_data_sets
from sglb.experiments.search import Search, Trial, use_tables
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
    n_splits: int = 0  # to test the chosen models on, beside the one they were chosen on
    rival: MethodName = "SGB"

    @property
    def methods(self) -> tuple[MethodName, MethodName]:
        """The two to compare."""
        return self.rival, "SGLB"

    @property
    def mark(self) -> str:
        """Place of the table in a page."""
        return self.goal if self.rival == "SGB" else f"{self.goal} {self.rival}"

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
    verdict: Verdict | None = None  # of other splits


def run(order: Order, write: Path | None = None, *, only_report: bool = False) -> None:
    """Run what is missing, or nothing; then print the table and put it into a page."""
    if order.n_splits == 1:
        raise ValueError("one more split tells nothing about their differences: take 2 or more")
    data_sets, missing = find_tables(get_data_sets(order.data_sets))
    if missing and (order.data_sets or not data_sets):
        one, there = missing[0], ", ".join(stored_tables()) or "nothing"
        raise ValueError(
            f"data set {one.name!r} needs the table {one.table}.parquet, which is not in the"
            f" folder that SGLB_DATA names, nor on OpenML; there: {there}"
        )
    if write is not None:
        check_page(write, order.mark)
    out = console()
    if not only_report:
        search(order, data_sets)
        split_again(order, data_sets)
    rows = [row for row in (measure(order, data) for data in data_sets) if row is not None]
    report = make_report(order, rows)
    if not rows:
        report.text(f"There are no trials of {' and '.join(order.methods)} in {order.folder} yet.")
    for one in missing:
        report.text(f"{one.name}: left out, there is no table {one.table}.")
    report.print(out)
    out.print(f"\nTrials are kept in {order.folder}; more --trials go on from there.")
    if write is not None:
        put(write, order.mark, report.markdown())
        out.print(f"The table is in {write}.")


def search(order: Order, data_sets: Sequence[DataSet]) -> None:
    """Run all trials that are not there yet, `n_jobs` at a time in processes."""
    searches = [order.search(data, method) for data in data_sets for method in order.methods]
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
    use_tables(folder)
    return one.run_next(n_trials)


@dataclass(frozen=True)
class Choice:
    """The best trial of a method, and the trials it was chosen from."""

    search: Search
    best: Trial
    trials: Sequence[Trial]


def choose(order: Order, data: DataSet) -> tuple[Choice, Choice] | None:
    """Return what each method chose; None before both have a trial that worked.

    Where one method has more trials than the other, both choose from as many.
    """
    searches = [order.search(data, method) for method in order.methods]
    finished = [one.finished(order.n_trials) for one in searches]
    done = min(len(trials) for trials in finished)
    choices = []
    for one, trials in zip(searches, finished, strict=True):
        best = min(trials[:done], key=lambda trial: trial.rank, default=None)
        if best is None or not np.isfinite(best.score):
            return None
        choices.append(Choice(one, best, trials[:done]))
    first, second = choices
    return first, second


def _pair(choices: tuple[Choice, Choice]) -> Pair:
    first, second = (Rival(one.search, one.best.number) for one in choices)
    return Pair(first, second)


def split_again(order: Order, data_sets: Sequence[DataSet]) -> None:
    """Fit and test what was chosen on as many other splits as are ordered."""
    if not order.n_splits:
        return
    chosen = [choices for data in data_sets if (choices := choose(order, data)) is not None]
    for choices in chosen:
        for one in choices:
            one.search.check_rows()
    with bar(f"other splits of {order.goal}", len(chosen) * order.n_splits) as progress:
        other_splits.run(list(map(_pair, chosen)), order.n_splits, order.n_jobs, progress)


def measure(order: Order, data: DataSet) -> Row | None:
    """Test the model that each method chose; None before both have a trial that worked."""
    choices = choose(order, data)
    if choices is None:
        return None
    first, second = (one.search.test_losses(one.best) for one in choices)
    means = float(first.mean()), float(second.mean())
    seconds = sum(trial.seconds for one in choices for trial in one.trials)
    verdict = judge(_pair(choices).losses())
    n_trials = len(choices[0].trials)
    return Row(data, means, paired_p_value(first, second), n_trials, seconds, verdict)


def make_report(order: Order, rows: Sequence[Row]) -> Report:
    """Lay out the measured rows beside the published ones."""
    percent = order.goal == "zero-one"
    report = Report()
    title = "Table 2: test 0-1 error in %" if percent else "Table 3: test log loss"
    report.heading(f"{title}, tuned {order.rival} against tuned SGLB")
    here = [f"here {order.rival}", "SGLB", "p-value"]
    report.table(
        ["", "published SGB", "SGLB", "p-value", *here, "trials", "min"],
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
    judged = [(row, row.verdict) for row in rows if row.verdict is not None]
    if judged:
        _other_splits(report, order, judged)
    return report


def _other_splits(report: Report, order: Order, judged: Sequence[tuple[Row, Verdict]]) -> None:
    report.heading("The same parameters on other splits")
    scale, digits = _units(order.goal)
    cells = []
    for row, verdict in judged:
        published = row.data.published(order.goal)
        means = _means(verdict.losses, verdict.p_value, order.goal)
        cells.append(
            [
                row.data.name,
                f"{published.sgb:g}",
                f"{published.sglb:g}",
                *(
                    f"{mean} ± {scale * spread:.{digits}f}"
                    for mean, spread in zip(means, verdict.spreads, strict=True)
                ),
                f"{scale * verdict.difference:+.{digits}f}",
                f"{scale * verdict.standard_error:.{digits}f}",
                f"{verdict.p_value:.2g}",
                f"{verdict.n_better} of {verdict.n_splits}",
            ]
        )
    columns = [f"SGLB - {order.rival}", "± s.e.", "p-value", "SGLB better on"]
    report.table(["", "published SGB", "SGLB", f"here {order.rival}", "SGLB", *columns], cells)
    report.text(
        "Mean and standard deviation over splits, fitted anew with the parameters chosen above,"
        " which saw some of these test rows as validation rows, for both methods alike; iterations"
        " by the new validation rows. s.e. and p-value are Nadeau and Bengio's, who allow for the"
        " rows that splits share; the luck of the search is in neither."
    )
    for row, verdict in judged:
        if verdict.n_diverged:
            report.text(f"{row.data.name}: {verdict.n_diverged} split(s) left out, diverged.")


def _units(goal: Goal) -> tuple[float, int]:
    """Return the factor and the digits that losses are printed with."""
    return (100.0, 2) if goal == "zero-one" else (1.0, 4)


def _means(losses: tuple[float, float], p_value: float, goal: Goal) -> list[str]:
    """Print two mean losses, the better one bold if it is significantly so."""
    scale, digits = _units(goal)
    cells = [f"{scale * value:.{digits}f}" for value in losses]
    if p_value < SIGNIFICANT:
        better = int(losses[1] < losses[0])
        cells[better] = f"**{cells[better]}**"
    return cells


def _cells(row: Row, goal: Goal) -> list[str]:
    published = row.data.published(goal)
    return [
        row.data.name,
        f"{published.sgb:g}",
        f"{published.sglb:g}",
        f"{published.p_value:.2g}",
        *_means(row.test, row.p_value, goal),
        f"{row.p_value:.2g}",
        f"{row.n_trials}",
        f"{row.seconds / 60:.1f}",
    ]
