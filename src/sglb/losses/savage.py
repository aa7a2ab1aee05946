"""The Savage loss."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from sglb.losses.base import Floats, Loss
from sglb.losses.links import SIGMOID, sigmoid
from sglb.losses.minimisers import log_odds
from sglb.target import Target

# q = s(-m z) at the largest second derivative: the smaller root of 12 q² - 15 q + 4 = 0.
_STEEPEST = (15.0 - sqrt(33.0)) / 24.0


@dataclass(frozen=True)
class Savage(Loss):
    """Savage loss: the Brier score of a probability given as a logit. Proper, bounded, robust.

    Domain      y in {0, 1}
    Formula     L = (y - s(z))² = q², q = s(-m z), m = 2 y - 1, s(x) = 1 / (1 + exp(-x))
    Link        s(z), the probability of class 1
    Gradient    -2 m q² (1 - q)
    Second derivative  2 q² (1 - q) (2 - 3 q), negative from q = 2/3 on: no Newton steps
    Lipschitz   8/27, at q = 2/3
    Smoothness  0.1541, the second derivative at q = (15 - sqrt(33)) / 24
    Start       log-odds, the minimiser; +-log(2 N) when a class is absent
    """

    name = "savage"
    task = "binary"
    convex = False
    has_hessian = False
    link = SIGMOID

    @property
    def lipschitz(self) -> float:
        """|gradient| at q = 2/3."""
        return 8.0 / 27.0

    @property
    def smoothness(self) -> float:
        """Second derivative at the root of its derivative."""
        q = _STEEPEST
        return 2.0 * q * q * (1.0 - q) * (2.0 - 3.0 * q)

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """q²."""
        return np.square(sigmoid((1.0 - 2.0 * y) * raw))

    def init(self, target: Target) -> Floats:
        """Log-odds."""
        return np.array([log_odds(target)])
