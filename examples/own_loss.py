"""Your own loss: any object with loss(y, raw) and gradient(y, raw) on NumPy arrays.

Here it is log cosh(raw - y): quadratic near zero, linear far away, so outliers pull little.
"""

import numpy as np

import sglb


class LogCosh:
    """L = log cosh(raw - y), its gradient tanh(raw - y), at most 1 in size."""

    convex = True

    def loss(self, y, raw):
        """Return the loss of each row, written so that it never overflows."""
        distance = np.abs(raw - y)
        return distance + np.log1p(np.exp(-2.0 * distance)) - np.log(2.0)

    def gradient(self, y, raw):
        """Return its derivative by raw."""
        return np.tanh(raw - y)


generator = np.random.default_rng(0)
X = generator.uniform(-3.0, 3.0, size=(2000, 1))
truth = np.sin(X[:, 0])
y = truth + 0.1 * generator.standard_normal(2000)
y[::10] += 20.0  # every tenth row is badly wrong

print(sglb.check_loss(LogCosh(), y))  # is the gradient right, and what is guaranteed?
for loss in ("squared", LogCosh()):
    model = sglb.SGLBRegressor(loss=loss, n_estimators=300, max_depth=3, random_state=0)
    model.fit(X, y)
    error = np.abs(model.predict(X) - truth).mean()
    name = loss if isinstance(loss, str) else "log cosh"
    print(f"{name}: mean distance to the truth {error:.3f}")
