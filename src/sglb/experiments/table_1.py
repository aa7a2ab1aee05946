"""`sglb paper synthetic`: the paper's Table 1 with the readings it leaves open, and its figures.

The main table comes from one run of `synthetic`. The sweep moves the temperature with noise in
structures and leaves and with noise in leaves alone; the study shows what depends on "subsampling";
long chains show which method reaches the lowest training loss in the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sglb import plots
from sglb.caching import cached_property
from sglb.experiments import catboost_sla, stumps, synthetic
from sglb.experiments.page import PageReport, bar, check_page, console, write_section
from sglb.experiments.synthetic import Comparison, Result
from sglb.samplers import Plain
from sglb.settings import n_threads

# Test 0-1 error and p-value against SGLB as printed in the paper.
PUBLISHED: Mapping[str, tuple[float, float | None]] = {
    "logistic + GB": (0.482, 2e-8),
    "sla + GB": (0.475, 5e-3),
    "sla + SGB": (0.474, 7e-3),
    "sla + SGLB": (0.470, None),
}
# Half decades around both readings of beta = 10^3, temperatures 1e-3 and 1.
SWEEP = tuple(float(f"{10**power:.2g}") for power in np.arange(-4.0, 1.01, 0.5))
BOTH, LEAVES = "noise in structures and leaves", "noise in leaves only"
STEPS_SHOWN = (100, 200, 300, 500)
LONG_REFERENCE = "sla + SGB"


@dataclass(frozen=True)
class SyntheticOptions:
    """How much of the experiment to run; `n_jobs` None is a process per core."""

    n_folds: int = 100
    n_steps: int = 1000
    sweep_folds: int = 30
    catboost_folds: int = 10
    study_folds: int = 0
    long_folds: int = 0
    long_steps: int = 100_000
    seed: int = 0
    n_jobs: int | None = 1

    @cached_property
    def n_processes(self) -> int:
        """Number of processes."""
        return n_threads(self.n_jobs)


def sweep_methods() -> tuple[synthetic.Method, ...]:
    """Return SGLB at each temperature, with all its noise and with noise in the leaves only."""
    calm = Plain(synthetic.RATE)
    return tuple(
        synthetic.sglb(f"{where} {temperature:g}", temperature, structure=structure)
        for where, structure in ((BOTH, None), (LEAVES, calm))
        for temperature in SWEEP
    )


def run(folder: Path, options: SyntheticOptions, write: Path | None = None) -> None:
    """Run the experiment, print tables, write figures to `folder` and the tables to a page."""
    if write is not None:
        check_page(write, "synthetic")
    folder.mkdir(parents=True, exist_ok=True)
    out, report = console(), PageReport()
    methods = synthetic.METHODS + synthetic.VARIANTS
    with bar("main table, folds", options.n_folds) as progress:
        main = synthetic.run(
            options.n_folds, options.n_steps, methods=methods, seed=options.seed,
            n_jobs=options.n_processes, progress=progress,
        )  # fmt: skip
    _main_table(report, main, options)
    _by_steps(report, main)
    _main_figures(folder, main, options.n_folds)
    if options.sweep_folds:
        with bar("temperatures, folds", options.sweep_folds) as progress:
            swept = synthetic.run(
                options.sweep_folds, options.n_steps, methods=sweep_methods(), seed=options.seed,
                n_jobs=options.n_processes, progress=progress,
            )  # fmt: skip
        _sweep(report, folder, swept, main, options)
    if options.catboost_folds:
        _catboost(report, main, options)
    if options.study_folds:
        _study(report, options)
    if options.long_folds:
        _long(report, folder, options)
    report.print(out)
    out.print(f"\nFigures are in {folder}.")
    if write is not None:
        write_section(write, "synthetic", report.markdown())
        out.print(f"The tables are in {write}.")


def _main_table(report: PageReport, result: Result, options: SyntheticOptions) -> None:
    report.heading("Table 1: test 0-1 error of boosted stumps on the synthetic problem")
    report.table(
        ["", "published", "p-value", "here", "± s.e.", "p-value", "best step", "training loss"],
        [_row(comparison) for comparison in result.compare()],
    )
    report.text(
        f"{options.n_folds} folds, {options.n_steps:,} steps, seed {options.seed},"
        f" {result.seconds:.0f} s with {options.n_processes} process(es). Errors after the last"
        " step; p-values of the two-sided paired t-test against SGLB; best step: the smallest error"
        " that any step had on the test rows; training loss: the smoothed 0-1 loss, last step."
        " sla + SGLB is temperature 1e-3."
    )


def _row(comparison: Comparison) -> list[str]:
    error, p_value = PUBLISHED.get(comparison.name, (None, None))
    return [
        comparison.name,
        "" if error is None else f"{error:.3f}",
        "" if p_value is None else f"{p_value:.0e}",
        *_digits(comparison.error, comparison.standard_error),
        "" if comparison.p_value is None else f"{comparison.p_value:.0e}",
        *_digits(comparison.best, comparison.training),
    ]


def _digits(*values: float) -> list[str]:
    return [f"{value:.4f}" for value in values]


def _by_steps(report: PageReport, result: Result) -> None:
    shown = [step for step in STEPS_SHOWN if step < result.n_steps]
    report.heading("The same after fewer steps")
    report.table(
        ["test 0-1 error after", *(f"{step}" for step in shown), f"{result.n_steps}"],
        [
            [name, *_digits(*(curve[:, step - 1].mean() for step in (*shown, result.n_steps)))]
            for name, curve in result.curves.items()
        ],
    )


def _main_figures(folder: Path, result: Result, n_folds: int) -> None:
    subtitle = f"mean and band of one standard error over {n_folds} folds, trees of depth 1"
    error = plots.error_curves(
        result.curves, title="Synthetic problem of the paper: test error", subtitle=subtitle
    )
    plots.save(error, folder / "synthetic_test_error.png")
    loss = plots.error_curves(
        result.training,
        title="Synthetic problem of the paper: what training reaches",
        subtitle=subtitle,
        ylabel="smoothed 0-1 loss, training rows",
    )
    plots.save(loss, folder / "synthetic_training_loss.png")


def _sweep(
    report: PageReport, folder: Path, swept: Result, main: Result, options: SyntheticOptions
) -> None:
    report.heading("Temperature, and where the noise goes")
    lines, training = (
        {
            where: np.stack([curves[f"{where} {t:g}"][:, -1] for t in SWEEP], axis=1)
            for where in (BOTH, LEAVES)
        }
        for curves in (swept.curves, swept.training)
    )
    rows = []
    for column, temperature in enumerate(SWEEP):
        both, leaves = (values[:, column] for values in lines.values())
        losses = (values[:, column].mean() for values in training.values())
        p_value = synthetic.paired_p_value(both, leaves)
        cells = [*_digits(both.mean(), leaves.mean()), f"{p_value:.0e}", *_digits(*losses)]
        rows.append([f"{temperature:g}", *cells])
    columns = [BOTH, LEAVES, "p-value", "training loss, both", "training loss, leaves only"]
    report.table(["temperature", *columns], rows)
    report.text(
        f"Test 0-1 error and smoothed 0-1 loss of the training rows after {options.n_steps:,}"
        f" steps, {options.sweep_folds} folds, {swept.seconds:.0f} s."
    )
    folds = slice(options.sweep_folds)
    levels = {name: main.curves[name][folds, -1] for name in ("sla + GB", "sla + SGB")}
    figure = plots.sweep(
        SWEEP,
        lines,
        {name: float(values.mean()) for name, values in levels.items()},
        marks={"10³ as CatBoost's option": 1e-3, "β = 10³ to the letter": 1.0},
        title="Temperature of SGLB on the synthetic problem",
        subtitle=f"mean and band of one standard error over {options.sweep_folds} folds",
        xlabel="temperature, N / β",
        ylabel="test 0-1 error, last step",
    )
    plots.save(figure, folder / "synthetic_temperature.png")


def _catboost(report: PageReport, main: Result, options: SyntheticOptions) -> None:
    report.heading("CatBoost with the same loss")
    if not catboost_sla.installed():
        report.text(catboost_sla.NOT_INSTALLED + ".")
        return
    n_folds = min(options.catboost_folds, options.n_folds)
    job = partial(catboost_sla.run_fold, n_steps=options.n_steps, seed=options.seed)
    with bar("CatBoost, folds", n_folds) as progress:
        theirs = synthetic.over_folds(job, n_folds, options.n_processes, progress)
    both = Result(
        {name: curve[:n_folds] for name, curve in main.curves.items()} | theirs.curves,
        theirs.seconds,
        {name: curve[:n_folds] for name, curve in main.training.items()} | theirs.training,
    )
    report.table(
        ["", "test error", "± s.e.", "p-value", "best step", "training loss"],
        [
            [
                c.name,
                *_digits(c.error, c.standard_error),
                "" if c.p_value is None else f"{c.p_value:.0e}",
                *_digits(c.best, c.training),
            ]
            for c in both.compare()
        ],
    )
    report.text(
        f"The first {n_folds} folds for all; p-values against sla + SGLB; CatBoost took"
        f" {theirs.seconds:.0f} s."
    )


def _study(report: PageReport, options: SyntheticOptions) -> None:
    report.heading("What decides the error of SGB")
    job = partial(stumps.run_fold, n_steps=options.n_steps, seed=options.seed)
    with bar("ways to sample, folds", options.study_folds) as progress:
        result = synthetic.over_folds(job, options.study_folds, options.n_processes, progress)
    shown = [step for step in (100, 300) if step < options.n_steps]
    reference = stumps.VARIANTS[1].name
    report.table(
        ["", *(f"after {step}" for step in shown), "last", "± s.e.", "p-value", "training loss"],
        [
            [
                c.name,
                *_digits(*(result.curves[c.name][:, step - 1].mean() for step in shown)),
                *_digits(c.error, c.standard_error),
                "" if c.p_value is None else f"{c.p_value:.0e}",
                *_digits(c.training),
            ]
            for c in result.compare(reference)
        ],
    )
    report.text(
        f"Test 0-1 error, {options.study_folds} folds, {result.seconds:.0f} s, in NumPy; p-values"
        " against SGB as here."
    )


def long_numbers(n_steps: int) -> list[int]:
    """Return the recorded steps of a long chain: 10, 20, 30, 50, 100, ... and the last."""
    numbers = [digit * 10**power for power in range(1, 9) for digit in (1, 2, 3, 5)]
    return [number for number in numbers if number < n_steps] + [n_steps]


def _long(report: PageReport, folder: Path, options: SyntheticOptions) -> None:
    report.heading("Long chains: the smoothed 0-1 loss of the training rows")
    numbers = long_numbers(options.long_steps)
    seed = options.seed + 1  # folds that had no part in the choice of temperatures
    with bar("long chains, folds", options.long_folds) as progress:
        result = synthetic.run(
            options.long_folds, options.long_steps,
            methods=synthetic.long_methods(options.long_steps), seed=seed,
            n_jobs=options.n_processes, progress=progress, numbers=numbers,
        )  # fmt: skip
    shown = [number for number in numbers if f"{number}"[0] in "13" and number >= 100]
    shown += [] if options.long_steps in shown else [options.long_steps]
    columns = [numbers.index(number) for number in shown]
    against = result.training[LONG_REFERENCE][:, -1]
    rows = []
    for name, curve in result.training.items():
        difference = curve[:, -1] - against
        rows.append(
            [
                name,
                *_digits(*(curve[:, column].mean() for column in columns)),
                *(["", ""] if name == LONG_REFERENCE else [
                    f"{difference.mean():+.4f} ± {synthetic.standard_error(difference):.4f}",
                    f"{synthetic.paired_p_value(curve[:, -1], against):.0e}",
                ]),
                f"{result.curves[name][:, -1].mean():.4f}",
            ]
        )  # fmt: skip
    steps = [f"{number:,}" for number in shown]
    report.table(["steps", *steps, "last - SGB's", "p-value", "test error"], rows)
    report.text(
        f"{options.long_folds} folds of seed {seed}, {result.seconds:.0f} s. p-values of the"
        f" two-sided paired t-test of the last training losses against {LONG_REFERENCE};"
        " test error: 0-1, last step."
    )
    figure = plots.error_curves(
        result.training,
        at=numbers,
        title="Synthetic problem of the paper: long chains",
        subtitle=f"mean and band of one standard error over {options.long_folds} folds",
        ylabel="smoothed 0-1 loss, training rows",
    )
    plots.save(figure, folder / "synthetic_long_chains.png")
