"""The Poisson distribution of counts."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import i0e, i1e, ndtri, pdtr

from sglb.distributions.base import Distribution, Floats, Parameter
from sglb.distributions.special import log_poisson

# Above, neighbouring counts are the same float.
LARGEST_MEAN = 2.0**52


class Poisson(Distribution):
    """Poisson distribution with `mean` in [0, 2^52]; a mean of 0 is the count 0 with certainty.

    `logpdf` is the log of the probability of y, -inf where y is not a count.

    CRPS    (y - m) (2 F(y) - 1) + 2 m p(floor y) - m exp(-2 m) (I_0(2 m) + I_1(2 m))
            (Wei and Held, 2014)
    """

    name = "poisson"
    mean = Parameter()
    discrete = True

    def __init__(self, mean: ArrayLike) -> None:
        self._set_rows(mean=mean)
        valid = (self.mean >= 0.0) & (self.mean <= LARGEST_MEAN)
        self._require("mean", valid, "in [0, 2^52]")

    @property
    def support(self) -> tuple[float, Floats]:
        """From 0 to infinity; to 0 where the mean is 0."""
        return 0.0, np.where(self.mean > 0.0, np.inf, 0.0)

    @property
    def variance(self) -> Floats:
        """The mean."""
        return self.mean

    def _cdf(self, y: Floats) -> Floats:
        count = np.floor(y)
        return np.where(count >= 0.0, pdtr(np.maximum(count, 0.0), self.mean), 0.0)

    def _logpdf(self, y: Floats) -> Floats:
        valid = (y >= 0.0) & (y == np.floor(y))
        return np.where(valid, log_poisson(np.where(valid, y, 0.0), self.mean), -np.inf)

    def _ppf(self, q: Floats) -> Floats:
        """Find the lowest count with cdf >= q by bisection around Cornish and Fisher's quantile."""
        z = ndtri(q)
        start = np.floor(self.mean + z * np.sqrt(self.mean) + (np.square(z) - 1.0) / 6.0)
        low, high, step = start - 1.0, start + 1.0, np.ones_like(start)
        while (wrong := (low >= 0.0) & (self._cdf(low) >= q)).any():
            low = np.where(wrong, low - step, low)
            step = 2.0 * step
        step = np.ones_like(start)
        while (wrong := self._cdf(high) < q).any():
            high = np.where(wrong, high + step, high)
            step = 2.0 * step
        low = np.maximum(low, -1.0)  # where the cdf is 0
        while (high - low > 1.0).any():
            middle = np.floor(0.5 * (low + high))
            enough = self._cdf(middle) >= q
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.asarray(high)

    def _crps(self, y: Floats) -> Floats:
        count = np.floor(y)
        mass = np.where(count >= 0.0, np.exp(log_poisson(np.maximum(count, 0.0), self.mean)), 0.0)
        twice = 2.0 * self.mean
        spread = self.mean * (i0e(twice) + i1e(twice))
        score = (y - self.mean) * (2.0 * self._cdf(y) - 1.0) + twice * mass - spread
        return np.asarray(score)

    def _sample(self, noise: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return noise.poisson(self.mean, size=shape).astype(np.float64)
