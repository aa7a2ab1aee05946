"""The loss of a chain that predicts log scales of residuals."""

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.elementary import exp, log

Floats = NDArray[np.float64]

# Residuals are in units of their root mean square: scales beyond e^15 of that, on either side, are
# none. The exponential is continued by its tangent there, so that nothing overflows.
LIMIT = 30.0
# A residual counts as at least this share of the unit: a table may hold rows that are predicted
# exactly, and the log of their scale is not to run away.
LEAST = 1e-3


class LogScale:
    """Minus the log likelihood of a normal residual r of scale exp(z), up to a constant.

    Formula     L = z + r² exp(-2 z) / 2, lowest at exp(z) = |r|
    Gradient    1 - r² exp(-2 z)
    Hessian     2, its mean over r of that scale (Fisher's information): rows of small residuals
                would have none, and one large residual would stop its leaf
    """

    name = "log_scale"
    convex = True
    row_wise = True

    def loss(self, r: Floats, raw: Floats) -> Floats:
        """z + r² exp(-2 z) / 2."""
        return raw + 0.5 * np.square(r) * _exp(-2.0 * raw)

    def gradient(self, r: Floats, raw: Floats) -> Floats:
        """1 - r² exp(-2 z)."""
        x = -2.0 * raw
        return 1.0 - np.square(r) * exp(np.minimum(x, LIMIT))

    def hessian(self, r: Floats, raw: Floats) -> Floats:
        """Fisher's information."""
        return np.full_like(raw, 2.0)

    def init(self, r: Floats, weight: Floats) -> float:
        """Half of the log of the mean square, the minimiser."""
        return 0.5 * log(sums.mean(np.square(r), weight))


def _exp(x: Floats) -> Floats:
    """Return exp(x), from the limit on its tangent."""
    beyond = np.maximum(x - LIMIT, 0.0)
    return exp(np.minimum(x, LIMIT)) * (1.0 + beyond)
