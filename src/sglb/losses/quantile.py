"""The quantile (pinball) loss."""

from dataclasses import dataclass

import numpy as np

from sglb.elementary import exp, log1p
from sglb.losses import minimisers
from sglb.losses.base import Floats, WidthLoss
from sglb.target import Target

# In spreads of y. Smoothing adds a logistic error of standard deviation 1.81 width to y. Where y is
# normal about its quantile with standard deviation s, that moves the level by at most
# .4 (width / s)^2, which is .01 at s = 6.3 widths: .003 suits every target of which a model leaves
# more than .02 of the spread unexplained. Less smoothing makes the leaves noisier.
SMALL_WIDTH = 0.003


@dataclass(frozen=True)
class Quantile(WidthLoss):
    """Pinball loss with its kink rounded off over `width`: the quantile `level` of y.

    Domain      y any number, 0 < level < 1
    Formula     L = level u + width log(1 + exp(-u / width)), u = y - z
    Link        identity, the quantile (as width goes to 0)
    Gradient    s(-u / width) - level, s(x) = 1 / (1 + exp(-x))
    Hessian     s (1 - s) / width
    Lipschitz   max(level, 1 - level)
    Smoothness  1 / (4 width), at u = 0
    Start       weighted quantile, the minimiser as width goes to 0

    The width is in spreads of y unless `absolute`.
    """

    level: float = 0.5
    width: float = SMALL_WIDTH

    name = "quantile"

    def __post_init__(self) -> None:
        """Validate level and width."""
        super().__post_init__()
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level of loss 'quantile' must be in (0, 1), got {self.level!r}")

    @property
    def lipschitz(self) -> float:
        """Limit of |gradient| for large |u|, on the steeper side."""
        return max(self.level, 1.0 - self.level)

    @property
    def smoothness(self) -> float:
        """Hessian at u = 0."""
        return 0.25 / self.width

    @property
    def kernel_parameters(self) -> tuple[float, float]:
        """Level and width."""
        return self.level, self.width

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """Pinball loss plus width log(1 + exp(-|u| / width)): the same, without cancellation."""
        u = y - raw
        with np.errstate(over="ignore"):  # |u| / width may be infinite: exp(-inf) is right
            bump = self.width * log1p(exp(-np.abs(u) / self.width))
        return np.maximum(self.level * u, (self.level - 1.0) * u) + bump

    def init(self, target: Target) -> Floats:
        """Weighted quantile."""
        return np.array([minimisers.quantile(target, self.level)])
