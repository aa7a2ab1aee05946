"""The loss for several classes."""

from dataclasses import dataclass

import numpy as np

from sglb import sums
from sglb.elementary import log
from sglb.losses.base import Floats, Loss
from sglb.losses.links import SOFTMAX, cross_entropy
from sglb.losses.minimisers import class_weights
from sglb.target import Target


@dataclass(frozen=True)
class Softmax(Loss):
    """Cross-entropy: minus the log-probability of the class, one raw score per class.

    Domain      y in {0, ..., n_classes - 1}
    Formula     L = log(sum over k of exp(z_k)) - z_y
    Link        p_k = exp(z_k) / sum over j of exp(z_j), the probabilities
    Gradient    p_k - 1{y = k}
    Hessian     p_k (1 - p_k), the diagonal of diag(p) - p p'
    Lipschitz   sqrt(2), the distance of two corners of the simplex
    Smoothness  1/2, the largest eigenvalue of diag(p) - p p' (at p = (1/2, 1/2, 0, ...))
    Start       log of the class weights' shares, a minimiser; an absent class counts half a row
    """

    n_classes: int

    name = "softmax"
    task = "multiclass"
    one_output_per_class = True
    smoothness = 0.5  # largest eigenvalue of the Hessian
    link = SOFTMAX

    def __post_init__(self) -> None:
        if self.n_classes != int(self.n_classes) or self.n_classes < 2:
            raise ValueError(
                f"n_classes of loss 'softmax' must be a whole number >= 2, got {self.n_classes!r}"
            )
        object.__setattr__(self, "n_classes", int(self.n_classes))

    @property
    def n_outputs(self) -> int:
        """One raw score per class."""
        return self.n_classes

    @property
    def lipschitz(self) -> float:
        """Limit of ||p - e_y|| when another class takes all."""
        return float(np.sqrt(2.0))

    def check_target(self, target: Target) -> None:
        """Raise ValueError at the first target that is not the index of a class."""
        super().check_target(target)
        y = target.values
        valid = (y >= 0) & (y < self.n_classes) & (y == np.floor(y))
        self._require(valid, y, f"a whole number in 0..{self.n_classes - 1}")

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """log(sum over k of exp(z_k)) - z_y."""
        return cross_entropy(y, raw)

    def hessian_parts(self, y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        """diag(p) - p p'."""
        p = self.link(raw)
        return p, p

    def init(self, target: Target) -> Floats:
        """Log of the classes' shares of the weight."""
        weights = class_weights(target, self.n_classes)
        return log(weights / sums.total(weights))
