"""The logistic loss."""

from dataclasses import dataclass

import numpy as np

from sglb.losses.base import Floats, Loss
from sglb.losses.links import SIGMOID, cross_entropy
from sglb.losses.minimisers import log_odds
from sglb.target import Target


@dataclass(frozen=True)
class Logistic(Loss):
    """Logistic loss: minus the log-probability of the class.

    Domain      y in {0, 1}
    Formula     L = log(1 + exp(-m z)), m = 2 y - 1
    Link        s(z) = 1 / (1 + exp(-z)), the probability of class 1
    Gradient    s(z) - y
    Hessian     s(z) (1 - s(z))
    Lipschitz   1
    Smoothness  1/4, at z = 0
    Trust radius  2, the longest Newton step from z = 0
    Start       log-odds, the minimiser; +-log(2 N) when a class is absent
    """

    name = "logistic"
    task = "binary"
    link = SIGMOID
    lipschitz = 1.0  # limit of |gradient| for large -m z
    smoothness = 0.25  # hessian at z = 0
    # |g| / h at z = 0: h vanishes at rows with large |z|, so that a few rows of the other class
    # could move a leaf by any amount.
    trust_radius = 2.0

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """log(1 + exp(-m z))."""
        return cross_entropy(y, raw)

    def init(self, target: Target) -> Floats:
        """Log-odds."""
        return np.array([log_odds(target)])
