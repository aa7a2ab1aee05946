"""The pictures of the guide to uncertainty, one of each plot, from data that come with scikit-learn
and the sine of the guide.

    python -m benchmarks.uncertainty.pictures docs

Writes uncertainty_fan.png, uncertainty_coverage.png, ... into the folder. Takes a minute; needs
matplotlib.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

import sglb
from sglb import plots


def simulate(n_rows, rng):
    """A sine with four times the noise on the right."""
    x = rng.uniform(-3, 3, n_rows)
    return x[:, None], np.sin(2 * x) + np.where(x < 0, 0.1, 0.4) * rng.normal(size=n_rows)


def numbers_and_two_classes():
    """Yield a fan chart and the coverage of intervals, then the reliability of probabilities."""
    rng = np.random.default_rng(0)
    X, y = simulate(2000, rng)
    X_new, y_new = simulate(5000, rng)
    model = sglb.SGLBRegressor(uncertainty=True, random_state=0).fit(X, y)
    new = model.predict_distribution(X_new)
    yield "fan", plots.fan_chart(new, y_new, x=X_new[:, 0], xlabel="x")
    upper, _ = plots.coverage_by_scale(y_new, new.interval(0.9), new.std, coverage=0.9)
    yield "coverage", upper

    is_high = y > rng.normal(size=len(y))  # a label that x only makes more or less likely
    classes = sglb.SGLBClassifier(random_state=0).fit(X, is_high)
    probability = classes.predict_proba(X_new)[:, 1]
    yield "reliability", plots.reliability(probability, y_new > rng.normal(size=len(y_new)))


def several_classes():
    """Yield the errors that are left when the most uncertain rows are rejected."""
    images, digits = load_digits(return_X_y=True)
    images, new_images, digits, label = train_test_split(
        images, digits, test_size=0.5, random_state=0
    )
    model = sglb.SGLBClassifier(uncertainty=True, random_state=0).fit(images, digits)
    unknown = model.predict_uncertainty(new_images)
    yield "rejection", plots.rejection_curve(unknown.mean.argmax(axis=1) != label, unknown)


def draws():
    """Yield a partial dependence with its posterior, then the trace and the ranks of chains."""
    table, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = sglb.SGLBRegressor(random_state=0).fit(table, progression)
    posterior = model.posterior(table, progression)
    yield "dependence", plots.partial_dependence_posterior(posterior, table, "bmi")
    chains = model.posterior(table, progression, kind="paper", n_draws=200)
    patient = chains.predict(table[:1])[:, 0].reshape(4, -1)
    yield "trace", plots.draws_trace(patient, ylabel="prediction for one patient")
    yield "ranks", plots.rank_plot(patient)


def main():
    mpl.use("Agg")
    for pictures in (numbers_and_two_classes, several_classes, draws):
        for name, axes in pictures():
            axes.figure.savefig(Path(sys.argv[1]) / f"uncertainty_{name}.png", dpi=75)


if __name__ == "__main__":
    main()
