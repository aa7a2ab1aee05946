"""The pictures of the guide to uncertainty, one of each plot, from data that come with scikit-learn
and the sine of the guide.

    python examples/uncertainty_plots.py FOLDER

Writes uncertainty_fan.png, uncertainty_coverage.png, ... Takes a minute; needs matplotlib.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

import sglb
from sglb import plots

mpl.use("Agg")
folder = Path(sys.argv[1])
rng = np.random.default_rng(0)


def save(axes, name):
    """Write the figure of axes to a file."""
    axes.figure.savefig(folder / f"uncertainty_{name}.png", dpi=75)


def simulate(n_rows):
    """A sine with four times the noise on the right."""
    x = rng.uniform(-3, 3, n_rows)
    return x[:, None], np.sin(2 * x) + np.where(x < 0, 0.1, 0.4) * rng.normal(size=n_rows)


X, y = simulate(2000)
X_new, y_new = simulate(5000)
model = sglb.SGLBRegressor(uncertainty=True, random_state=0).fit(X, y)
new = model.predict_distribution(X_new)
save(plots.fan_chart(new, y_new, x=X_new[:, 0], xlabel="x"), "fan")
upper, _ = plots.coverage_by_scale(y_new, new.interval(0.9), new.std, coverage=0.9)
save(upper, "coverage")

is_high = y > rng.normal(size=len(y))  # a label that x only makes more or less likely
classes = sglb.SGLBClassifier(random_state=0).fit(X, is_high)
probability = classes.predict_proba(X_new)[:, 1]
save(plots.reliability(probability, y_new > rng.normal(size=len(y_new))), "reliability")

images, digits = load_digits(return_X_y=True)
images, new_images, digits, label = train_test_split(images, digits, test_size=0.5, random_state=0)
classifier = sglb.SGLBClassifier(uncertainty=True, random_state=0).fit(images, digits)
unknown = classifier.predict_uncertainty(new_images)
save(plots.rejection_curve(unknown.mean.argmax(axis=1) != label, unknown), "rejection")

table, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
regressor = sglb.SGLBRegressor(random_state=0).fit(table, progression)
posterior = regressor.posterior(table, progression)
save(plots.partial_dependence_posterior(posterior, table, "bmi"), "dependence")

chains = regressor.posterior(table, progression, kind="paper", n_draws=200)
patient = chains.predict(table[:1])[:, 0].reshape(4, -1)
save(plots.draws_trace(patient, ylabel="prediction for one patient"), "trace")
save(plots.rank_plot(patient), "ranks")
