"""`sglb demo`: show Langevin boosting leave a local optimum, then explain a real classifier.

Every number printed is measured in this run.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from sglb import plots
from sglb.estimators import SGLBClassifier
from sglb.experiments import synthetic
from sglb.experiments.page import bar
from sglb.settings import n_threads
from sglb.uncertainty import entropy

# From worst to best, as in the paper.
EXPECTED_ORDER = ("logistic + GB", "sla + GB", synthetic.REFERENCE)
# Below this two-sided p-value a difference is called significant.
SIGNIFICANT = 0.05
# Share of the test rows that count as "unsure" when mistakes are counted among them.
UNSURE = 0.1
PROBLEM = """\
Stumps learn y = 1{N(sin(x1 x2 x3), 1) > 0} from 1,000 rows and are tested on 1,000 new ones.
The 0-1 loss, smoothed (sla), has many local optima here. Plain boosting (GB) stays in the first
it meets; Langevin boosting (SGLB) adds noise and leaves it. SGB learns from half of the rows.
"""


@dataclass(frozen=True)
class Explained:
    """A classifier on rows it has not seen: labels, predictions and their uncertainty."""

    model: SGLBClassifier
    y: NDArray[np.str_]
    chosen: NDArray[np.str_]
    probability: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """Return the entropy of the predicted probabilities in nats."""
        return entropy(self.probability)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Return the mask of the rows that the classifier gets wrong."""
        return np.asarray(self.chosen != self.y)

    @property
    def least_sure(self) -> NDArray[np.intp]:
        """Return all rows in decreasing order of total uncertainty."""
        return np.argsort(-self.total, kind="stable")


def run(
    folder: Path,
    *,
    n_folds: int = 100,
    n_steps: int = 1000,
    seed: int = 0,
    n_jobs: int | None = None,
) -> None:
    """Run both parts, print the results, and write figures and the model to `folder`."""
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
    explained = explain(seed, n_jobs)
    _show_explained(out, explained)
    bars, model_file = folder / "importances.png", folder / "breast_cancer.sglb"
    names = [str(name) for name in explained.model.feature_names_in_]
    title = "What decides between malignant and benign"
    plots.save(plots.importances(names, explained.model.feature_importances_, title=title), bars)
    explained.model.save(model_file)
    out.print("\nWritten", style="bold")
    out.print(f"{picture}  test error over steps")
    out.print(f"{bars}  which features the classifier uses")
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


def explain(seed: int, n_jobs: int | None = None) -> Explained:
    """Train a classifier on scikit-learn's breast cancer table and predict unseen rows."""
    bunch = load_breast_cancer()
    labels = np.asarray(bunch.target_names, dtype=np.str_)[bunch.target]
    train, test = train_test_split(
        np.arange(labels.size), test_size=0.4, random_state=seed, stratify=labels
    )
    table = pa.table(dict(zip(map(str, bunch.feature_names), bunch.data.T, strict=True)))
    model = SGLBClassifier(random_state=seed, n_jobs=n_jobs).fit(table.take(train), labels[train])
    unseen = table.take(test)
    return Explained(
        model=model,
        y=labels[test],
        chosen=model.predict(unseen),
        probability=model.predict_proba(unseen),
    )


def _show_explained(out: Console, explained: Explained) -> None:
    """Print the classifier's accuracy, its most important features and its least certain rows."""
    model, y = explained.model, explained.y
    accuracy = accuracy_score(y, explained.chosen)
    loss = log_loss(y, explained.probability, labels=model.classes_)
    out.print(
        f"Breast cancer (scikit-learn): on {y.size} unseen rows the accuracy is {accuracy:.1%},"
        f" the log loss {loss:.3f}."
    )
    share = model.feature_importances_
    top = np.argsort(-share, kind="stable")[:5]
    listed = ", ".join(f"{model.feature_names_in_[j]} ({share[j]:.0%})" for j in top)
    out.print(f"It looks most at {listed}.")
    table = Table("row", title="The rows it is least sure about", title_justify="left")
    for name in ("truth", "prediction", "probability", "uncertainty", ""):
        table.add_column(name, justify="left" if name in ("truth", "prediction") else "right")
    for row in explained.least_sure[:6]:
        wrong = bool(explained.wrong[row])
        table.add_row(
            str(row),
            y[row],
            explained.chosen[row],
            f"{explained.probability[row].max():.2f}",
            f"{explained.total[row]:.3f}",
            "wrong" if wrong else "right",
            style="red" if wrong else None,
        )
    out.print(table)
    out.print("Uncertainty is the entropy of the probabilities in nats, 0.693 at most.")
    out.print(mistakes(explained))


def mistakes(explained: Explained) -> str:
    """Say how many of the mistakes are among the rows the classifier is least sure about."""
    n_rows = explained.y.size
    n_unsure = round(UNSURE * n_rows)
    unsure = int(explained.wrong[explained.least_sure[:n_unsure]].sum())
    sure = int(explained.wrong.sum()) - unsure
    return (
        f"It is wrong in {unsure} of the {n_unsure} rows it is least sure about"
        f" ({unsure / n_unsure:.0%}) and in {sure} of the other {n_rows - n_unsure}"
        f" ({sure / (n_rows - n_unsure):.1%})."
    )
