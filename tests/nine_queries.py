"""Documents of nine queries, and the slopes of a ranking loss there."""

import numpy as np

from sglb.losses.ranking import QuerySlopes
from sglb.target import Target

rng = np.random.default_rng(0)
N = 60
GROUPS = rng.integers(0, 9, N)
Y = rng.integers(0, 5, N).astype(float)
RAW = rng.normal(size=N)
TARGET = Target.of(Y, groups=GROUPS)


def slopes(loss, target, raw, draws=None):
    gradient, hessian = np.full(len(raw), np.nan), np.full(len(raw), np.nan)
    loss.slopes_on(target)(QuerySlopes(raw, gradient, hessian, draws))
    return gradient, hessian
