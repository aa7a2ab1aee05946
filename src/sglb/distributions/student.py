"""Student's t distribution: a location, a scale and heavy tails."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, ndtr, ndtri, stdtr, stdtrit

from sglb.distributions.base import Distribution, Floats, Parameter
from sglb.distributions.normal import Normal

# Within this distance of df = 1 the formula of the CRPS, a difference of terms 1 / (df - 1), has
# lost half of its digits, and the formula of df = 1 has as many.
NEAR_CAUCHY = 1e-7
SQUARE_OVERFLOWS = 1e150
# From here on out the leading term of the tail is exact: exp(-40) is below the spacing of floats.
LOG_FAR = -40.0


class StudentT(Distribution):
    """Student's t with `location`, `scale` > 0 and degrees of freedom `df` > 0; inf is the normal.

    Mean      location; NaN (does not exist) for df <= 1
    Variance  scale^2 df / (df - 2); infinite for 1 < df <= 2, NaN for df <= 1
    CRPS      s [z (2 F(z) - 1) + 2 f(z) (df + z^2) / (df - 1)
              - 2 sqrt(df) / (df - 1) B(1/2, df - 1/2) / B(1/2, df / 2)^2]
              (Jordan, Krueger and Lerch, 2019); its limit at df = 1; infinite for df <= 1/2
    """

    name = "student"
    location = Parameter()
    scale = Parameter()
    df = Parameter()

    def __init__(self, location: ArrayLike, scale: ArrayLike, df: ArrayLike) -> None:
        self._set_rows(location=location, scale=scale, df=df)
        self._require("location", np.isfinite(self.location), "finite")
        self._require("scale", (self.scale > 0.0) & np.isfinite(self.scale), "positive and finite")
        self._require("df", self.df > 0.0, "positive")
        self._is_normal = np.isinf(self.df)
        self._finite_df = np.where(self._is_normal, 3.0, self.df)

    @property
    def mean(self) -> Floats:
        """The location; NaN for df <= 1."""
        return np.where(self.df > 1.0, self.location, np.nan)

    @property
    def variance(self) -> Floats:
        """scale^2 df / (df - 2); infinite for 1 < df <= 2, NaN for df <= 1."""
        df = np.where(self.df > 2.0, self._finite_df, 3.0)
        ratio = np.where(self._is_normal, 1.0, df / (df - 2.0))
        known = np.where(self.df > 2.0, np.square(self.scale) * ratio, np.inf)
        return np.where(self.df > 1.0, known, np.nan)

    def _z(self, y: Floats) -> Floats:
        return (y - self.location) / self.scale

    def _cdf(self, y: Floats) -> Floats:
        z = self._z(y)
        return np.asarray(np.where(self._is_normal, ndtr(z), stdtr(self._finite_df, z)))

    def _logpdf(self, y: Floats) -> Floats:
        z, df = self._z(y), self._finite_df
        centre = -betaln(0.5, 0.5 * df) - 0.5 * np.log(df) - np.log(self.scale)
        student = centre - 0.5 * (df + 1.0) * _log_kernel(z, df)
        return np.where(self._is_normal, Normal(self.location, self.scale)._logpdf(y), student)

    def _ppf(self, q: Floats) -> Floats:
        z = np.where(self._is_normal, ndtri(q), _quantile(self._finite_df, q))
        return np.asarray(self.location + self.scale * z)

    def _crps(self, y: Floats) -> Floats:
        normal = Normal(self.location, self.scale)._crps(y)
        z, df = self._z(y), self._finite_df
        exists = df > 0.5
        cauchy = np.abs(df - 1.0) < NEAR_CAUCHY
        df = np.where(exists & ~cauchy, df, 3.0)
        log_zero = -betaln(0.5, 0.5 * df) - 0.5 * np.log(df)
        # f(z) (df + z^2) = df f(0) (1 + z^2 / df)^((1 - df) / 2), and the spread of two outcomes.
        partial = df * np.exp(log_zero + 0.5 * (1.0 - df) * _log_kernel(z, df))
        spread = np.sqrt(df) * np.exp(betaln(0.5, df - 0.5) - 2.0 * betaln(0.5, 0.5 * df))
        student = 2.0 * (partial - spread) / (df - 1.0)
        cauchy_limit = (2.0 * np.log(2.0) - _log_kernel(z, np.ones_like(df))) / np.pi
        rest = np.where(cauchy, cauchy_limit, student)
        score = (y - self.location) * (2.0 * self._cdf(y) - 1.0) + self.scale * rest
        return np.asarray(np.where(self._is_normal, normal, np.where(exists, score, np.inf)))

    def _sample(self, noise: np.random.Generator, shape: tuple[int, int]) -> Floats:
        z = noise.standard_normal(shape)
        half = 0.5 * self._finite_df
        chi_square = np.where(self._is_normal, 1.0, noise.gamma(half, size=shape) / half)
        return self.location + self.scale * (z / np.sqrt(chi_square))


def _log_kernel(z: Floats, df: Floats) -> Floats:
    """Return log(1 + z^2 / df), where z^2 may overflow."""
    size = np.abs(z)
    small = np.log1p(np.square(np.minimum(size, SQUARE_OVERFLOWS)) / df)
    return np.where(size < SQUARE_OVERFLOWS, small, 2.0 * np.log(np.hypot(1.0, size / np.sqrt(df))))


def _quantile(df: Floats, q: Floats) -> Floats:
    """Return the quantile of a standard t.

    SciPy's overflows for levels such as 1e-300. Far out the cdf is x^(df/2) / (df B(df/2, 1/2)),
    x = df / z^2, but for a relative error of x.
    """
    tail = np.minimum(q, 1.0 - q)
    log_x = 2.0 / df * (np.log(tail) + np.log(df) + betaln(0.5 * df, 0.5))
    far = log_x < LOG_FAR
    size = np.sqrt(df) * np.exp(-0.5 * np.where(far, log_x, 0.0))
    near = stdtrit(df, np.where(far, 0.5, q))
    return np.asarray(np.where(far, np.copysign(size, q - 0.5), near))
