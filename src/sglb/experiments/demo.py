"""`sglb demo`: leave a local optimum, explain what a classifier does not know, cover outcomes.

Every number printed is measured in this run.
"""

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sglb import plots
from sglb.experiments import demo_classes, demo_numbers, synthetic
from sglb.experiments.page import bar
from sglb.settings import n_threads

# From worst to best, as in the paper.
EXPECTED_ORDER = ("logistic + GB", "sla + GB", synthetic.REFERENCE)
# Below this two-sided p-value a difference is called significant.
SIGNIFICANT = 0.05
PROBLEM = """\
Stumps learn y = 1{N(sin(x1 x2 x3), 1) > 0} from 1,000 rows and are tested on 1,000 new ones.
The 0-1 loss, smoothed (sla), has many local optima here. Plain boosting (GB) stays in the first
it meets; Langevin boosting (SGLB) adds noise and leaves it. SGB learns from half of the rows.
"""


def run(
    folder: Path,
    *,
    n_folds: int = 100,
    n_steps: int = 1000,
    seed: int = 0,
    n_jobs: int | None = None,
) -> None:
    """Run all parts, print the results, and write figures and the model to `folder`."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    out = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
    out.print("\n1. Leaving local optima", style="bold")
    out.print(PROBLEM)
    result = _measure(n_folds, n_steps, seed, n_threads(n_jobs))
    _show_comparison(out, result, n_folds, n_steps)
    picture = folder / "test_error.png"
    plots.save(_error_figure(result, n_folds), picture)
    out.print("\n2. A classifier that knows where it may be wrong", style="bold")
    explained = demo_classes.explain(seed, n_jobs)
    demo_classes.show(out, explained)
    bars, model_file = folder / "importances.png", folder / "breast_cancer.sglb"
    names = [str(name) for name in explained.model.feature_names_in_]
    title = "What decides between malignant and benign"
    plots.save(plots.importances(names, explained.model.feature_importances_, title=title), bars)
    explained.model.save(model_file)
    out.print("\n3. Intervals that hold what they promise", style="bold")
    covered = demo_numbers.cover(seed, n_jobs)
    demo_numbers.show(out, covered)
    fan = folder / "intervals.png"
    plots.save(demo_numbers.picture(covered), fan)
    out.print("\nWritten", style="bold")
    out.print(f"{picture}  test error over steps")
    out.print(f"{bars}  which features the classifier uses")
    out.print(f"{fan}  predicted distributions of unseen rows, and their outcomes")
    out.print(f"{model_file}  the classifier; try: sglb info {model_file}")
    out.print(f"\nAll of this took {time.perf_counter() - started:.0f} s.")


def _measure(n_folds: int, n_steps: int, seed: int, jobs: int) -> synthetic.Result:
    """Run the synthetic experiment behind a progress bar."""
    with bar(f"{len(synthetic.METHODS)} methods, folds", n_folds) as progress:
        return synthetic.run(n_folds, n_steps, seed=seed, n_jobs=jobs, progress=progress)


def _show_comparison(out: Console, result: synthetic.Result, n_folds: int, n_steps: int) -> None:
    """Print the paper's table and whether its order holds."""
    rows = result.compare()
    table = Table("method", header_style="bold")
    table.add_column("test 0-1 error", justify="right")
    table.add_column("standard error", justify="right")
    table.add_column("p-value against SGLB", justify="right")
    for row in rows:
        shown = "" if row.p_value is None else f"{row.p_value:.1g}"
        style = "bold" if row.p_value is None else None
        table.add_row(row.name, f"{row.error:.4f}", f"{row.standard_error:.4f}", shown, style=style)
    out.print(table)
    trees = n_folds * n_steps * len(rows)
    out.print(
        f"{n_folds} folds, {n_steps:,} steps: {trees:,} trees in {result.seconds:.1f} s."
        " Two-sided paired t-test over the folds."
    )
    out.print(verdict(rows))


def verdict(rows: list[synthetic.Comparison]) -> str:
    """Say whether the paper's order holds, and which methods differ from SGLB."""
    by_name = {row.name: row for row in rows}
    worst, middle, best = (by_name[name] for name in EXPECTED_ORDER)
    claim = f"{worst.name} worse than {middle.name} worse than {best.name}"
    if not worst.error > middle.error > best.error:
        return f"The paper's order, {claim}, was NOT found."
    others = [row for row in rows if row.p_value is not None]
    significant = [
        row.name for row in others if row.p_value is not None and row.p_value < SIGNIFICANT
    ]
    not_significant = [row.name for row in others if row.name not in significant]
    return (
        f"The paper's order holds: {claim}.\n"
        f"SGLB differs significantly from {_join_names(significant)};"
        f" not from {_join_names(not_significant)}."
    )


def _join_names(names: list[str]) -> str:
    return " and ".join(names) or "none"


def _error_figure(result: synthetic.Result, n_folds: int) -> Any:
    return plots.error_curves(
        result.curves,
        title="Synthetic problem of the paper: test error over steps",
        subtitle=f"mean and band of one standard error over {n_folds} folds, trees of depth 1",
    )
