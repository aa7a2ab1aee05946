"""Losses for amounts: positive numbers, or zeros and positive numbers, whose noise grows with their
mean.

Both have the form A + B, where A falls and B rises exponentially in the raw score z. The gradient
is b - a with a = -A' and b = B', and shifting the scores of a leaf by log(sum a / sum b) is best
for it. The Newton step of the exact second derivative may go far beyond: a gamma leaf whose y are
a thousandth of the mean asks for a step of -999 instead of -7. So kernels fill (a + b) / 2 as
curvature, which equals the second derivative at the best shift D of a leaf; the step is then
2 tanh(D / 2), never beyond D and never longer than 2.
"""

from dataclasses import dataclass

import numpy as np

from sglb.elementary import exp, log
from sglb.losses.base import Floats, Loss
from sglb.losses.links import Link
from sglb.losses.minimisers import log_mean
from sglb.target import Target

# Exponents from which exp is continued by the parabola of the same value, slope and curvature. They
# are those of means below 1e-87 or above 1e87. The square of exp(200), and its sum over any number
# of rows, is far from overflow.
LIMIT = 200.0
# exp(z) as a prediction, up to 1e304; from there on a tangent.
MEAN = Link("exponential", 700.0)


@dataclass(frozen=True)
class Gamma(Loss):
    """Gamma deviance (halved) with a logarithmic link: the mean of positive amounts, whose standard
    deviation is proportional to their mean.

    Domain      y > 0
    Formula     L = y exp(-z) + z - log y - 1, least value 0 at exp(z) = y
    Link        exp(z), the mean of y
    Gradient    1 - a, a = y exp(-z)
    Hessian     a; Newton steps use (1 + a) / 2
    Lipschitz   no
    Smoothness  no
    Start       log of the weighted mean, the minimiser

    y in other units shifts the raw scores and leaves the rest as it is.
    """

    name = "gamma"
    predicts_mean = True
    law = "gamma"
    link = MEAN

    def check_target(self, target: Target) -> None:
        """Raise ValueError at the first target that is not positive or not finite."""
        super().check_target(target)
        y = target.values
        self._require(y > 0, y, "a number > 0")

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """y exp(-z) + z - log y - 1."""
        return np.maximum(y * _value(-raw) + raw - log(y) - 1.0, 0.0)

    def hessian(self, y: Floats, raw: Floats) -> Floats:
        """y exp(-z)."""
        return y * exp(np.minimum(-raw, LIMIT))

    def init(self, target: Target) -> Floats:
        """Log of the weighted mean."""
        return np.array([log_mean(target)])


@dataclass(frozen=True)
class Tweedie(Loss):
    """Tweedie deviance (halved) with a logarithmic link: the mean of amounts many of which are 0,
    such as claims or rainfall, with a variance proportional to mean^power.

    Domain      y >= 0, 1 < power < 2; poisson is the limit at 1, gamma that at 2
    Formula     L = y exp((1 - power) z) / (power - 1) + exp((2 - power) z) / (2 - power)
                    - y^(2 - power) / ((power - 1) (2 - power)), least value 0 at exp(z) = y
    Link        exp(z), the mean of y
    Gradient    b - a, a = y exp((1 - power) z), b = exp((2 - power) z)
    Hessian     (power - 1) a + (2 - power) b; Newton steps use (a + b) / 2, the same at 1.5
    Lipschitz   no
    Smoothness  no
    Start       log of the weighted mean, the minimiser; log(1 / (2 N)) when every y is 0

    y times c multiplies L by c^(2 - power) and shifts its minimum by log c: predictions are
    multiplied by c.
    """

    power: float = 1.5

    name = "tweedie"
    predicts_mean = True
    law = "tweedie"
    curvature_has_unit = True
    link = MEAN

    def __post_init__(self) -> None:
        """Validate the power."""
        if not 1.0 < self.power < 2.0:
            raise ValueError(f"power of loss 'tweedie' must be in (1, 2), got {self.power!r}")

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        """The power."""
        return self.power, 0.0

    def check_target(self, target: Target) -> None:
        """Raise ValueError at the first target that is negative or not finite."""
        super().check_target(target)
        y = target.values
        self._require(y >= 0, y, "a number >= 0")

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """y exp((1 - power) z) / (power - 1) + exp((2 - power) z) / (2 - power) - constant."""
        low, high = self.power - 1.0, 2.0 - self.power
        least = exp(high * log(y)) / (low * high)  # 0 at y = 0: the core's log(0) is -infinity
        value = y * _value(-low * raw) / low + _value(high * raw) / high - least
        return np.maximum(value, 0.0)

    def hessian(self, y: Floats, raw: Floats) -> Floats:
        """(power - 1) a + (2 - power) b."""
        low, high = self.power - 1.0, 2.0 - self.power
        falling, rising = exp(np.minimum(-low * raw, LIMIT)), exp(np.minimum(high * raw, LIMIT))
        return low * y * falling + high * rising

    def init(self, target: Target) -> Floats:
        """Log of the weighted mean."""
        return np.array([log_mean(target)])


def _value(x: Floats) -> Floats:
    """exp(x), from LIMIT on the parabola."""
    excess = np.maximum(x - LIMIT, 0.0)
    return exp(np.minimum(x, LIMIT)) * (1.0 + excess * (1.0 + 0.5 * excess))
