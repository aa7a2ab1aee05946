"""The 0-1 loss, smoothed."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from sglb.losses.base import Floats, Loss, read_positive
from sglb.losses.links import Link, sigmoid
from sglb.schedules import Scheduled, extremes_of, last_of
from sglb.target import Target


@dataclass(frozen=True)
class Sla(Loss):
    """Smooth loss approximation of the 0-1 loss: the fraction of wrong predictions, multimodal.

    Domain      y in {0, 1}
    Formula     L = 1 - s(m z / width), m = 2 y - 1, s(x) = 1 / (1 + exp(-x))
                (the paper prints exp(x) in s: a misprint, it would reward wrong predictions)
    Link        s(z / width), which grows with z and is 1/2 at the border between the classes,
                but is not a calibrated probability: the loss is not a proper score
    Gradient    -(m / width) s (1 - s) at m z / width
    Second derivative  -(1 / width²) s (1 - s) (1 - 2 s), of either sign: no Newton steps
    Lipschitz   1 / (4 width), at z = 0
    Smoothness  1 / (6 sqrt(3) width²), where s = 1/2 +- 1 / (2 sqrt(3))
    Start       0: the minimiser is at infinity

    `width` may be a schedule, such as "cosine(1, 0.1)": the loss gets sharper from step to step.
    Reported losses and probabilities are those of the last width.
    """

    width: Scheduled = 0.1

    name = "sla"
    task = "binary"
    convex = False
    has_hessian = False
    starts_at_zero = True
    proper = False
    default_learning_rate = 0.1  # the paper's

    def __post_init__(self) -> None:
        """Read and validate the width."""
        object.__setattr__(self, "width", read_positive(self, "width", self.width))

    @property
    def lipschitz(self) -> float:
        """|gradient| at z = 0, at the smallest width."""
        return 0.25 / extremes_of(self.width)[0]

    @property
    def smoothness(self) -> float:
        """Largest |s''| = 1 / (6 sqrt(3)), over the smallest width²."""
        width = extremes_of(self.width)[0]
        return 1.0 / (6.0 * sqrt(3.0) * width * width)

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        """Width."""
        return last_of(self.width), 0.0

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """1 - s(m z / width) = s(-m z / width)."""
        with np.errstate(over="ignore"):  # raw / width may be infinite, where s is flat
            return sigmoid((1.0 - 2.0 * y) * raw / last_of(self.width))

    def init(self, target: Target) -> Floats:
        """Zero."""
        return np.zeros(1)

    @property
    def link(self) -> Link:
        """s(z / width)."""
        return Link("sigmoid", last_of(self.width))
