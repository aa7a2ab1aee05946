"""The Tweedie distribution of amounts that are often exactly zero."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from sglb.distributions import compound
from sglb.distributions.base import Distribution, Floats, Parameter
from sglb.distributions.special import FARTHEST

# A quantile is found to this relative precision: a thousandth of what CRPS promises.
PRECISION = 1e-12
# Newton's method converges in 5 to 8 steps; bisection of a bracket takes over where it does not.
MAX_ITERATIONS = 200
# Above, neighbouring numbers of jumps are the same float.
MOST_JUMPS = 2.0**52
# Below exp(LOWEST_LOG) a quantile is the float 0.
LOWEST_LOG = -745.0


class Tweedie(Distribution):
    """Compound Poisson-gamma law by `mean`, `dispersion` and `power` in (1, 2).

    Variance = dispersion mean^power. The outcome is a sum of a Poisson number of gamma jumps:

        rate of jumps       mean^(2 - power) / (dispersion (2 - power))
        shape of a jump     alpha = (2 - power) / (power - 1)
        scale of a jump     dispersion (power - 1) mean^(power - 1)
        P(y = 0)            exp(-rate); `logpdf` at 0 is the log of this probability

    Density and cdf are sums over the number of jumps (`compound.py`; Dunn and Smyth, 2005), with a
    relative error below 1e-10. Quantiles invert the cdf. The CRPS is
    (y - m) (2 F(y) - 1) + 2 E[(m - Y) [Y <= y]] - E|Y - Y'| / 2, the last term by numerical
    integration, with a relative error below 1e-9 for powers in [1.01, 1.99].
    """

    name = "tweedie"
    mean = Parameter()
    dispersion = Parameter()
    power = Parameter()

    def __init__(self, mean: ArrayLike, dispersion: ArrayLike, power: ArrayLike = 1.5) -> None:
        self._set_rows(mean=mean, dispersion=dispersion, power=power)
        for name in ("mean", "dispersion"):
            values = self._rows[name]
            self._require(name, (values > 0.0) & np.isfinite(values), "positive and finite")
        self._require("power", (self.power > 1.0) & (self.power < 2.0), "in (1, 2)")
        log_mean, log_dispersion = np.log(self.mean), np.log(self.dispersion)
        rest = 2.0 - self.power
        with np.errstate(over="ignore", under="ignore"):
            self._rate = np.exp(rest * log_mean - log_dispersion) / rest
            self._scale = np.exp(log_dispersion + (1.0 - rest) * log_mean) * (1.0 - rest)
        self._alpha = rest / (1.0 - rest)
        valid = (self._rate <= MOST_JUMPS) & (self._scale > 0.0) & np.isfinite(self._scale)
        self._require("dispersion", valid & (self._rate > 0.0), "such that floats hold the jumps")

    @property
    def support(self) -> tuple[float, float]:
        """From 0 to infinity."""
        return 0.0, np.inf

    @property
    def variance(self) -> Floats:
        """dispersion mean^power."""
        return self.dispersion * self.mean**self.power

    def _flat(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return y in units of the jumps' scale, rate and alpha, all flat."""
        x = np.minimum(y / self._scale, FARTHEST)
        rate, alpha = np.broadcast_to(self._rate, y.shape), np.broadcast_to(self._alpha, y.shape)
        return x.reshape(-1), rate.reshape(-1), alpha.reshape(-1)

    def _cdf(self, y: Floats) -> Floats:
        x, rate, alpha = self._flat(np.maximum(y, 0.0))
        return np.where(y >= 0.0, compound.cdf(x, rate, alpha).reshape(y.shape), 0.0)

    def _logpdf(self, y: Floats) -> Floats:
        positive = y > 0.0
        x, rate, alpha = self._flat(np.where(positive, y, self.mean))
        inner = compound.log_density(x, rate, alpha).reshape(y.shape) - np.log(self._scale)
        return np.where(positive, inner, np.where(y == 0.0, -self._rate, -np.inf))

    def _ppf(self, q: Floats) -> Floats:
        _, rate, alpha = self._flat(q)
        quantile = np.zeros(q.size)
        rows = np.flatnonzero(q.reshape(-1) > np.exp(-rate))
        quantile[rows] = _invert(q.reshape(-1)[rows], rate[rows], alpha[rows])
        return quantile.reshape(q.shape) * self._scale

    def _crps(self, y: Floats) -> Floats:
        x, rate, alpha = self._flat(np.maximum(y, 0.0))
        deficit = compound.partial_deficit(x, rate, alpha).reshape(y.shape)
        deficit = np.where(y >= 0.0, deficit, 0.0)
        spread = compound.mean_difference(self._rate, self._alpha)
        centre = (y - self.mean) * (2.0 * self._cdf(y) - 1.0)
        return centre + self._scale * (2.0 * deficit - 0.5 * spread)

    def _sample(self, noise: np.random.Generator, shape: tuple[int, int]) -> Floats:
        jumps = noise.poisson(self._rate, size=shape)
        return noise.gamma(jumps * self._alpha) * self._scale  # a gamma of shape 0 is 0


def _invert(q: Floats, rate: Floats, alpha: Floats) -> Floats:
    """Solve cdf(x) = q for q above the probability of 0, by Newton's method in log x.

    Every iterate shrinks a bracket; a Newton step that leaves it is replaced by bisection.
    """
    z = ndtri(q) / np.sqrt(rate * (1.0 + 1.0 / alpha))
    u = np.log(rate * alpha) + np.clip(z, -3.0, 3.0)
    low, high = np.full_like(u, -np.inf), np.full_like(u, np.inf)
    step, active = np.ones_like(u), np.arange(len(u))
    for _ in range(MAX_ITERATIONS):
        at, bottom, top = u[active], low[active], high[active]
        error = compound.cdf(np.exp(at), rate[active], alpha[active]) - q[active]
        bottom, top = np.where(error < 0.0, at, bottom), np.where(error < 0.0, top, at)
        log_density = compound.log_density(np.exp(at), rate[active], alpha[active])
        with np.errstate(divide="ignore"):
            newton = at - np.where(error == 0.0, 0.0, error / np.exp(log_density + at))
        inside = (newton >= bottom) & (newton <= top)
        trial = np.where(inside, newton, 0.5 * (bottom + top))
        # A bracket without an end, or a flat cdf, would send the next step anywhere.
        trial = np.clip(trial, at - step[active], at + step[active])
        u[active], low[active], high[active] = trial, bottom, top
        step[active] *= 2.0
        active = active[(np.abs(trial - at) > PRECISION) & (trial > LOWEST_LOG)]
        if not len(active):
            break
    return np.exp(np.where(u > LOWEST_LOG, u, -np.inf))
