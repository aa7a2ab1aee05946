"""The interface of a loss: a step of a chain begins with raw scores in, gradients out.

A loss L(z, y) compares the raw score z of a row with its target y. Everything here is per row,
neither weighted nor divided by the number of rows. There are two layouts:

    chain's    raw, gradient, hessian (n_outputs, n_rows), C order; `fill` and slopes
    users'     raw (n_rows,) or (n_rows, n_outputs); every other method
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.losses.links import IDENTITY, LinkFunction
from sglb.losses.minimisers import spread
from sglb.schedules import Moving, Schedule, Scheduled, extremes_of, read_schedule
from sglb.target import Target, Task
from sglb.weights import RowSelection

Floats = NDArray[np.float64]
# (n_threads, draws) -> (largest |gradient|, bound of the second derivatives, 0 without them):
# computes the slopes again. A gradient that is a random estimate takes its noise from the draws.
Refresh = Callable[[int, _core.Draws], tuple[float, float]]


class Loss(Moving, ABC):
    """A built-in loss: a frozen dataclass whose fields are its parameters.

    Only `at_step` knows of steps: everything else is that of the last values of its schedules.

    Whatever depends on the loss asks for a property of it, never for its name:

        name                   also the name of its native kernel
        task                   what y is: numbers, 0 and 1, or class indices
        convex                 whether L is convex in z
        has_hessian            whether the second derivative is never negative, so that Newton steps
                               are allowed; `hessian` of a built-in loss computes it in any case
        proven                 whether tests have shown the gradient to be that of the loss
        independent            whether loss and gradient of a row depend only on its own y and raw
        by_group               whether they depend only on rows of its group, so that whole groups
                               can be left out
        row_wise               whether `independent` is certain before any look at y: methods are
                               called with blocks of rows, by several threads at a time
        thread_safe            whether several threads may call methods at a time
        one_output_per_class   whether the constructor needs the number of classes
        predicts_mean          in regression: whether the prediction estimates the mean of y, so
                               that the variance of the residuals is that of the noise
        law                    in regression: distribution of y that goes with the loss, by its
                               name in `distributions`; None if there is none
        curvature_has_unit     in regression: whether y in another unit multiplies the loss as a
                               function of raw scores, which it shifts
        estimated              whether steps follow estimates of the gradient of another function
                               than the loss that is reported
        proper                 of classes: whether predictions are estimates of probabilities, by
                               which decisions can be made
        uses_costs             whether it needs the costs of decisions about the training rows
        starts_at_zero         whether `init` is 0 for all targets and weights
        default_learning_rate  the meaning of learning_rate="auto"; None: by the size of the data
    """

    name: str
    task: Task = "regression"
    convex: bool = True
    has_hessian: bool = True
    proven: bool = True
    independent: bool = True
    by_group: bool = False
    row_wise: bool = True
    one_output_per_class: bool = False
    predicts_mean: bool = False
    law: str | None = None
    curvature_has_unit: bool = False
    estimated: bool = False
    proper: bool = True
    uses_costs: bool = False
    starts_at_zero: bool = False
    default_learning_rate: float | None = None

    @property
    def n_outputs(self) -> int:
        """Number of raw scores per row."""
        return 1

    @property
    def stationary(self) -> bool:
        """Whether the gradient is, in expectation, that of a fixed function at every step.

        Then a chain of gradient steps has a stationary law. In ranking losses it takes equal
        weights within a query, but for `query_squared`.
        """
        return not self.schedules

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may call methods at a time."""
        return self.row_wise or self.by_group

    @property
    def levels(self) -> Sequence[float]:
        """Level of the quantile that each output predicts; none for other losses."""
        return ()

    @property
    def lipschitz(self) -> float | None:
        """Smallest bound of the gradient's norm over all y and raw, None if it is unbounded."""
        return None

    @property
    def smoothness(self) -> float | None:
        """Smallest Lipschitz constant of the gradient, None if it does not have one."""
        return None

    @property
    def trust_radius(self) -> float:
        """Distance from its start within which the quadratic of a Newton step is a good model.

        It bounds each of several Newton steps of a tree. The only step of a tree, times the
        learning rate, is at most half of it or the learning rate times it, whichever is more.
        Infinite where it is not known.
        """
        return math.inf

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        """Parameters of the native kernel, at least two; unused ones are 0."""
        return 0.0, 0.0

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments: numbers, lists of numbers, schedules as strings.

        `get_loss(name, **parameters)` equals this loss.
        """
        return {name: _to_stored(value) for name, value in vars(self).items()}

    def adapt(self, target: Target, n_threads: int = 1) -> Self:
        """Return this loss for a chain on a target y, with widths in the unit of y.

        The target is that of all rows. What depends on rows and is not decided here would be
        different for parts of them.
        """
        return self

    def examine(self, target: Target, start: Floats, *, check: bool = True) -> Self:
        """Return this loss with properties learned from a trial near `start`.

        With `check` the trial also rejects a wrong gradient. A built-in loss needs no trial.
        """
        return self

    def representative_rows(self, n_rows: int) -> RowSelection:
        """Return rows whose mean loss and gradient estimate those of all rows."""
        return slice(None)

    def is_residual(self, y: Floats) -> bool:
        """Whether the loss of a row is lowest at raw = y, so that raw is in the unit of y."""
        return self.task == "regression" and self.link is IDENTITY

    def curvature(self, y: Floats, raw: Floats, length: float) -> Floats:
        """Return |d²L/dz²| in the shape of raw; `length` is short beside the range of y."""
        return np.abs(self.hessian(y, raw))

    def curvatures(self, target: Target, raw: Floats, length: float) -> Floats:
        """Return |d²L/dz²| of a target, in the shape of raw."""
        return self.curvature(target.values, raw, length)

    def check_target(self, target: Target) -> None:
        """Raise ValueError at the first row whose target is outside the domain of the loss."""
        y = target.values
        self._require(np.isfinite(y), y, "a finite number")
        if self.task == "binary":
            self._require((y == 0) | (y == 1), y, "0 or 1")

    def _require(self, valid: NDArray[np.bool_], y: Floats, domain: str) -> None:
        if not valid.all():
            row = int(np.argmin(valid))
            raise ValueError(f"loss '{self.name}' needs {domain} as target, row {row} has {y[row]}")

    @abstractmethod
    def loss(self, y: Floats, raw: Floats) -> Floats:
        """Return the loss of each row, (n_rows,)."""

    def losses(self, target: Target, raw: Floats) -> Floats:
        """Return the loss of each row of a target, (n_rows,)."""
        return self.loss(target.values, raw)

    def gradient(self, y: Floats, raw: Floats) -> Floats:
        """Return dL/dz, in the shape of raw."""
        return self.derivatives(y, raw)[0]

    def gradients(self, target: Target, raw: Floats) -> Floats:
        """Return dL/dz of a target, in the shape of raw."""
        return self.gradient(target.values, raw)

    def hessian(self, y: Floats, raw: Floats) -> Floats:
        """Return d²L/dz² (several outputs: the diagonal), in the shape of raw."""
        return self.derivatives(y, raw)[1]

    def hessian_parts(self, y: Floats, raw: Floats) -> tuple[Floats, Floats | None]:
        """Return a and b, in the shape of raw: all second derivatives of a row are diag(a) - b b'.

        b is None for 0, where no output knows of another one.
        """
        return self.hessian(y, raw), None

    def derivatives(self, y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the curvature of Newton steps, each in the shape of raw."""
        y = np.ascontiguousarray(y, dtype=np.float64)
        raw = np.asarray(raw, dtype=np.float64)
        chain = np.ascontiguousarray(np.atleast_2d(raw.T))
        gradient, hessian = np.empty_like(chain), np.empty_like(chain)
        self.fill(y, chain, gradient, hessian, 1)
        return gradient.T.reshape(raw.shape), hessian.T.reshape(raw.shape)

    def fill(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None, n_threads: int
    ) -> float:
        """Fill gradient (and hessian unless None) at raw, all (n_outputs, n_rows).

        Returns the largest absolute gradient; infinity if any gradient or raw score is not finite.
        A loss may fill another positive curvature in place of the hessian, where Newton steps by it
        are safer.
        """
        return _core.gradient(
            self.name, self.kernel_parameters, y, raw, gradient, hessian, n_threads
        )

    def slopes(self, target: Target, raw: Floats, *, newton: bool) -> _core.Slopes | None:
        """Return slopes that kernels compute at the rows they visit; None without a native kernel.

        raw (n_outputs, n_rows) is read again at every step. Slopes of a loss that changes are
        stored.
        """
        if self.schedules:
            return None
        return _core.Slopes(self.name, self.kernel_parameters, target.values, raw, newton)

    def stored_slopes(
        self, target: Target, raw: Floats, gradient: Floats, hessian: Floats | None
    ) -> tuple[_core.Slopes, Refresh]:
        """Return slopes stored in arrays, and a function that fills the arrays."""
        if self.schedules:
            return self._moving_slopes(target.values, raw, gradient, hessian)
        y, parameters = target.values, self.kernel_parameters
        slopes = _core.Slopes(self.name, parameters, y, raw, gradient, hessian)
        bound = self.smoothness if hessian is not None else 0.0
        if bound is not None:
            return slopes, lambda n_threads, draws: (slopes.refresh(n_threads), bound)
        assert hessian is not None
        return slopes, lambda n_threads, draws: (
            slopes.refresh(n_threads),
            _core.largest(hessian, n_threads),
        )

    def _moving_slopes(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None
    ) -> tuple[_core.Slopes, Refresh]:
        def refresh(n_threads: int, draws: _core.Draws) -> tuple[float, float]:
            largest = self.at_step(draws.step).fill(y, raw, gradient, hessian, n_threads)
            return largest, 0.0 if hessian is None else _core.largest(hessian, n_threads)

        return _core.Slopes(gradient, hessian), refresh

    @abstractmethod
    def init(self, target: Target) -> Floats:
        """Return the constant raw score that a chain starts from, (n_outputs,), finite."""

    @property
    def link(self) -> LinkFunction:
        """Function from raw scores to predictions: a location, a mean, or probabilities."""
        return IDENTITY


