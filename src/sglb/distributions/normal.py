"""The normal distribution."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, ndtr, ndtri

from sglb.distributions.base import Distribution, Floats
from sglb.distributions.special import LOG_TWO_PI
from sglb.errors import require_rows


class Normal(Distribution):
    """Normal distribution with `location` (any number) and `scale` > 0, its mean and std.

    CRPS    s [z erf(z / sqrt 2) + 2 phi(z) - 1 / sqrt pi], z = (y - location) / s
            (Gneiting and Raftery, 2007, eq. 21)
    """

    name = "normal"

    def __init__(self, location: ArrayLike, scale: ArrayLike) -> None:
        self._set_rows(location=location, scale=scale)
        self._require("location", np.isfinite(self.location), "finite")
        self._require("scale", (self.scale > 0.0) & np.isfinite(self.scale), "positive and finite")

    @property
    def location(self) -> Floats:
        """Location, (n_rows,)."""
        return self._rows["location"]

    @property
    def scale(self) -> Floats:
        """Scale, (n_rows,)."""
        return self._rows["scale"]

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

    def widened(self, variance: ArrayLike) -> Self:
        """Return the law of y if the location has an independent normal error of this variance."""
        extra = np.sqrt(read_variance(variance, len(self)))
        return type(self)(self.location, np.hypot(self.scale, extra))

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


def read_variance(variance: ArrayLike, n_rows: int) -> Floats:
    """Return a variance that widens n_rows rows: finite and not negative."""
    variance = np.asarray(variance, dtype=np.float64)
    if variance.shape not in ((), (n_rows,)):
        raise ValueError(f"variance must be a number or have shape ({n_rows},)")
    variance = np.broadcast_to(variance, (n_rows,))
    valid = np.isfinite(variance) & (variance >= 0.0)
    require_rows("variance", variance, valid, "finite and at least 0")
    return variance
