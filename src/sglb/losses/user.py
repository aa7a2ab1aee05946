"""A user's loss behind the interface of the built-in ones.

The user's methods get NumPy arrays in the users' layout, read-only views of the chain's memory.
Their results are validated, then copied once into the chain's arrays.
"""

from copy import copy
from functools import partial
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.errors import NonFiniteGradient
from sglb.losses import trial
from sglb.losses.base import Floats, Loss, Refresh
from sglb.losses.blocks import blocks_of, compute_each, sample_rows
from sglb.losses.constants import best_constant
from sglb.losses.links import IDENTITY, SIGMOID, SOFTMAX, LinkFunction
from sglb.losses.minimisers import quantile, spread
from sglb.losses.shapes import user_shape
from sglb.target import Target, task_of
from sglb.weights import RowSelection

REQUIRED = ("loss", "gradient")
PROBED_ROWS = 64
# A length of raw scores is short enough when the mean slope over half of it is at least this
# share of the mean slope over the whole.
STRAIGHT = 0.8
HALVINGS = 60
TINY = 1e-9  # rounding error allowed in a probability


class UserLoss(Loss):
    """Wraps any object with methods loss(y, raw) -> (n_rows,) and gradient(y, raw) -> like raw.

    raw has shape (n_rows,), or (n_rows, n_outputs) if the object's `n_outputs` is more than 1.
    Optional:

        hessian(y, raw)      second derivative, like raw and never negative: allows Newton steps
        derivatives(y, raw)  (gradient, hessian) in one call, where they share work
        init(y, weight)      constant to start from, one number or (n_outputs,); default the best
                             constant, by numerical search
        link(raw)            prediction; default the raw score itself in regression, its sigmoid or
                             softmax for classes (so probabilities are right for log-losses only)
        n_outputs            default 1
        convex               default: whether it looks convex on a few rows of y
        row_wise             True promises that loss and gradient of a row depend only on its own y
                             and raw: the methods are then called with blocks of rows, which is
                             faster, by several threads at a time; default False, all rows at once
        name                 default the name of its class
    """

    proven = False
    storable = False

    def __init__(self, user: Any, n_classes: int = 0) -> None:
        missing = [name for name in REQUIRED if not callable(getattr(user, name, None))]
        if isinstance(user, type):
            raise TypeError(f"a loss must be an object, got the class {user.__name__}")
        if missing:
            raise TypeError(
                f"{user!r} is not a loss: it needs methods loss(y, raw) and gradient(y, raw), but "
                f"has no {' and no '.join(missing)}"
            )
        self.user = user
        self.name = str(getattr(user, "name", type(user).__name__))
        self.task = task_of(n_classes)
        self.convex = bool(getattr(user, "convex", False))
        self.row_wise = bool(getattr(user, "row_wise", False))
        self.independent = self.row_wise  # until `adapt` has seen rows
        self.has_hessian = self._has("hessian") or self._has("derivatives")
        self._row_wise_confirmed = False
        self._n_outputs = int(getattr(user, "n_outputs", 1))
        if self._n_outputs < 1:
            raise ValueError(f"n_outputs of loss '{self.name}' must be >= 1")

    def __repr__(self) -> str:
        return f"UserLoss({self.user!r})"

    @property
    def n_outputs(self) -> int:
        """`n_outputs` of the user's object, else 1."""
        return self._n_outputs

    def parameters(self) -> dict[str, Any]:
        """Return nothing, because a user's loss is not stored."""
        return {}

    def check_target(self, target: Target) -> None:
        """Accept all finite numbers: the domain of a user's loss is not known."""
        y = target.values
        self._require(np.isfinite(y), y, "a finite number")

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """Return the user's loss of each row."""
        return self._call("loss", y, raw, np.shape(y))

    def gradient(self, y: Floats, raw: Floats) -> Floats:
        """Return the user's gradient."""
        return self._call("gradient", y, raw, np.shape(raw))

    def hessian(self, y: Floats, raw: Floats) -> Floats:
        """Return the user's second derivative."""
        if not self.has_hessian:
            raise TypeError(f"loss '{self.name}' has no method hessian")
        if not self._has("hessian"):
            return self.derivatives(y, raw)[1]
        return self._call("hessian", y, raw, np.shape(raw))

    def _has(self, method: str) -> bool:
        return callable(getattr(self.user, method, None))

    def _call(self, method: str, y: Floats, raw: Floats, shape: tuple[int, ...]) -> Floats:
        result = getattr(self.user, method)(_read_only(y), _read_only(raw))
        return self._validate(method, result, shape)

    def derivatives(self, y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        """Return the user's derivatives, from one call where that is possible."""
        if not self._has("derivatives"):
            return self.gradient(y, raw), self.hessian(y, raw)
        result = self.user.derivatives(_read_only(y), _read_only(raw))
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"derivatives(y, raw) of loss '{self.name}' must return (gradient, hessian), "
                f"got {type(result).__name__}"
            )
        gradient, hessian = result
        return (
            self._validate("derivatives", gradient, np.shape(raw)),
            self._validate("derivatives", hessian, np.shape(raw)),
        )

    def _validate(self, method: str, result: Any, shape: tuple[int, ...]) -> Floats:
        array = np.asarray(result)
        if array.dtype.kind not in "fiub":
            raise TypeError(
                f"{method}(y, raw) of loss '{self.name}' must return an array of real numbers, "
                f"got {type(result).__name__} of dtype {array.dtype}"
            )
        if array.shape != shape:
            raise ValueError(
                f"{method}(y, raw) of loss '{self.name}' must return shape {shape}, "
                f"got {array.shape}"
            )
        return array.astype(np.float64, copy=False)

    def slopes(self, target: Target, raw: Floats, *, newton: bool) -> None:
        """Return None, because kernels cannot call Python: gradients are stored."""
        return

    def stored_slopes(
        self, target: Target, raw: Floats, gradient: Floats, hessian: Floats | None
    ) -> tuple[_core.Slopes, Refresh]:
        """Return slopes stored in arrays, and the function by which the user fills them."""
        fill = partial(self._fill, target.values, raw, gradient, hessian)
        return _core.Slopes(gradient, hessian), lambda n_threads, draws: fill(n_threads)

    def fill(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None, n_threads: int
    ) -> float:
        """Fill gradient (and hessian) by the user's methods; reject values that are not finite."""
        return self._fill(y, raw, gradient, hessian, n_threads)[0]

    def _fill(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None, n_threads: int
    ) -> tuple[float, float]:
        """Fill the arrays block by block; return the largest |gradient| and second derivative."""

        def compute(rows: slice) -> tuple[float, float, float]:
            """Fill a block; return its largest |gradient|, smallest and largest hessian."""
            block = user_shape(raw[:, rows])
            # Transposed, (n_rows, n_outputs) is the chain's layout; (n_rows,) broadcasts to
            # (1, n_rows).
            if hessian is None:
                first = self.gradient(y[rows], block)
                np.copyto(gradient[:, rows], first.T)
                return _largest_absolute(first), 0.0, 0.0
            first, second = self.derivatives(y[rows], block)
            np.copyto(gradient[:, rows], first.T)
            np.copyto(hessian[:, rows], second.T)
            return _largest_absolute(first), float(second.min()), float(second.max())

        if not len(y):
            return 0.0, 0.0
        if self.row_wise and not self._row_wise_confirmed:
            self._check_row_wise(y, user_shape(raw))
        largest, smallest_hessian, largest_hessian = np.array(
            compute_each(compute, blocks_of(len(y), whole=not self.row_wise), n_threads)
        ).T
        if not np.isfinite(largest).all():
            if not np.isfinite(raw).all():
                return np.inf, np.inf  # the chain diverged, which the loop reports
            raise _non_finite(gradient)
        if hessian is not None and not (
            smallest_hessian.min() >= 0.0 and np.isfinite(largest_hessian).all()
        ):
            self._reject_hessian(hessian)
        return float(largest.max()), float(largest_hessian.max())

    def _check_row_wise(self, y: Floats, raw: Floats) -> None:
        """Reject a loss whose first rows have another gradient in a smaller block; once."""
        block, half = slice(0, PROBED_ROWS), slice(PROBED_ROWS // 2, PROBED_ROWS)
        expected = self.gradient(y[block], raw[block])[half]
        if not np.allclose(self.gradient(y[half], raw[half]), expected, rtol=1e-9, equal_nan=True):
            raise ValueError(
                f"loss '{self.name}' says row_wise = True, but the gradient of a row depends on "
                "the other rows of the call"
            )
        self._row_wise_confirmed = True

    def _reject_hessian(self, hessian: Floats) -> NoReturn:
        if not np.isfinite(hessian).all():
            error = _non_finite(hessian)
            raise ValueError(
                f"the hessian of loss '{self.name}' is not finite in row {error.row}, "
                f"output {error.output}"
            )
        output, row = np.unravel_index(int(hessian.argmin()), hessian.shape)
        raise ValueError(
            f"the hessian of loss '{self.name}' is negative ({hessian[output, row]:g}) in row "
            f"{row}, output {output}: Newton steps need a hessian that is never negative; use "
            "leaf_method='gradient'"
        )

    def adapt(self, target: Target, n_threads: int = 1) -> Self:
        """Return a copy whose `independent` is what rows of y show."""
        loss, y = copy(self), target.values
        length, median = self._scale(y)
        start = np.full(self.n_outputs, median)
        with np.errstate(all="ignore"):
            loss.independent = trial.independent_rows(self, y, start, length)
        return loss

    def examine(self, target: Target, start: Floats, *, check: bool = True) -> Self:
        """Return a copy whose `convex` is what a few rows show, unless the user states it.

        With `check`, raises WrongGradient where the gradient is not the derivative of the loss.
        """
        loss, y = copy(self), target.values
        with np.errstate(all="ignore"):
            rows = np.arange(len(y))[self.representative_rows(len(y))]
            targets = y[rows]
            raw = user_shape(np.broadcast_to(start[:, None], (len(start), len(rows))))
            self._check_finite(rows, targets, raw)
            length = self._straight_length(targets, raw, self._scale(y)[0])[0]
            if check:
                self._check_derivatives(targets[:PROBED_ROWS], raw[:PROBED_ROWS])
                check_gradient = trial.check_rows if self.independent else trial.check_sum
                check_gradient(self, y, start, length)
            if self.independent and not hasattr(self.user, "convex"):
                loss.convex = trial.looks_convex(self, y, start, length)
        return loss

    def _check_finite(self, rows: NDArray[np.intp], y: Floats, raw: Floats) -> None:
        """Raise ValueError for the first row whose loss or gradient at the start is not finite."""
        for method in ("loss", "gradient"):
            values = getattr(self, method)(y, raw).reshape(len(y), -1)
            finite = np.isfinite(values).all(axis=1)
            if not finite.all():
                first = int(np.argmin(finite))
                raise ValueError(
                    f"{method}(y, raw) of loss '{self.name}' is {values[first].tolist()} in row"
                    f" {rows[first]}, at y = {y[first]:.6g} and raw = {raw[first].tolist()}, where"
                    " the chain starts"
                )

    def _check_derivatives(self, y: Floats, raw: Floats) -> None:
        """Raise ValueError where `derivatives` disagrees with `gradient` or `hessian`."""
        if not self._has("derivatives") or not self.independent:
            return
        methods = ("gradient", "hessian")
        for method, values in zip(methods, self.derivatives(y, raw), strict=True):
            if not self._has(method):
                continue
            expected = self._call(method, y, raw, np.shape(raw))
            if not np.allclose(values, expected, rtol=1e-6, atol=0.0, equal_nan=True):
                raise ValueError(
                    f"derivatives(y, raw) of loss '{self.name}' gives another {method} than"
                    f" {method}(y, raw)"
                )

    def is_residual(self, y: Floats) -> bool:
        """Whether rows are independent and the loss of each is lowest at raw = y."""
        with np.errstate(all="ignore"):
            return self.independent and trial.is_residual(self, y)

    def _scale(self, y: Floats) -> tuple[float, float]:
        """Return spread and median of y; 1 and 0 for classes."""
        if self.task != "regression":
            return 1.0, 0.0
        sample = Target.of(y[sample_rows(len(y))])
        return spread(sample), quantile(sample, 0.5)

    def hessian_parts(self, y: Floats, raw: Floats) -> tuple[Floats, Floats | None]:
        """Return the second derivatives, by differences of the gradient without a hessian."""
        return self.curvature(y, raw, self._scale(y)[0]), None

    def representative_rows(self, n_rows: int) -> RowSelection:
        """Return a sample of the rows if they are independent, else all."""
        return sample_rows(n_rows) if self.independent else slice(None)

    def curvature(self, y: Floats, raw: Floats, length: float) -> Floats:
        """Return |d²L/dz²|, without a hessian by differences of the gradient within `length`."""
        if self.has_hessian:
            return super().curvature(y, raw, length)
        with np.errstate(all="ignore"):
            return self._straight_length(y, raw, length)[1]

    def _straight_length(self, y: Floats, raw: Floats, length: float) -> tuple[float, Floats]:
        """Return a length over which the gradient is nearly straight, and its slopes there.

        `length` is in the unit of y, but raw scores may be logarithms of y: it is halved while that
        lowers the slope. Rows move up or down at random, because some losses of several rows do not
        change when all move together.
        """
        direction = np.random.default_rng(0).choice((-0.05, 0.05), size=raw.shape)

        def slopes_over(length: float) -> Floats:
            step = length * direction
            change = self.gradient(y, raw + step) - self.gradient(y, raw - step)
            return np.abs(change / (2.0 * length * direction))

        slopes = slopes_over(length)
        for _ in range(HALVINGS):
            closer = slopes_over(0.5 * length)
            mean = sums.mean(slopes)
            if np.isfinite(mean) and sums.mean(closer) >= STRAIGHT * mean:
                break
            length, slopes = 0.5 * length, closer
        return length, slopes

    def init(self, target: Target) -> Floats:
        """Return the user's constant, else the best one."""
        if not self._has("init"):
            return best_constant(self, target.take(self.representative_rows(len(target))))
        start = self.user.init(_read_only(target.values), _read_only(target.weight))
        start = np.atleast_1d(np.asarray(start, dtype=np.float64))
        if start.shape != (self.n_outputs,) or not np.isfinite(start).all():
            raise ValueError(
                f"init(y, weight) of loss '{self.name}' must return {self.n_outputs} finite "
                f"number(s), got {start}"
            )
        return start

    @property
    def link(self) -> LinkFunction:
        """The user's link, else that of the task."""
        if self._has("link"):
            return self._user_link
        if self.task == "regression":
            return IDENTITY
        return SIGMOID if self.n_outputs == 1 else SOFTMAX

    def _user_link(self, raw: Floats) -> Floats:
        prediction = np.asarray(self.user.link(raw), dtype=np.float64)
        if prediction.shape[:1] != np.shape(raw)[:1]:
            raise ValueError(
                f"link(raw) of loss '{self.name}' must return a prediction for each of"
                f" {len(raw)} rows, got shape {prediction.shape}"
            )
        outside = (prediction < -TINY) | (prediction > 1.0 + TINY)
        if self.task != "regression" and outside.any():
            raise ValueError(f"link(raw) of loss '{self.name}' must return probabilities, 0 to 1")
        return prediction


def _read_only(array: Floats) -> Floats:
    view = np.asarray(array, dtype=np.float64).view()
    view.flags.writeable = False
    return view


def _largest_absolute(values: Floats) -> float:
    """Return the largest absolute value, or NaN if any is, without an array of them."""
    return float(np.maximum(values.max(), -values.min()))


def _non_finite(values: Floats) -> NonFiniteGradient:
    """Return the error that names the first row, then output, of values (n_outputs, n_rows)."""
    row, output = np.argwhere(~np.isfinite(values.T))[0]
    return NonFiniteGradient(int(row), int(output))
