"""The interface of a predictive distribution: the law of y in each row of a table.

A distribution has `n_rows` rows, and its methods are vectorised over them. An argument y or q is a
number, an array (n_rows,), or any array that broadcasts against (n_rows,), such as (k, 1) for k
levels or (k, n_rows) for k outcomes per row; the result has the broadcast shape.

Members see valid, finite arguments only: this file rejects NaN and levels outside [0, 1], and knows
the values at infinity and at the levels 0 and 1.
"""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb.errors import require_rows

Floats = NDArray[np.float64]
RandomState = int | np.random.Generator | np.random.RandomState | None


class Parameter:
    """A parameter of a distribution as an attribute: its values, (n_rows,)."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, law: "Distribution", owner: type) -> Floats:
        return law._rows[self.name]


class Distribution(ABC):
    """The law of the outcome y in each of `len(distribution)` rows.

    name        what it is called
    discrete    whether y is a count: `logpdf` is then the log of a probability
    """

    name: str
    discrete: bool = False
    _rows: dict[str, Floats]

    def _set_rows(self, **parameters: ArrayLike) -> None:
        """Store parameters as read-only float arrays of one length, in `_rows`."""
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in parameters.items()}
        for name, array in arrays.items():
            if array.ndim > 1:
                raise ValueError(
                    f"{name} of {type(self).__name__} must be a number or have shape (n_rows,),"
                    f" not {array.shape}"
                )
        try:
            shape = np.broadcast_shapes((1,), *(array.shape for array in arrays.values()))
        except ValueError:
            lengths = ", ".join(f"{name} {array.size}" for name, array in arrays.items())
            raise ValueError(
                f"parameters of {type(self).__name__} have different numbers of rows: {lengths}"
            ) from None
        self._rows = {name: np.broadcast_to(array, shape) for name, array in arrays.items()}

    def _require(self, name: str, valid: NDArray[np.bool_], domain: str) -> None:
        """Raise ValueError at the first row whose parameter is not valid."""
        require_rows(f"{name} of {type(self).__name__}", self._rows[name], valid, domain)

    def __len__(self) -> int:
        return len(next(iter(self._rows.values())))

    def __getitem__(self, rows: Any) -> Self:
        """Return the distribution of some rows: an index, a slice, a mask or an array of indices.

        A single index gives a distribution of one row.
        """
        return type(self)(**{name: _select(array, rows) for name, array in self._rows.items()})

    def __repr__(self) -> str:
        parts = [f"{name}={_brief(array)}" for name, array in self._rows.items()]
        return f"{type(self).__name__}(n_rows={len(self)}, {', '.join(parts)})"

    @property
    def support(self) -> tuple[Floats | float, Floats | float]:
        """Lowest and highest outcome: `ppf` of the levels 0 and 1."""
        return -np.inf, np.inf

    @property
    @abstractmethod
    def mean(self) -> Floats:
        """Mean of y, (n_rows,)."""

    @property
    @abstractmethod
    def variance(self) -> Floats:
        """Variance of y, (n_rows,)."""

    @property
    def std(self) -> Floats:
        """Standard deviation of y, (n_rows,)."""
        return np.sqrt(self.variance)

    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability that the outcome is at most y."""
        y, finite = self._outcomes(y)
        with np.errstate(over="ignore", under="ignore"):
            return np.where(np.isinf(y), (y > 0.0) * 1.0, np.clip(self._cdf(finite), 0.0, 1.0))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log of the density at y; of the probability of y where that is positive."""
        y, finite = self._outcomes(y)
        with np.errstate(over="ignore", under="ignore"):
            return np.where(np.isinf(y), -np.inf, self._logpdf(finite))

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile of level q in [0, 1]: the lowest y with cdf(y) >= q."""
        q = np.asarray(q, dtype=np.float64)
        if not ((q >= 0.0) & (q <= 1.0)).all():
            bad = q[~((q >= 0.0) & (q <= 1.0))].flat[0]
            raise ValueError(f"levels must be in [0, 1], got {bad}")
        q = self._broadcast(q, "q")
        low, high = self.support
        with np.errstate(over="ignore", under="ignore"):
            inner = self._ppf(np.where((q > 0.0) & (q < 1.0), q, 0.5))
        return np.where(q == 0.0, low, np.where(q == 1.0, high, inner))

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score at y, in the unit of y; lower is better.

        CRPS = integral of (cdf(x) - [x >= y])^2 dx = E|Y - y| - E|Y - Y'| / 2.
        """
        y, finite = self._outcomes(y)
        with np.errstate(over="ignore", under="ignore"):
            # The score is never negative, but rounding may make it so.
            return np.where(np.isinf(y), np.inf, np.maximum(self._crps(finite), 0.0))

    def sample(self, n: int, random_state: RandomState = None) -> Floats:
        """Return n independent outcomes of every row, (n, n_rows)."""
        return self._sample(generator(random_state), (n, len(self)))

    def interval(self, coverage: float = 0.9) -> Floats:
        """Return the central interval, (n_rows, 2): (1 - coverage) / 2 of y on either side.

        Where y has atoms, as counts do, the interval contains at least `coverage`.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must be in (0, 1), got {coverage!r}")
        return self.quantiles([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])

    def quantiles(self, levels: ArrayLike) -> Floats:
        """Return the quantiles of every row, (n_rows, n_levels)."""
        levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if levels.ndim != 1:
            raise ValueError(f"levels must have one dimension, not shape {levels.shape}")
        return np.ascontiguousarray(self.ppf(levels[:, None]).T)

    @abstractmethod
    def _cdf(self, y: Floats) -> Floats: ...

    @abstractmethod
    def _logpdf(self, y: Floats) -> Floats: ...

    @abstractmethod
    def _ppf(self, q: Floats) -> Floats: ...

    @abstractmethod
    def _crps(self, y: Floats) -> Floats: ...

    def _sample(self, noise: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return self._ppf(noise.uniform(size=shape))

    def _outcomes(self, y: ArrayLike) -> tuple[Floats, Floats]:
        """Return outcomes in their broadcast shape, and with 0 instead of infinities."""
        y = self._broadcast(np.asarray(y, dtype=np.float64), "y")
        missing = np.isnan(y)
        if missing.any():
            row = int(np.nonzero(missing)[-1][0])
            raise ValueError(f"y must not be NaN; row {row} is")
        return y, np.where(np.isinf(y), 0.0, y)

    def _broadcast(self, values: Floats, name: str) -> Floats:
        try:
            shape = np.broadcast_shapes(values.shape, (len(self),))
        except ValueError:
            shape = ()
        if not shape or shape[-1] != len(self):
            raise ValueError(
                f"{name} has shape {values.shape}, which does not match {len(self)} rows"
            )
        return np.broadcast_to(values, shape)


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for a seed, a generator, or scikit-learn's older RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def _select(values: Floats, rows: Any) -> Floats:
    return np.asarray(values[as_index(rows)])


def as_index(rows: Any) -> Any:
    """Return what selects rows, with a single index as a list of one."""
    return [int(rows)] if isinstance(rows, int | np.integer) else rows


def _brief(values: Floats) -> str:
    """Return the values of a parameter as text: one number if all rows agree."""
    if len(values) and (values == values[0]).all():
        return f"{values[0]:.6g}"
    return np.array2string(values, precision=4, threshold=6, edgeitems=2, separator=", ")
