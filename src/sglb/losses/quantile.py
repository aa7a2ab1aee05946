"""The quantile (pinball) loss, of a single level or of several."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sglb.elementary import exp, log1p
from sglb.losses import minimisers
from sglb.losses.base import Floats, WidthLoss
from sglb.losses.links import IDENTITY, SORTED, Link
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

    Several increasing levels have one raw score each. L is then the sum over the levels, each
    divided by 2 sqrt(level (1 - level)): the mean squared gradient of each is 1/4 at its quantile,
    and one learning rate serves all. The link sorts the scores of a row, so that quantiles never
    cross: that lowers the pinball loss or leaves it (Chernozhukov, Fernandez-Val and Galichon,
    "Quantile and probability curves without crossing", 2010).
    """

    level: float | Sequence[float] = 0.5
    width: float = SMALL_WIDTH

    name = "quantile"

    def __post_init__(self) -> None:
        """Validate level and width."""
        super().__post_init__()
        if not isinstance(self.level, float | int) and np.ndim(self.level):
            object.__setattr__(self, "level", tuple(float(value) for value in self.level))
            if len(self.levels) < 2 or not all(np.diff(self.levels) > 0.0):
                raise ValueError(
                    "level of loss 'quantile' must be a number, or two and more in increasing "
                    f"order, got {self.level!r}"
                )
        for level in self.levels:
            if not 0.0 < level < 1.0:
                raise ValueError(f"level of loss 'quantile' must be in (0, 1), got {level!r}")

    @property
    def law(self) -> str | None:  # type: ignore[override]  # of other losses it is a constant
        """Several quantiles are a distribution, one is not."""
        return "quantiles" if len(self.levels) > 1 else None

    @property
    def levels(self) -> Sequence[float]:
        """The level of each output."""
        return self.level if isinstance(self.level, Sequence) else (self.level,)

    @property
    def _factors(self) -> list[float]:
        """What the loss of each level is multiplied by."""
        if len(self.levels) == 1:
            return [1.0]
        return [0.5 / math.sqrt(level * (1.0 - level)) for level in self.levels]

    @property
    def n_outputs(self) -> int:
        """One raw score per level."""
        return len(self.levels)

    def is_residual(self, y: Floats) -> bool:
        """Every raw score is in the unit of y."""
        return True

    @property
    def lipschitz(self) -> float:
        """Limit of |gradient| for large |u|, on the steeper side of each level."""
        steepest = [
            factor * max(level, 1.0 - level)
            for factor, level in zip(self._factors, self.levels, strict=True)
        ]
        if len(steepest) == 1:
            return steepest[0]
        return math.sqrt(math.fsum(bound * bound for bound in steepest))

    @property
    def smoothness(self) -> float:
        """Hessian at u = 0, of the level with the largest."""
        return max(self._factors) * (0.25 / self.width)

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        """Levels and width."""
        return *self.levels, self.width

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """Sum over the levels."""
        if raw.ndim == 1:
            return self._pinball(self.levels[0], y - raw)
        total = np.zeros(len(y))
        for level, factor, column in zip(self.levels, self._factors, raw.T, strict=True):
            total += factor * self._pinball(level, y - column)
        return total

    def _pinball(self, level: float, u: Floats) -> Floats:
        """Pinball loss plus width log(1 + exp(-|u| / width)): the same, without cancellation."""
        with np.errstate(over="ignore"):  # |u| / width may be infinite: exp(-inf) is right
            bump = self.width * log1p(exp(-np.abs(u) / self.width))
        return np.maximum(level * u, (level - 1.0) * u) + bump

    def init(self, target: Target) -> Floats:
        """Weighted quantiles."""
        return np.array([minimisers.quantile(target, level) for level in self.levels])

    @property
    def link(self) -> Link:
        """The quantiles, in increasing order."""
        return IDENTITY if self.n_outputs == 1 else SORTED
