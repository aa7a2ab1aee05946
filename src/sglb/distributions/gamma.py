"""The gamma distribution of positive amounts."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammainc, gammaincinv

from sglb.distributions.base import Distribution, Floats, Parameter
from sglb.distributions.special import FARTHEST, log_poisson

# Beyond, the quantiles of shape 1 / dispersion leave the range of floats or of SciPy's inverse.
DISPERSIONS = (1e-15, 1e15)


class Gamma(Distribution):
    """Gamma distribution by `mean` > 0 and `dispersion`, variance = dispersion mean^2.

    Its shape is k = 1 / dispersion, in [1e-15, 1e15], its scale mean * dispersion.

    CRPS    y (2 F_k(y) - 1) - mean (2 F_{k+1}(y) - 1) - mean / (k B(1/2, k))
            (Jordan, Krueger and Lerch, 2019), with F_k - F_{k+1} in closed form
    """

    name = "gamma"
    mean = Parameter()
    dispersion = Parameter()

    def __init__(self, mean: ArrayLike, dispersion: ArrayLike) -> None:
        self._set_rows(mean=mean, dispersion=dispersion)
        low, high = DISPERSIONS
        self._require("mean", (self.mean > 0.0) & np.isfinite(self.mean), "positive and finite")
        valid = (self.dispersion >= low) & (self.dispersion <= high)
        self._require("dispersion", valid, f"in [{low:g}, {high:g}]")
        self._shape = 1.0 / self.dispersion

    @property
    def support(self) -> tuple[float, float]:
        """From 0 to infinity."""
        return 0.0, np.inf

    @property
    def variance(self) -> Floats:
        """dispersion mean^2."""
        return self.dispersion * np.square(self.mean)

    @property
    def std(self) -> Floats:
        """sqrt(dispersion) mean."""
        return np.sqrt(self.dispersion) * self.mean

    def _x(self, y: Floats) -> Floats:
        """Return y in units of the scale, 0 below the support."""
        return np.minimum(np.maximum(y, 0.0) / self.mean * self._shape, FARTHEST)

    def _cdf(self, y: Floats) -> Floats:
        return np.asarray(gammainc(self._shape, self._x(y)))

    def _logpdf(self, y: Floats) -> Floats:
        positive = y > 0.0
        safe = np.where(positive, y, self.mean)
        inner = log_poisson(self._shape, self._x(safe)) + np.log(self._shape) - np.log(safe)
        # At 0 the density is infinite for k < 1, 1 / mean for k = 1 and 0 for k > 1.
        zero = np.where(self._shape < 1.0, np.inf, -np.inf)
        zero = np.where(self._shape == 1.0, -np.log(self.mean), zero)
        return np.where(positive, inner, np.where(y == 0.0, zero, -np.inf))

    def _ppf(self, q: Floats) -> Floats:
        return np.asarray(gammaincinv(self._shape, q) / self._shape * self.mean)

    def _crps(self, y: Floats) -> Floats:
        k = self._shape
        # F_k(y) - F_{k+1}(y) = x^k exp(-x) / Gamma(k + 1).
        step = np.where(y > 0.0, np.exp(log_poisson(k, self._x(y))), 0.0)
        spread = np.exp(-np.log(k) - betaln(0.5, k))
        return np.asarray(
            (y - self.mean) * (2.0 * self._cdf(y) - 1.0) + self.mean * (2.0 * step - spread)
        )

    def _sample(self, noise: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return noise.gamma(self._shape, size=shape) / self._shape * self.mean
