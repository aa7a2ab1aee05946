"""What can go wrong, by name. The lowest room: it imports nothing of the library."""

import contextlib
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Error = TypeVar("Error", bound=BaseException)

# How the names of files begin whose lines are not the user's: those of the library, and the one
# that runs its context managers.
NOT_THE_USERS = (os.path.join(os.path.dirname(__file__), ""), contextlib.__file__)


def warn(message: str) -> None:
    """Warn the user at the line that called this library, however far below it that is."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(NOT_THE_USERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def portable(
    error: Error,
    dumps: Callable[[Any], bytes] = pickle.dumps,
    loads: Callable[[bytes], Any] = pickle.loads,
) -> Error | RuntimeError:
    """Return an error, or what it says if it cannot be sent to another process."""
    try:
        loads(dumps(error))
    except Exception:
        return RuntimeError("\n".join([repr(error), *getattr(error, "__notes__", ())]))
    return error


def require_rows(
    name: str, values: "NDArray[Any]", valid: "NDArray[np.bool_]", domain: str
) -> None:
    """Raise ValueError at the first row of `values` that is not valid: "name must be domain"."""
    if not valid.all():
        row = int(valid.argmin())
        raise ValueError(f"{name} must be {domain}; row {row} is {values[row]}")


class ModelFormatError(ValueError):
    """A model file that cannot be trusted; `field` is the part of the file that is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"model file, {self.field}: {self.reason}"


class CheckpointError(OSError):
    """A checkpoint at `path` that cannot be written or read, or whose path is not free."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"checkpoint {self.path}: {self.reason}"


class PageError(OSError):
    """Codes that cannot be kept on disk, or are not there as they were written."""


class ChangedTable(ValueError):  # noqa: N818
    """A table whose files have changed while they were read."""


class DividedQuery(ValueError):  # noqa: N818
    """Rows of a query in several pieces, which need to know one another."""

    def __init__(self, query: object, pieces: list[int], name: str) -> None:
        super().__init__(query, pieces, name)
        self.query = query
        self.pieces = pieces
        self.name = name

    def __str__(self) -> str:
        numbers = " and ".join(map(str, self.pieces))
        return (
            f"query {self.query!r} has rows in {self.name}s {numbers} of X; all rows of a query"
            f" must lie in one {self.name}"
        )


# What went wrong is the name; a suffix "Error" would add nothing.
class NonFiniteGradient(ValueError):  # noqa: N818
    """A gradient that is not finite at `row`, `output` and, once the loop knows it, `step`."""

    def __init__(self, row: int, output: int = 0, step: int | None = None) -> None:
        super().__init__(row, output, step)
        self.row = row
        self.output = output
        self.step = step

    def __str__(self) -> str:
        when = "" if self.step is None else f" at step {self.step}"
        return (
            f"the gradient of the loss is not finite in row {self.row}, output {self.output}{when}"
        )


class WrongGradient(ValueError):  # noqa: N818
    """A user's gradient that is not the derivative of the loss, at `row` if rows are independent.

    `gradient` is what the loss states, `slope` what finite differences of it say; `factor` is
    their quotient where that is the same everywhere.
    """

    def __init__(
        self,
        loss: str,
        row: int | None,
        y: float | None,
        raw: tuple[float, ...] | None,
        gradient: float,
        slope: float,
        factor: float | None,
    ) -> None:
        super().__init__(loss, row, y, raw, gradient, slope, factor)
        self.loss = loss
        self.row = row
        self.y = y
        self.raw = raw
        self.gradient = gradient
        self.slope = slope
        self.factor = factor

    def __str__(self) -> str:
        if self.row is None or self.raw is None:
            where = "along a random direction of all rows"
        else:
            at = ", ".join(f"{z:.6g}" for z in self.raw)
            where = f"in row {self.row} (y = {self.y:.6g}, raw = {at})"
        times = "" if self.factor is None else f", {self.factor:.4g} times as much"
        return (
            f"gradient(y, raw) of loss {self.loss!r} is not the derivative of loss(y, raw): {where}"
            f" it is {self.gradient:.6g}{times}, finite differences give {self.slope:.6g}. Correct"
            " it (sglb.check_loss tells more), or pass check_gradient=False to fit if the"
            " difference is meant"
        )


class StepTooLong(ArithmeticError):  # noqa: N818
    """Of several steps in the leaves one went where the loss has no finite slopes."""

    def __init__(self, leaf_steps: int, step: int) -> None:
        super().__init__(leaf_steps, step)
        self.leaf_steps = leaf_steps
        self.step = step

    def __str__(self) -> str:
        return (
            f"leaf_steps={self.leaf_steps}: at step {self.step} a Newton step in a leaf goes to raw"
            " scores at which the loss has no finite slopes; use leaf_steps=1"
        )


class ChangedChain(ArithmeticError):  # noqa: N818
    """A chain that continues an earlier run does not take the `step` that this run took."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return (
            f"step {self.step} differs from that step of the run being resumed: a user-defined"
            " loss, sampler or metric has changed, or the version of sglb; train from the"
            " beginning"
        )


class ChainDiverged(ArithmeticError):  # noqa: N818
    """The chain ran away: after `step` steps its raw scores are not finite, or its mean loss has
    grown from `start` to `loss` and goes on growing.
    """

    def __init__(self, step: int, start: float | None = None, loss: float | None = None) -> None:
        super().__init__(step, start, loss)
        self.step = step
        self.start = start
        self.loss = loss

    def __str__(self) -> str:
        symptom = f"raw scores are not finite after step {self.step}"
        if self.loss is not None:
            symptom = (
                f"the mean training loss has grown from {self.start:.4g} to {self.loss:.4g} after"
                f" step {self.step}"
            )
        return (
            f"the chain diverged: {symptom}; use a smaller learning_rate (or"
            " temperature); sglb.check_loss examines the gradient of a user-defined loss"
        )
