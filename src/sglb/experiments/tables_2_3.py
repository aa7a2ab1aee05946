"""`sglb paper zero-one` and `sglb paper logloss`: SGB against SGLB on real data, Tables 2 and 3.

Both methods are this library's, or with `--catboost` both are CatBoost's. They are tuned by random
search (`search`) on the validation rows, and the best models are tested. The difference is judged
by the two-tailed paired t-test on the losses of the test rows, and optionally by that on mean
losses over other splits (`other_splits`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from sglb.caching import cached_property
from sglb.datasets import data_folder, stored_tables
from sglb.experiments import catboost_sla, other_splits
from sglb.experiments.other_splits import Pair, Rival, Verdict, judge
from sglb.experiments.page import PageReport, bar, check_page, console, write_section
from sglb.experiments.real_data import (
    CATBOOST_METHODS,
    DataSet,
    Goal,
    MethodName,
    find_tables,
    get_data_sets,
)
from sglb.experiments.search import Search, Trial, use_tables
from sglb.experiments.synthetic import paired_p_value
from sglb.experiments.tuned_catboost import NOT_INSTALLED
from sglb.settings import n_threads

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class TuningOptions:
    """What to search, how long, and the folder of the results; `n_jobs` None is one per core."""

    goal: Goal
    folder: Path
    n_trials: int = 200
    data_sets: Sequence[str] | None = None
    max_trees: int = 1000
    seed: int = 0
    n_jobs: int | None = 1
    n_splits: int = 0  # to test the chosen models on, besides the split of the search
    rival: MethodName = "SGB"

    @cached_property
    def n_processes(self) -> int:
        """Number of processes."""
        return n_threads(self.n_jobs)

    @property
    def methods(self) -> tuple[MethodName, MethodName]:
        """The two methods to compare."""
        ours: tuple[MethodName, MethodName] = (self.rival, "SGLB")
        return CATBOOST_METHODS if self.rival in CATBOOST_METHODS else ours

    @property
    def mark(self) -> str:
        """Name of the table's section in a page."""
        return self.goal if self.rival == "SGB" else f"{self.goal} {self.rival}"

    def search(self, data: DataSet, method: MethodName) -> Search:
        """Return the search of a method on a data set."""
        return Search(self.folder, self.goal, data.table, method, self.max_trees, self.seed)


@dataclass(frozen=True)
class DataSetResult:
    """The results on a data set: mean test losses, p-value, number of trials."""

    data: DataSet
    test: tuple[float, float]
    p_value: float
    n_trials: int
    seconds: float
    verdict: Verdict | None = None  # on other splits


def run(options: TuningOptions, write: Path | None = None, *, only_report: bool = False) -> None:
    """Run missing trials unless `only_report`, then print the table and write it to a page."""
    if options.n_splits == 1:
        raise ValueError("the variance between splits needs at least 2 of them: --splits 2 or more")
    needs_catboost = options.rival in CATBOOST_METHODS and not only_report
    if needs_catboost and not catboost_sla.installed():
        raise ImportError(NOT_INSTALLED)
    data_sets, missing = find_tables(get_data_sets(options.data_sets))
    if missing and (options.data_sets or not data_sets):
        first, stored = missing[0], ", ".join(stored_tables()) or "none"
        raise ValueError(
            f"data set {first.name!r} needs the table {first.table}.parquet, which is neither in"
            f" the folder that SGLB_DATA names nor on OpenML; stored tables: {stored}"
        )
    if write is not None:
        check_page(write, options.mark)
    out = console()
    if not only_report:
        search(options, data_sets)
        split_again(options, data_sets)
    rows = [row for row in (measure(options, data) for data in data_sets) if row is not None]
    report = make_report(options, rows)
    if not rows:
        report.text(
            f"There are no trials of {' and '.join(options.methods)} in {options.folder} yet."
        )
    for data in missing:
        report.text(f"{data.name}: left out, there is no table {data.table}.")
    report.print(out)
    out.print(f"\nTrials are kept in {options.folder}; more --trials go on from there.")
    if write is not None:
        write_section(write, options.mark, report.markdown())
        out.print(f"The table is in {write}.")


def search(options: TuningOptions, data_sets: Sequence[DataSet]) -> None:
    """Run all missing trials, `n_jobs` at a time in processes."""
    searches = [options.search(data, method) for data in data_sets for method in options.methods]
    # Two processes may have run the same trial at the same moment and left another undone. Trials
    # that other commands are running are left to them.
    while _search_round(options, searches):
        pass


def _search_round(options: TuningOptions, searches: Sequence[Search]) -> bool:
    """Run the missing trials of each search; return whether any trial was run."""
    jobs = missing_trials(searches, options.n_trials)
    if not jobs:
        return False
    folder = data_folder() if options.n_processes > 1 else None
    numbers = []
    with bar(f"trials of {options.goal}", len(jobs)) as progress:
        done = Parallel(n_jobs=options.n_processes, return_as="generator_unordered")(
            delayed(_run_next)(job, options.n_trials, folder) for job in jobs
        )
        for count, number in enumerate(done, start=1):
            numbers.append(number)
            progress(count)
    return any(number is not None for number in numbers)


def missing_trials(searches: Sequence[Search], n_trials: int) -> list[Search]:
    """Return each search as often as it misses a trial, in turn, those that lag behind first.

    Methods are compared by equally many trials: what is stopped early has run few in vain.
    """
    missing = [
        (number, at)
        for at, search in enumerate(searches)
        for number in range(len(search.finished(n_trials)), n_trials)
    ]
    return [searches[at] for _, at in sorted(missing)]


