"""Uncertainty: what the model does not know, apart from what nobody can know.

The label follows the height: below zero it is 1 in 95 of 100 cases, above it is a coin toss.
Nearly all rows lie on the left. A chain at temperature 1 draws models from the posterior; where
they agree that it is a toss-up there is data uncertainty, where they disagree, knowledge
uncertainty: it is large on the right, where there are few rows, and only there.
"""

import numpy as np

import sglb

generator = np.random.default_rng(0)
n_rows = 2000
is_left = generator.random(n_rows) < 0.99
place = np.where(is_left, generator.uniform(-1, 0, n_rows), generator.uniform(0, 1, n_rows))
height = generator.uniform(-1, 1, n_rows)
y = generator.random(n_rows) < np.where(height < 0, 0.95, 0.5)

model = sglb.SGLBClassifier(
    temperature=1.0,
    shrink_rate=0.01,
    learning_rate=0.3,
    leaf_method="gradient",
    n_estimators=3000,
    max_depth=3,
    random_state=0,
)
model.fit(np.column_stack([place, height]), y)

points = {
    "many rows, clear": (-0.5, -0.5),
    "many rows, coin toss": (-0.5, 0.5),
    "few rows, clear": (0.5, -0.5),
    "few rows, coin toss": (0.5, 0.5),
}
uncertainty = model.predict_uncertainty(np.array(list(points.values())), n_states=200)
print(f"{'':20} probability   data   knowledge")
for row, name in enumerate(points):
    print(
        f"{name:20} {uncertainty.mean[row, 1]:11.2f} {uncertainty.data[row]:6.3f}"
        f" {uncertainty.knowledge[row]:11.4f}"
    )
