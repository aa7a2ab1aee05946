"""A user's own loss on the same path as the built-in ones.

The user's methods see plain NumPy arrays in the users' layout, views of the chain's own memory
that cannot be written to. What comes back is checked, then copied once into the chain's arrays.
"""

from copy import copy
from functools import partial
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.errors import NonFiniteGradient
from sglb.losses import trial
from sglb.losses.base import Floats, Loss, Refresh, Task
from sglb.losses.blocks import Rows, blocks_of, compute_each, sample_rows
from sglb.losses.constants import best_constant
from sglb.losses.links import IDENTITY, SIGMOID, SOFTMAX, LinkFunction
from sglb.losses.minimisers import quantile, spread

REQUIRED = ("loss", "gradient")
PROBED_ROWS = 64
# A length of raw scores is short enough when half of it has at least this much of the slope.
STRAIGHT = 0.8
HALVINGS = 60
TINY = 1e-9  # what rounding may add to a probability


class UserLoss(Loss):
    """Wraps any object with methods loss(y, raw) -> (n_rows,) and gradient(y, raw) -> like raw.

    raw has shape (n_rows,), or (n_rows, n_outputs) if the object's `n_outputs` is more than 1.
    Optional:

        hessian(y, raw)      second derivative, like raw and never negative: allows Newton steps
        derivatives(y, raw)  (gradient, hessian) in one go, where they share work
        init(y, weight)      constant to start from, one number or (n_outputs,); default the best
                             constant, found numerically
        link(raw)            prediction; default the raw score itself in regression, its sigmoid or
                             softmax for classes (so probabilities are right for log-losses only)
        n_outputs            default 1
        convex               default: whether it looks so on a few rows of y
        row_wise             True promises that a row's numbers depend on nothing but its own y and
                             raw: many rows then come in blocks, which is faster, and several
                             threads call at a time; default False, all rows together
        name                 default the name of its class
    """

    proven = False

    def __init__(self, user: Any, n_classes: int | None = None) -> None:
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
        self.task = _task(n_classes)
        self.convex = bool(getattr(user, "convex", False))
        self.independent = bool(getattr(user, "row_wise", False))
        self.has_hessian = any(
            callable(getattr(user, name, None)) for name in ("hessian", "derivatives")
        )
        self.row_wise = bool(getattr(user, "row_wise", False))
        self._kept_its_promise = False
        self._n_outputs = int(getattr(user, "n_outputs", 1))
        if self._n_outputs < 1:
            raise ValueError(f"n_outputs of loss '{self.name}' must be >= 1")

    def __repr__(self) -> str:
        return f"UserLoss({self.user!r})"

    @property
    def n_outputs(self) -> int:
        """As the object says, else 1."""
        return self._n_outputs

    def parameters(self) -> dict[str, float]:
        """Nothing: a user's loss is not stored."""
        return {}

    def check_target(self, y: Floats) -> None:
        """Accept any finite numbers; what they mean is the user's business."""
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
        if not callable(getattr(self.user, "hessian", None)):
            return self._both(y, raw)[1]
        return self._call("hessian", y, raw, np.shape(raw))

    def _call(self, method: str, y: Floats, raw: Floats, shape: tuple[int, ...]) -> Floats:
        result = getattr(self.user, method)(_read_only(y), _read_only(raw))
        return self._checked(method, result, shape)

    def _both(self, y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        """Gradient and second derivative."""
        if not callable(getattr(self.user, "derivatives", None)):
            return self.gradient(y, raw), self.hessian(y, raw)
        result = self.user.derivatives(_read_only(y), _read_only(raw))
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"derivatives(y, raw) of loss '{self.name}' must return (gradient, hessian), "
                f"got {type(result).__name__}"
            )
        gradient, hessian = (self._checked("derivatives", one, np.shape(raw)) for one in result)
        return gradient, hessian

    def _checked(self, method: str, result: Any, shape: tuple[int, ...]) -> Floats:
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

    def slopes(self, y: Floats, raw: Floats, *, newton: bool) -> None:
        """Python cannot be called from within a kernel: gradients are stored."""
        return

    def stored_slopes(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None
    ) -> tuple[_core.Slopes, Refresh]:
        """Return slopes in arrays that the user's methods fill."""
        return _core.Slopes(gradient, hessian), partial(self._fill, y, raw, gradient, hessian)

    def fill(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None, n_threads: int
    ) -> float:
        """Fill gradient (and hessian) by the user's methods; reject numbers that are not finite."""
        return self._fill(y, raw, gradient, hessian, n_threads)[0]

    def _fill(
        self, y: Floats, raw: Floats, gradient: Floats, hessian: Floats | None, n_threads: int
    ) -> tuple[float, float]:
        """Fill the arrays block by block; return the largest |gradient| and second derivative."""

        def compute(rows: slice) -> tuple[float, float, float]:
            """Fill a block; return its largest |gradient|, smallest and largest hessian."""
            seen = raw[0, rows] if len(raw) == 1 else raw[:, rows].T
            # Transposed, (n_rows, n_outputs) is the chain's layout; (n_rows,) spreads over
            # (1, n_rows).
            if hessian is None:
                first = self.gradient(y[rows], seen)
                np.copyto(gradient[:, rows], first.T)
                return _largest(first), 0.0, 0.0
            first, second = self._both(y[rows], seen)
            np.copyto(gradient[:, rows], first.T)
            np.copyto(hessian[:, rows], second.T)
            return _largest(first), float(second.min()), float(second.max())

        if not len(y):
            return 0.0, 0.0
        if self.row_wise and not self._kept_its_promise:
            self._check_rows(y, raw[0] if len(raw) == 1 else raw.T)
        largest, smallest_hessian, largest_hessian = np.array(
            compute_each(compute, blocks_of(len(y), whole=not self.row_wise), n_threads)
        ).T
        if not np.isfinite(largest).all():
            if not np.isfinite(raw).all():
                return np.inf, np.inf  # the chain's fault, not the loss's: the loop tells
            raise _first_bad(gradient)
        if hessian is not None and not (
            smallest_hessian.min() >= 0.0 and np.isfinite(largest_hessian).all()
        ):
            self._reject_hessian(hessian)
        return float(largest.max()), float(largest_hessian.max())

    def _check_rows(self, y: Floats, raw: Floats) -> None:
        """Look whether a few rows have the same gradient alone as among others, once."""
        among, alone = slice(0, PROBED_ROWS), slice(PROBED_ROWS // 2, PROBED_ROWS)
        whole = self.gradient(y[among], raw[among])[alone]
        if not np.allclose(self.gradient(y[alone], raw[alone]), whole, rtol=1e-9, equal_nan=True):
            raise ValueError(
                f"loss '{self.name}' says row_wise = True, but the gradient of a row changes with "
                "the rows that come with it"
            )
        self._kept_its_promise = True

    def _reject_hessian(self, hessian: Floats) -> NoReturn:
        if not np.isfinite(hessian).all():
            error = _first_bad(hessian)
            raise ValueError(
                f"the hessian of loss '{self.name}' is not finite in row {error.row}, "
                f"output {error.output}"
            )
        output, row = np.unravel_index(int(hessian.argmin()), hessian.shape)
        raise ValueError(
            f"the hessian of loss '{self.name}' is negative ({hessian[output, row]:g}) in row "
            f"{row}, output {output}: Newton steps need one that never is, use "
            "leaf_method='gradient'"
        )

    def adapt(self, y: Floats, weight: Floats | None) -> Self:
        """Return a copy that knows whether rows of y are independent."""
        loss = copy(self)
        length, middle = self._scale(y)
        start = np.full(self.n_outputs, middle)
        with np.errstate(all="ignore"):
            loss.independent = trial.independent_rows(self, y, start, length)
        return loss

    def examine(self, y: Floats, start: Floats, *, check: bool = True) -> Self:
        """Return a copy that knows whether it looks convex.

        With `check`, raises WrongGradient where its gradient is not the derivative of its loss.
        """
        loss = copy(self)
        with np.errstate(all="ignore"):
            some = y[self.representative_rows(len(y))]
            raw = np.broadcast_to(start, (len(some), len(start)))
            raw = raw[:, 0] if len(start) == 1 else raw
            self._check_finite(np.arange(len(y))[self.representative_rows(len(y))], some, raw)
            length = self._length_at(some, raw, self._scale(y)[0])[0]
            if check:
                self._check_derivatives(some[:PROBED_ROWS], raw[:PROBED_ROWS])
                (trial.check_rows if self.independent else trial.check_sum)(self, y, start, length)
            if self.independent and not hasattr(self.user, "convex"):
                loss.convex = trial.looks_convex(self, y, start, length)
        return loss

    def _check_finite(self, rows: NDArray[np.intp], y: Floats, raw: Floats) -> None:
        """Raise ValueError for the first row whose loss or gradient at the start is not finite."""
        for method in ("loss", "gradient"):
            values = getattr(self, method)(y, raw).reshape(len(y), -1)
            good = np.isfinite(values).all(axis=1)
            if not good.all():
                at = int(np.argmin(good))
                raise ValueError(
                    f"{method}(y, raw) of loss '{self.name}' is {values[at].tolist()} in row"
                    f" {rows[at]}, at y = {y[at]:.6g} and raw = {raw[at].tolist()}, where the chain"
                    " starts"
                )

    def _check_derivatives(self, y: Floats, raw: Floats) -> None:
        """Raise ValueError where `derivatives` and the methods of one derivative disagree."""
        if not callable(getattr(self.user, "derivatives", None)) or not self.independent:
            return
        both = self._both(y, raw)
        methods = [("gradient", both[0]), ("hessian", both[1])]
        for method, found in methods:
            if not callable(getattr(self.user, method, None)):
                continue
            wanted = self._call(method, y, raw, np.shape(raw))
            if not np.allclose(found, wanted, rtol=1e-6, atol=0.0, equal_nan=True):
                raise ValueError(
                    f"derivatives(y, raw) of loss '{self.name}' gives another {method} than"
                    f" {method}(y, raw)"
                )

    def is_residual(self, y: Floats) -> bool:
        """Whether rows are best at raw = y, and the loss can be asked of some of them."""
        with np.errstate(all="ignore"):
            return self.independent and trial.is_residual(self, y)

    def _scale(self, y: Floats) -> tuple[float, float]:
        """Return a typical length of y, and its middle; of classes 1 and 0."""
        if self.task != "regression":
            return 1.0, 0.0
        some = y[sample_rows(len(y))]
        return spread(some, None), quantile(some, None, 0.5)

    def representative_rows(self, n_rows: int) -> Rows:
        """Return rows that are enough to estimate a mean of: all, or some if independent."""
        return sample_rows(n_rows) if self.independent else slice(None)

    def curvature(self, y: Floats, raw: Floats, length: float) -> Floats:
        """Return |d²L/dz²|, without a method for it from gradients a part of `length` apart."""
        if self.has_hessian:
            return super().curvature(y, raw, length)
        with np.errstate(all="ignore"):
            return self._length_at(y, raw, length)[1]

    def _length_at(self, y: Floats, raw: Floats, length: float) -> tuple[float, Floats]:
        """Return a length over which the gradient is about straight, and its slope there.

        `length` is one of y, which raw scores may be logarithms of: it is halved while that lowers
        the slope. Rows move up or down at random, as some losses of several rows do not change when
        all move together.
        """
        way = np.random.default_rng(0).choice((-0.05, 0.05), size=raw.shape)

        def slope(length: float) -> Floats:
            change = self.gradient(y, raw + length * way) - self.gradient(y, raw - length * way)
            return np.abs(change / (2.0 * length * way))

        steepness = slope(length)
        for _ in range(HALVINGS):
            closer = slope(0.5 * length)
            mean = sums.mean(steepness)
            if np.isfinite(mean) and sums.mean(closer) >= STRAIGHT * mean:
                break
            length, steepness = 0.5 * length, closer
        return length, steepness

    def init(self, y: Floats, weight: Floats | None) -> Floats:
        """Return the user's constant, else the best one."""
        if not callable(getattr(self.user, "init", None)):
            some = self.representative_rows(len(y))
            return best_constant(self, y[some], None if weight is None else weight[some])
        start = np.atleast_1d(np.asarray(self.user.init(y, weight), dtype=np.float64))
        if start.shape != (self.n_outputs,) or not np.isfinite(start).all():
            raise ValueError(
                f"init(y, weight) of loss '{self.name}' must return {self.n_outputs} finite "
                f"number(s), got {start}"
            )
        return start

    @property
    def link(self) -> LinkFunction:
        """The user's link, else the task's usual one."""
        if callable(getattr(self.user, "link", None)):
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
        classes = self.task != "regression"
        if classes and ((prediction < -TINY) | (prediction > 1.0 + TINY)).any():
            raise ValueError(f"link(raw) of loss '{self.name}' must return probabilities, 0 to 1")
        return prediction


def _task(n_classes: int | None) -> Task:
    if n_classes is None:
        return "regression"
    return "binary" if n_classes <= 2 else "multiclass"


def _read_only(array: Floats) -> Floats:
    view = np.asarray(array, dtype=np.float64).view()
    view.flags.writeable = False
    return view


def _largest(values: Floats) -> float:
    """Return the largest absolute value, nan if there is one, without an array of them."""
    return float(np.maximum(values.max(), -values.min()))


def _first_bad(values: Floats) -> NonFiniteGradient:
    """Name the first row, then output, of values (n_outputs, n_rows) that is not finite."""
    row, output = np.argwhere(~np.isfinite(values.T))[0]
    return NonFiniteGradient(int(row), int(output))
