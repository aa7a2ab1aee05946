"""What the model does not know, apart from what nobody can know; and a gap it does not notice.

    python examples/uncertainty.py [picture.png]

Classes: on the left the label is 1 in 95 of 100 cases below zero, and a coin toss above; on the
right it is the other way round. 98 of 100 rows lie on the left. Data uncertainty is large where the
label is a coin toss, knowledge uncertainty where there are few rows.

Numbers: a sine with more noise on the right and without rows between -0.5 and 0.8. Intervals follow
the noise. In the gap trees are constant: prediction and spread are those of the nearest rows on one
side, and nothing shows that no row was there. The picture needs matplotlib.
"""

import sys

import numpy as np

import sglb

rng = np.random.default_rng(0)
n_rows = 2000
is_left = rng.random(n_rows) < 0.98
side = np.where(is_left, rng.uniform(-1, 0, n_rows), rng.uniform(0, 1, n_rows))
height = rng.uniform(-1, 1, n_rows)
label = rng.random(n_rows) < np.where((height < 0) == is_left, 0.95, 0.5)
classifier = sglb.SGLBClassifier(uncertainty=True, random_state=0)
classifier.fit(np.column_stack([side, height]), label)
points = {
    "many rows, clear": (-0.5, -0.5),
    "many rows, coin toss": (-0.5, 0.5),
    "few rows, clear": (0.5, 0.5),
    "few rows, coin toss": (0.5, -0.5),
}
uncertainty = classifier.predict_uncertainty(np.array(list(points.values())))
print(f"{'':20} probability   data   knowledge")
for row, name in enumerate(points):
    print(
        f"{name:20} {uncertainty.mean[row, 1]:11.2f} {uncertainty.data[row]:6.3f}"
        f" {uncertainty.knowledge[row]:11.4f}"
    )

x = rng.uniform(-3, 3, 2500)
x = x[(x < -0.5) | (x > 0.8)]
y = np.sin(2 * x) + np.where(x < 0, 0.1, 0.4) * rng.normal(size=len(x))
regressor = sglb.SGLBRegressor(uncertainty=True, random_state=0).fit(x[:, None], y)
posterior = regressor.posterior(x[:, None], y)
print(f"\n{'x':>5} {'sin 2x':>7} {'mean':>7} {'std of the mean':>16} {'std of y':>9}")
for at in (-2.0, -1.0, 0.15, 1.5, 2.5):
    mean, std = regressor.predict([[at]], return_std=True)
    spread = posterior.std([[at]])
    print(f"{at:5.2f} {np.sin(2 * at):7.2f} {mean[0]:7.2f} {spread[0]:16.2f} {std[0]:9.2f}")

if len(sys.argv) > 1:
    import matplotlib.pyplot as plt

    grid = np.linspace(-3, 3, 601)
    low, high = regressor.predict_interval(grid[:, None], coverage=0.9).T
    least, most = posterior.interval(grid[:, None], coverage=0.9).T
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    axes.plot(x, y, ".", color="0.3", alpha=0.25, markersize=3, label="training rows")
    axes.fill_between(grid, low, high, color="#b8d8ea", linewidth=0, label="90 % of y")
    axes.fill_between(grid, least, most, color="#5b9cc4", linewidth=0, label="90 % of the draws")
    axes.plot(grid, np.sin(2 * grid), color="black", linestyle="--", label="truth")
    axes.annotate("no rows here", (0.15, -1.6), ha="center")
    axes.set(xlabel="x", ylabel="y")
    axes.set_title("Intervals follow the noise; in a gap they repeat a neighbour")
    axes.legend(loc="upper left", ncols=4, frameon=False)
    axes.set_ylim(-2, 2.7)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(sys.argv[1], dpi=75)
