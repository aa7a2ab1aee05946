"""The part of the demo with a regression: intervals, and how often unseen outcomes are inside."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from sglb import plots
from sglb.distributions import Distribution
from sglb.estimators import SGLBRegressor

Floats = NDArray[np.float64]

COVERAGE = 0.9


@dataclass(frozen=True)
class Covered:
    """Intervals of unseen rows by several methods, and the outcomes.

    bounds        name of the method -> (n_rows, 2)
    guarantee     proven coverage of the last method
    """

    y: Floats
    prediction: Floats
    distribution: Distribution
    bounds: dict[str, Floats]
    guarantee: float
    n_training: int


PLAIN, LEARNED, PROVEN = "no model", "predict_interval", "cross_conformalize"


def cover(seed: int, n_jobs: int | None = None) -> Covered:
    """Train a regressor on scikit-learn's diabetes table and compute intervals of unseen rows."""
    X, y = load_diabetes(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
    model = SGLBRegressor(uncertainty=True, random_state=seed, n_jobs=n_jobs).fit(X, y)
    proven = model.cross_conformalize(X, y).predict_interval(X_test, COVERAGE)
    constant = np.quantile(y, [0.5 - 0.5 * COVERAGE, 0.5 + 0.5 * COVERAGE])
    bounds = {
        PLAIN: np.tile(constant, (len(y_test), 1)),
        LEARNED: model.predict_interval(X_test, COVERAGE),
        PROVEN: proven.bounds,
    }
    distribution = model.predict_distribution(X_test)
    prediction = model.predict(X_test)
    return Covered(y_test, prediction, distribution, bounds, proven.guarantee, len(y))


def show(out: Console, covered: Covered) -> None:
    """Print coverage and width of the intervals, and whether narrow ones are right to be so."""
    n_rows = len(covered.y)
    out.print(
        "Diabetes (scikit-learn): how far the disease has gone after a year, by ten numbers of a"
        f" patient.\n{covered.n_training} patients for training, intervals for {n_rows} others."
    )
    table = Table("intervals")
    for name in ("asked for", "measured", "mean width"):
        table.add_column(name, justify="right")
    for name, bounds in covered.bounds.items():
        share = np.mean(inside(bounds, covered.y))
        width = np.mean(bounds[:, 1] - bounds[:, 0])
        table.add_row(name, f"{COVERAGE:.0%}", f"{share:.1%}", f"{width:.0f}")
    out.print(table)
    error = np.sqrt(COVERAGE * (1.0 - COVERAGE) / n_rows)
    out.print(
        f"{PLAIN}: quantiles of the training rows. {LEARNED}: the distribution of y that fit\n"
        f"learns out of fold. {PROVEN}: by five models; if new rows are like the old\n"
        f"ones, coverage is proven to be at least {covered.guarantee:.0%}. What is measured has a"
        f" standard error of {error:.1%}."
    )
    out.print(widths(covered))


def inside(bounds: Floats, y: Floats) -> NDArray[np.bool_]:
    """Return whether each outcome is in its interval."""
    return np.asarray((bounds[:, 0] <= y) & (y <= bounds[:, 1]))


def widths(covered: Covered) -> str:
    """Say how far outcomes are from their predictions where intervals are narrow and wide."""
    bounds = covered.bounds[LEARNED]
    width = bounds[:, 1] - bounds[:, 0]
    order = np.argsort(width, kind="stable")
    third = len(order) // 3
    narrow, wide = order[:third], order[-third:]
    miss = np.abs(covered.y - covered.prediction)
    return (
        f"Intervals are {width.min():.0f} to {width.max():.0f} wide. In the narrowest third"
        f" predictions are off by {miss[narrow].mean():.0f} on\naverage, in the widest by"
        f" {miss[wide].mean():.0f}."
    )


def picture(covered: Covered) -> Any:
    """Return a figure of the predicted distributions and the outcomes."""
    share = np.mean(inside(covered.bounds[LEARNED], covered.y))
    axes = plots.fan_chart(
        covered.distribution,
        covered.y,
        n_bins=25,
        xlabel="patients, by their prediction",
        ylabel="progression of the disease",
        title=f"{100 * share:.0f} % of unseen outcomes lie in their 90 % intervals",
    )
    return axes.figure
