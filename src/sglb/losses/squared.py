"""The squared loss."""

from dataclasses import dataclass

import numpy as np

from sglb.losses.base import Floats, Loss
from sglb.target import Target


@dataclass(frozen=True)
class Squared(Loss):
    """Squared loss: the mean, and normal errors of variance 1 at temperature 1.

    Domain      y any number
    Formula     L = r² / 2, r = z - y
    Link        identity, the mean of y
    Gradient    r
    Hessian     1
    Lipschitz   no
    Smoothness  1
    Start       weighted mean, the minimiser
    """

    name = "squared"
    predicts_mean = True
    law = "student"
    smoothness = 1.0  # d²L/dz² = 1

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """r² / 2."""
        return 0.5 * np.square(raw - y)

    def init(self, target: Target) -> Floats:
        """Weighted mean."""
        return np.array([target.mean(target.values)])