def _run_next(search: Search, n_trials: int, folder: Path | None) -> int | None:
    use_tables(folder)
    return search.run_next(n_trials)


@dataclass(frozen=True)
class Choice:
    """The best trial of a method, and the trials that it was chosen from."""

    search: Search
    best: Trial
    trials: Sequence[Trial]


def choose(options: TuningOptions, data: DataSet) -> tuple[Choice, Choice] | None:
    """Return the best trial of each method; None before both have a trial that worked.

    Both choose from the same number of trials, that of the method with fewer.
    """
    searches = [options.search(data, method) for method in options.methods]
    finished = [search.finished(options.n_trials) for search in searches]
    done = min(len(trials) for trials in finished)
    choices = []
    for search, trials in zip(searches, finished, strict=True):
        best = min(trials[:done], key=lambda trial: trial.rank, default=None)
        if best is None or not np.isfinite(best.score):
            return None
        choices.append(Choice(search, best, trials[:done]))
    first, second = choices
    return first, second


def _pair(choices: tuple[Choice, Choice]) -> Pair:
    first, second = (Rival(choice.search, choice.best.number) for choice in choices)
    return Pair(first, second)


def split_again(options: TuningOptions, data_sets: Sequence[DataSet]) -> None:
    """Fit and test the best trials on `n_splits` other splits."""
    if not options.n_splits:
        return
    chosen = [choices for data in data_sets if (choices := choose(options, data)) is not None]
    for choices in chosen:
        for choice in choices:
            choice.search.check_rows()
    with bar(f"other splits of {options.goal}", len(chosen) * options.n_splits) as progress:
        other_splits.run(list(map(_pair, chosen)), options.n_splits, options.n_processes, progress)


def measure(options: TuningOptions, data: DataSet) -> DataSetResult | None:
    """Test the best model of each method; None before both have a trial that worked."""
    choices = choose(options, data)
    if choices is None:
        return None
    first, second = (choice.search.test_losses(choice.best) for choice in choices)
    means = float(first.mean()), float(second.mean())
    seconds = sum(trial.seconds for choice in choices for trial in choice.trials)
    verdict = judge(_pair(choices).losses())
    n_trials = len(choices[0].trials)
    return DataSetResult(data, means, paired_p_value(first, second), n_trials, seconds, verdict)


def make_report(options: TuningOptions, rows: Sequence[DataSetResult]) -> PageReport:
    """Return the report of the results beside the published ones."""
    percent = options.goal == "zero-one"
    report = PageReport()
    first, second = options.methods
    title = "Table 2: test 0-1 error in %" if percent else "Table 3: test log loss"
    report.heading(f"{title}, tuned {first} against tuned {second}")
    measured = [f"here {first}", second, "p-value"]
    report.table(
        ["", "published SGB", "SGLB", "p-value", *measured, "trials", "min"],
        [_cells(row, options.goal) for row in rows],
    )
    counts = sorted({row.n_trials for row in rows}) or [options.n_trials]
    trials = " to ".join(f"{count}" for count in dict.fromkeys((counts[0], counts[-1])))
    report.text(
        f"{trials} trials of random search a method, at most {options.max_trees:,} trees,"
        f" best iteration and best trial by the validation rows, seed {options.seed}."
        f" Bold: better than the other with a p-value below {SIGNIFICANT}."
        " p-value: two-tailed paired t-test over the test rows. min: minutes of fitting, one"
        " thread, both methods."
    )
    unchanged = [row.data.name for row in rows if not row.data.copy.deviation]
    if unchanged:
        report.text(f"{', '.join(unchanged)}: the rows and columns of the paper.")
    for row in rows:
        if row.n_trials < options.n_trials:
            report.text(
                f"{row.data.name}: only {row.n_trials} of {options.n_trials} trials so far."
            )
        deviation = row.data.copy.deviation
        if deviation:
            report.text(f"{row.data.name} ({row.data.paper} in the paper): {deviation}.")
    judged = [(row, row.verdict) for row in rows if row.verdict is not None]
    if judged:
        _other_splits(report, options, judged)
    return report


def _other_splits(
    report: PageReport, options: TuningOptions, judged: Sequence[tuple[DataSetResult, Verdict]]
) -> None:
    report.heading("The same parameters on other splits")
    scale, digits = _units(options.goal)
    cells = []
    for row, verdict in judged:
        published = row.data.published(options.goal)
        means = _means(verdict.losses, verdict.p_value, options.goal)
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
    first, second = options.methods
    columns = [f"{second} - {first}", "± s.e.", "p-value", f"{second} better on"]
    report.table(["", "published SGB", "SGLB", f"here {first}", second, *columns], cells)
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
    """Return the factor and the number of digits of printed losses."""
    return (100.0, 2) if goal == "zero-one" else (1.0, 4)


def _means(losses: tuple[float, float], p_value: float, goal: Goal) -> list[str]:
    """Format two mean losses, the better one bold if the difference is significant."""
    scale, digits = _units(goal)
    cells = [f"{scale * value:.{digits}f}" for value in losses]
    if p_value < SIGNIFICANT:
        better = int(losses[1] < losses[0])
        cells[better] = f"**{cells[better]}**"
    return cells


def _cells(row: DataSetResult, goal: Goal) -> list[str]:
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