@dataclass(frozen=True)
class WidthLoss(Loss):
    """A loss with a width in spreads of y (`minimisers.spread`), so that y in metres and in
    millimetres give the same model, or, with `absolute=True`, in the unit of y.
    """

    absolute: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Validate the width."""
        object.__setattr__(self, "absolute", bool(self.absolute))  # model files store numbers
        check_positive(self, **{self.width_name: getattr(self, self.width_name)})

    @property
    def width_name(self) -> str:
        """Name of the width parameter."""
        return "width"

    def adapt(self, target: Target, n_threads: int = 1) -> Self:
        """Return the loss with its width in the unit of y."""
        if self.absolute:
            return self
        unit = spread(target)
        width = getattr(self, self.width_name) * unit
        if not LEAST_WIDTH <= width <= 1.0 / LEAST_WIDTH:
            raise ValueError(
                f"the spread of y is {unit:.3g}, for which loss '{self.name}' has no width between"
                f" {LEAST_WIDTH:g} and {1.0 / LEAST_WIDTH:g}; rescale y"
            )
        return replace(self, **{self.width_name: width, "absolute": True})


def whole_count(loss: Loss, **value: float) -> int:
    """Return the one parameter as an int; raise ValueError unless it is a whole number above 0."""
    ((name, number),) = value.items()
    if number < 1 or number != int(number):
        raise ValueError(f"{name} of loss '{loss.name}' must be 1 or more, got {number!r}")
    return int(number)


def _to_stored(value: Any) -> Any:
    if isinstance(value, Schedule):
        return str(value)
    return list(value) if isinstance(value, tuple) else float(value)


def read_positive(loss: Loss, name: str, value: Scheduled) -> float | Schedule:
    """Return a parameter as a number or a schedule, all values of which are valid."""
    read = read_schedule(value, name)
    for extreme in extremes_of(read):
        check_positive(loss, **{name: extreme})
    return read


# The square of a width, and the inverse of the square, are far from overflow.
LEAST_WIDTH = 1e-100


def check_positive(loss: Loss, **values: float) -> None:
    """Raise ValueError for a parameter outside [1e-100, 1e100]."""
    for name, value in values.items():
        if isinstance(value, str | Schedule):
            raise ValueError(f"{name} of loss '{loss.name}' must be a number; it has no schedule")
        if not LEAST_WIDTH <= value <= 1.0 / LEAST_WIDTH:
            raise ValueError(
                f"{name} of loss '{loss.name}' must be a number between 1e-100 and 1e100, "
                f"got {value!r}"
            )
