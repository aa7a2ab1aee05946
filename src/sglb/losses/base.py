"""What a loss is: the first station of a step, raw scores in, gradients out.

A loss L(z, y) compares the raw score z of a row with its target y. Everything here is per row,
neither weighted nor divided by the number of rows. Two layouts meet in this room:

    chain's    raw, gradient, hessian (n_outputs, n_rows), C order; `fill` only
    users'     raw (n_rows,) or (n_rows, n_outputs); every other method
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.losses.links import IDENTITY, LinkFunction
from sglb.losses.minimisers import spread

Floats = NDArray[np.float64]
Task = Literal["regression", "binary", "multiclass"]
# Of a number of threads: computes slopes again, and returns the largest |gradient| and a bound of
# the second derivatives, 0 where there are none.
Refresh = Callable[[int], tuple[float, float]]


class Loss(ABC):
    """A built-in loss: a frozen dataclass whose fields are its parameters.

    `name` is also the name of its native kernel. `has_hessian` says that the second derivative is
    nowhere negative, so that Newton steps are allowed; `hessian` computes it in any case. `proven`
    says that tests have shown the gradient to be that of the loss, `independent` that a row's
    numbers depend on nothing but its own y and raw, `row_wise` that several threads may ask for
    some rows each.
    """

    name: str
    task: Task = "regression"
    convex: bool = True
    has_hessian: bool = True
    proven: bool = True
    independent: bool = True
    row_wise: bool = True

    @property
    def n_outputs(self) -> int:
        """Raw scores a row."""
        return 1

    @property
    def lipschitz(self) -> float | None:
        """Smallest bound of the gradient's norm over all y and raw, None if there is none."""
        return None

    @property
    def smoothness(self) -> float | None:
        """Smallest Lipschitz constant of the gradient, None if there is none."""
        return None

    @property
    def trust_radius(self) -> float:
        """How far from where a Newton step begins its quadratic can be trusted. No step in a leaf
        is longer but one that is alone, where the learning rate leaves no more than half of that.
        Infinite where it is not known.
        """
        return math.inf

    @property
    def kernel_parameters(self) -> tuple[float, float]:
        """What the native kernel needs beside y and raw; unused ones are 0."""
        return 0.0, 0.0

    def parameters(self) -> dict[str, float]:
        """Return the constructor's arguments; `get_loss(name, **parameters)` is an equal loss."""
        return {name: float(value) for name, value in vars(self).items()}

    def prepared(self, y: Floats, weight: Floats | None) -> Self:
        """Return this loss for a chain on y: widths become lengths in units of y."""
        return self

    def tried(self, y: Floats, start: Floats, *, check: bool = True) -> Self:
        """Return this loss after a trial on y near `start`; a built-in one needs none."""
        return self

    def some(self, n_rows: int) -> slice | NDArray[np.intp]:
        """Return rows that are enough to estimate a mean of."""
        return slice(None)

    def is_residual(self, y: Floats) -> bool:
        """Whether rows are best at raw = y, so that raw scores are in the unit of y."""
        return self.task == "regression" and self.link is IDENTITY

    def curvature(self, y: Floats, raw: Floats, length: float) -> Floats:
        """Return |d²L/dz²| in the shape of raw; `length` is a small part of y's range."""
        return np.abs(self.hessian(y, raw))

    def check_target(self, y: Floats) -> None:
        """Raise ValueError at the first row whose target is outside of the loss's domain."""
        self._require(np.isfinite(y), y, "a finite number")
        if self.task == "binary":
            self._require((y == 0) | (y == 1), y, "0 or 1")

    def _require(self, good: NDArray[np.bool_], y: Floats, domain: str) -> None:
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(f"loss '{self.name}' needs {domain} as target, row {row} has {y[row]}")

    @abstractmethod
    def loss(self, y: Floats, raw: Floats) -> Floats:
        """Return the loss of each row, (n_rows,)."""

    def gradient(self, y: Floats, raw: Floats) -> Floats:
        """Return dL/dz, in the shape of raw."""
        return self._derivatives(y, raw)[0]

    def hessian(self, y: Floats, raw: Floats) -> Floats:
        """Return d²L/dz² (several outputs: the diagonal), in the shape of raw."""
        return self._derivatives(y, raw)[1]

    def _derivatives(self, y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        y = np.ascontiguousarray(y, dtype=np.float64)
        raw = np.asarray(raw, dtype=np.float64)
        chain = np.ascontiguousarray(np.atleast_2d(raw.T))
        gradient, hessian = np.empty_like(chain), np.empty_like(chain)
        self.fill(y, chain, gradient, hessian, 1)
        return gradient.T.reshape(raw.shape), hessian.T.reshape(raw.shape)

    def fill(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None, n_threads: int
    ) -> float:
        """Fill gradient (and hessian, if given) at raw, all (n_outputs, n_rows).

        Returns the largest absolute gradient, infinity if one is not finite; a raw score that is
        not finite always makes it so.
        """
        return _core.gradient(
            self.name, self.kernel_parameters, y, raw, gradient, hessian, n_threads
        )

    def slopes(self, y: Floats, raw: Floats, *, newton: bool) -> _core.Slopes | None:
        """Return the loss as something that kernels evaluate where they need it.

        raw (n_outputs, n_rows) is read again at every step. None where there is no kernel.
        """
        return _core.Slopes(self.name, self.kernel_parameters, y, raw, newton)

    def stored_slopes(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None
    ) -> tuple[_core.Slopes, Refresh]:
        """Return slopes that are kept in arrays, and what fills the arrays by `fill`."""
        slopes = _core.Slopes(self.name, self.kernel_parameters, y, raw, gradient, hessian)
        bound = self.smoothness if hessian is not None else 0.0
        if bound is not None:
            return slopes, lambda n_threads: (slopes.refresh(n_threads), bound)
        assert hessian is not None
        return slopes, lambda n_threads: (
            slopes.refresh(n_threads),
            _core.largest(hessian, n_threads),
        )

    @abstractmethod
    def init(self, y: Floats, weight: Floats | None) -> Floats:
        """Return a constant raw score to start from, (n_outputs,), always finite."""

    @property
    def link(self) -> LinkFunction:
        """What turns raw scores into predictions: a location, a mean, or probabilities."""
        return IDENTITY


@dataclass(frozen=True)
class WidthLoss(Loss):
    """A loss with a width, a number of spreads of y (`minimisers.spread`) or, with
    `absolute=True`, a length in units of y. Then y in metres and in millimetres mean the same.
    """

    absolute: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Validate the width."""
        object.__setattr__(self, "absolute", bool(self.absolute))  # a model file holds numbers
        check_positive(self, **{self.width_name: getattr(self, self.width_name)})

    @property
    def width_name(self) -> str:
        """Name of the parameter that is a width."""
        return "width"

    def prepared(self, y: Floats, weight: Floats | None) -> Self:
        """Return the loss with an absolute width: what was a number of spreads is a length."""
        if self.absolute:
            return self
        width = getattr(self, self.width_name) * spread(y, weight)
        return replace(self, **{self.width_name: width, "absolute": True})


def check_positive(loss: Loss, **values: float) -> None:
    """Raise ValueError for a parameter that is not a positive number within reason.

    The bounds keep its square and the square's inverse far from overflow.
    """
    for name, value in values.items():
        if not (math.isfinite(value) and 1e-100 <= value <= 1e100):
            raise ValueError(
                f"{name} of loss '{loss.name}' must be a number between 1e-100 and 1e100, "
                f"got {value!r}"
            )
