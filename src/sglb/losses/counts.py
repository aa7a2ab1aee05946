"""The loss for counts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sglb.elementary import exp, log
from sglb.losses.base import Floats, Loss
from sglb.losses.links import Link
from sglb.losses.minimisers import log_mean
from sglb.target import Target


@dataclass(frozen=True)
class Poisson(Loss):
    """Poisson deviance (halved) with a logarithmic link: the mean of counts or rates.

    Domain      y >= 0
    Formula     L = exp(z) - y z + (y log y - y), least value 0 at exp(z) = y
    Link        exp(z), the mean of y
    Gradient    exp(z) - y
    Hessian     exp(z)
    Lipschitz   no
    Smoothness  no
    Start       log of the weighted mean, the minimiser; log(1 / (2 N)) when every y is 0

    From z = 30 on, a mean of 1e13, exp(z) is replaced by the parabola of the same value, slope and
    curvature: L stays convex and bounded below, and nothing overflows.
    """

    name = "poisson"
    predicts_mean = True
    law = "poisson"
    limit: ClassVar[float] = 30.0

    def check_target(self, target: Target) -> None:
        """Raise ValueError at the first target that is negative or not finite."""
        super().check_target(target)
        y = target.values
        self._require(y >= 0, y, "a number >= 0")

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """exp(z) - y z + (y log y - y)."""
        d = np.maximum(raw - self.limit, 0.0)
        mean = exp(np.minimum(raw, self.limit)) * (1.0 + d * (1.0 + 0.5 * d))
        return mean - y * raw + (y * log(np.where(y > 0, y, 1.0)) - y)

    def init(self, target: Target) -> Floats:
        """Log of the weighted mean."""
        return np.array([log_mean(target)])

    @property
    def link(self) -> Link:
        """exp(z), from the limit on its tangent: the gradient stays prediction - y."""
        return Link("exponential", self.limit)
