"""Losses of a residual r = z - y that grow more slowly than its square.

`absolute` and `huber` grow linearly and are convex; `cauchy` grows like a logarithm, `welsch` is
bounded, so both ignore outliers and are not convex. All are proportional to r² near 0.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from sglb.elementary import exp, expm1, log, log1p
from sglb.losses.base import Floats, WidthLoss
from sglb.losses.minimisers import quantile
from sglb.losses.quantile import SMALL_WIDTH
from sglb.target import Target


@dataclass(frozen=True)
class _Robust(WidthLoss):
    """A loss that starts at the weighted median, which a minority of outliers cannot move far."""

    def init(self, target: Target) -> Floats:
        """Weighted median."""
        return np.array([quantile(target, 0.5)])


@dataclass(frozen=True)
class Absolute(_Robust):
    """Absolute loss with its kink rounded off over `width`: the median.

    Domain      y any number
    Formula     L = sqrt(r² + width²) - width
    Link        identity, the median of y (as width goes to 0)
    Gradient    r / sqrt(r² + width²)
    Hessian     width² / (r² + width²)^(3/2)
    Lipschitz   1
    Smoothness  1 / width, at r = 0
    Start       weighted median, the minimiser as width goes to 0

    The width is in spreads of y unless `absolute`.
    """

    width: float = SMALL_WIDTH

    name = "absolute"
    lipschitz = 1.0  # limit of |gradient| for large |r|

    @property
    def smoothness(self) -> float:
        """Hessian at r = 0."""
        return 1.0 / self.width

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        """Width."""
        return self.width, 0.0

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """sqrt(r² + width²) - width, as r² / (sqrt(r² + width²) + width), which cannot cancel."""
        r = np.abs(raw - y)
        larger = np.maximum(r, self.width)
        root = larger * np.sqrt(1.0 + np.square(np.minimum(r, self.width) / larger))
        return r * (r / (root + self.width))


@dataclass(frozen=True)
class Huber(_Robust):
    """Huber loss: squared up to `delta`, linear beyond.

    Domain      y any number
    Formula     L = r² / 2 where |r| <= delta, else delta (|r| - delta / 2)
    Link        identity, between the mean (large delta) and the median (small delta) of y
    Gradient    r clipped to [-delta, delta]
    Hessian     1 where |r| <= delta, else 0
    Lipschitz   delta
    Smoothness  1
    Start       weighted median, not the minimiser but near it

    Delta is in spreads of y unless `absolute`.
    """

    delta: float = 1.0

    name = "huber"
    width_name = "delta"
    smoothness = 1.0  # hessian wherever |r| <= delta

    @property
    def lipschitz(self) -> float:
        """|gradient| wherever |r| >= delta."""
        return self.delta

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        """Delta."""
        return self.delta, 0.0

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """c (|r| - c / 2) with c = min(|r|, delta): both branches in one."""
        r = np.abs(raw - y)
        c = np.minimum(r, self.delta)
        return c * (r - 0.5 * c)


@dataclass(frozen=True)
class _Redescending(_Robust):
    """A loss of t = r / scale whose gradient falls again beyond some t, so that it ignores
    outliers.

    The scale is in spreads of y unless `absolute`.
    """

    scale: float = 1.0

    convex = False
    has_hessian = False
    width_name = "scale"
    smoothness = 1.0  # second derivative at t = 0

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        """Scale."""
        return self.scale, 0.0


@dataclass(frozen=True)
class Cauchy(_Redescending):
    """Cauchy loss: minus the logarithm of Student's density with one degree of freedom.

    Domain      y any number
    Formula     L = scale² / 2 log(1 + t²), t = r / scale
    Link        identity, a mode of y
    Gradient    r / (1 + t²)
    Second derivative  (1 - t²) / (1 + t²)², negative beyond |t| = 1: no Newton steps
    Lipschitz   scale / 2, at t = 1
    Smoothness  1, at t = 0 (the least value, at t = sqrt(3), is only -1/8)
    Start       weighted median, not the minimiser but near it
    """

    name = "cauchy"

    @property
    def lipschitz(self) -> float:
        """|gradient| at t = 1."""
        return 0.5 * self.scale

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """scale² / 2 log(1 + t²); log(1 + t²) is 2 log t to the last bit from t = 1e8 on."""
        t = np.abs(raw - y) / self.scale
        square = np.square(np.minimum(t, 1e8))
        return self.scale * self.scale * (0.5 * log1p(square) + log(np.maximum(t, 1e8) / 1e8))


@dataclass(frozen=True)
class Welsch(_Redescending):
    """Welsch loss (also Leclerc's, correntropy): bounded, whatever the residual.

    Domain      y any number
    Formula     L = scale² / 2 (1 - exp(-t²)), t = r / scale
    Link        identity, a mode of y
    Gradient    r exp(-t²)
    Second derivative  (1 - 2 t²) exp(-t²), negative beyond t² = 1/2: no Newton steps
    Lipschitz   scale exp(-1/2) / sqrt(2), at t² = 1/2
    Smoothness  1, at t = 0 (the least value, at t² = 3/2, is -2 exp(-3/2) = -0.446)
    Start       weighted median, not the minimiser but near it
    """

    name = "welsch"

    @property
    def lipschitz(self) -> float:
        """|gradient| at t² = 1/2."""
        return self.scale * exp(-0.5) / sqrt(2.0)

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """scale² / 2 (1 - exp(-t²)); from t = 40 on exp(-t²) is 0."""
        t = np.minimum(np.abs(raw - y) / self.scale, 40.0)
        return -0.5 * self.scale * self.scale * expm1(-np.square(t))
