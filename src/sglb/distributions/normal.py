"""The normal distribution."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, ndtr, ndtri

from sglb.distributions.base import Distribution, Floats, Parameter
from sglb.distributions.special import LOG_TWO_PI


class Normal(Distribution):
    """Normal distribution with `location` (any number) and `scale` > 0, its mean and std.

    CRPS    s [z erf(z / sqrt 2) + 2 phi(z) - 1 / sqrt pi], z = (y - location) / s
            (Gneiting and Raftery, 2007, eq. 21)
    """

    name = "normal"
    location = Parameter()
    scale = Parameter()

    def __init__(self, location: ArrayLike, scale: ArrayLike) -> None:
        self._set_rows(location=location, scale=scale)
        self._require("location", np.isfinite(self.location), "finite")
        self._require("scale", (self.scale > 0.0) & np.isfinite(self.scale), "positive and finite")

    @property
    def mean(self) -> Floats:
        """The location."""
        return self.location

    @property
    def variance(self) -> Floats:
        """The square of the scale."""
        return np.square(self.scale)

    @property
    def std(self) -> Floats:
        """The scale."""
        return self.scale

    def _z(self, y: Floats) -> Floats:
        return (y - self.location) / self.scale

    def _cdf(self, y: Floats) -> Floats:
        return np.asarray(ndtr(self._z(y)))

    def _logpdf(self, y: Floats) -> Floats:
        return -0.5 * np.square(self._z(y)) - np.log(self.scale) - 0.5 * LOG_TWO_PI

    def _ppf(self, q: Floats) -> Floats:
        return np.asarray(self.location + self.scale * ndtri(q))

    def _crps(self, y: Floats) -> Floats:
        z = self._z(y)
        density = np.exp(-0.5 * np.square(z) - 0.5 * LOG_TWO_PI)
        # scale * z is written as y - location: z may overflow where the scale is tiny.
        return np.asarray(
            (y - self.location) * erf(z / np.sqrt(2.0))
            + self.scale * (2.0 * density - 1.0 / np.sqrt(np.pi))
        )

    def _sample(self, noise: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return self.location + self.scale * noise.standard_normal(shape)
