"""The paper's synthetic experiment: stumps, the 0-1 loss, and who gets out of a local optimum.

Each fold draws new rows of `datasets.synthetic` for training and for testing. A method is one
estimator; what is kept of it is its test 0-1 error after each step,

    error_k = mean over test rows of 1{(2 y - 1) f_k(x) <= 0}.

Methods meet on the same folds, so they are compared by the paired two-sided t-test.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils.parallel import Parallel, delayed

from sglb.datasets import synthetic
from sglb.estimators import SGLBClassifier

TRAIN_ROWS = TEST_ROWS = 1000
# As the paper states them: depth 1, five borders, learning rate .1; sla has the width .1.
SHARED: Mapping[str, Any] = {
    "max_depth": 1,
    "max_bins": 6,
    "learning_rate": 0.1,
    "leaf_method": "gradient",
    "l2_regularization": 0.0,
    "structure_sample": 1.0,
    "init": "zero",
    "n_jobs": 1,
}


@dataclass(frozen=True)
class Method:
    """A row of the paper's table: its name and what sets it apart."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


METHODS = (
    Method("logistic + GB", {"loss": "logistic", "sampler": "plain"}),
    Method("sla + GB", {"loss": "sla", "sampler": "plain"}),
    Method("sla + SGB", {"loss": "sla", "sampler": "stochastic", "subsample": 0.5}),
    # The paper's beta = 10^3 as CatBoost counts it, in units of N: temperature = N / beta = 10^-3.
    Method(
        "sla + SGLB",
        {"loss": "sla", "sampler": "langevin", "temperature": 1e-3, "shrink_rate": 1e-3},
    ),
)
REFERENCE = "sla + SGLB"


@dataclass(frozen=True)
class Comparison:
    """One method beside the reference: mean and standard error of its last error, p-value."""

    name: str
    error: float
    standard_error: float
    p_value: float | None


@dataclass(frozen=True)
class Result:
    """Test errors (n_folds, n_steps) of each method and the seconds they took."""

    curves: dict[str, NDArray[np.float64]]
    seconds: float

    def compare(self) -> list[Comparison]:
        """Compare every method after its last step with the reference, fold by fold."""
        reference = self.curves[REFERENCE][:, -1]
        rows = []
        for name, curve in self.curves.items():
            last = curve[:, -1]
            spread = float(np.std(last, ddof=1) / np.sqrt(last.size)) if last.size > 1 else np.nan
            p_value = None if name == REFERENCE else _paired_p_value(last, reference)
            rows.append(Comparison(name, float(last.mean()), spread, p_value))
        return rows


def _paired_p_value(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of the paired t-test; 1 where nothing differs."""
    if a.size < 2 or np.ptp(a - b) == 0.0:
        return 1.0 if np.array_equal(a, b) else float("nan")
    return float(stats.ttest_rel(a, b).pvalue)


def run_fold(fold: int, n_steps: int, seed: int) -> dict[str, NDArray[np.float64]]:
    """Train every method on fold number `fold`; return its test error after each step."""
    x, y = synthetic(TRAIN_ROWS + TEST_ROWS, [seed, fold])
    test = x[TRAIN_ROWS:]
    side = 2.0 * y[TRAIN_ROWS:] - 1.0
    curves = {}
    for method in METHODS:
        model = SGLBClassifier(
            n_estimators=n_steps, random_state=seed + fold, **SHARED, **method.parameters
        )
        model.fit(x[:TRAIN_ROWS], y[:TRAIN_ROWS])
        curves[method.name] = np.array(
            [np.mean(side * raw <= 0.0) for raw in model.staged_decision_function(test)]
        )
    return curves


def run(
    n_folds: int = 100,
    n_steps: int = 1000,
    *,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Run all folds, `n_jobs` at a time in processes; `progress` hears the number done."""
    started = time.perf_counter()
    # A fit of this size gains nothing from threads: whole folds go to processes instead.
    folds = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(run_fold)(fold, n_steps, seed) for fold in range(n_folds)
    )
    curves: dict[str, list[NDArray[np.float64]]] = {method.name: [] for method in METHODS}
    for done, fold in enumerate(folds, start=1):
        for name, curve in fold.items():
            curves[name].append(curve)
        if progress is not None:
            progress(done)
    return Result(
        {name: np.stack(rows) for name, rows in curves.items()}, time.perf_counter() - started
    )
