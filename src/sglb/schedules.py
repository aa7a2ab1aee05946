"""Numbers that change from step to step: a string for a shape, a function of the step for experts.

    "linear(1, 0.1)"           v_k = first + (last - first) w      w = min(1, k / n_steps)
    "geometric(1, 0.1, 300)"   v_k = first (last / first)^w
    "cosine(1, 0.1)"           v_k = last + (first - last) (1 + cos(pi w)) / 2
    "jump(0, 1, 25)"           v_k = first, last where w = 1
    "cosine(1, 0) every 50"    the first 50 values again and again

Step k counts from the beginning of a chain. After `n_steps` steps the number stays what it is;
without a stated length a schedule takes as many steps as its chain may, or its period. Outside of
the steps of a chain a schedule stands for its last value.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sglb.elementary import cosine_turn, power


def _linear(first: float, last: float, way: float) -> float:
    return first + (last - first) * way


def _geometric(first: float, last: float, way: float) -> float:
    return first * power(last / first, way)


def _cosine(first: float, last: float, way: float) -> float:
    return last + (first - last) * (0.5 + 0.5 * cosine_turn(0.5 * way))


def _jump(first: float, last: float, way: float) -> float:
    return first


SHAPES = {"linear": _linear, "geometric": _geometric, "cosine": _cosine, "jump": _jump}
EXAMPLE = "'cosine(1, 0.1)', or 'cosine(1, 0.1, 300)' for 300 steps"
_CALL = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*(?:every\s+(\d+)\s*)?")
MOST_CHARACTERS = 200  # two doubles of 24 digits each and two lengths, with room for spaces


class Schedule(ABC):
    """A number at each step of a chain."""

    n_steps: int | None  # after which it does not change, None: those of the chain
    storable: bool = True  # whether a model file can contain it

    @property
    @abstractmethod
    def last(self) -> float:
        """The value after the last step."""

    @property
    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest value."""

    @abstractmethod
    def extremes_of_chain(self, n_steps: int) -> tuple[float, float]:
        """Return the smallest and the largest value at the steps 0 ... n_steps - 1."""

    @abstractmethod
    def at(self, step: int) -> float:
        """Return the value of step 0, 1, 2, ..."""

    def for_length(self, n_steps: int) -> Self:
        """Return the schedule of a chain of `n_steps` steps; a stated length stays."""
        return self


@dataclass(frozen=True)
class Shape(Schedule):
    """A way from the first to the last value: "linear", "geometric", "cosine" or "jump".

    With `every` it begins anew after this many steps.
    """

    shape: str
    first: float
    end: float
    n_steps: int | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        """Reject an unknown shape, numbers that are not finite and invalid lengths."""
        if self.shape not in SHAPES:
            raise ValueError(f"unknown schedule {self.shape!r}; known are {', '.join(SHAPES)}")
        for value in (self.first, self.end):
            if not math.isfinite(value):
                raise ValueError(f"a schedule needs finite numbers, got {value!r}")
            if self.shape == "geometric" and not value > 0.0:
                raise ValueError(f"a geometric schedule needs numbers above 0, got {value!r}")
        _check_length(self.n_steps)
        _check_length(self.every)
        if self.every is not None:
            n_steps = self.n_steps or self.every
            if n_steps > self.every:
                raise ValueError(f"{n_steps} steps do not fit into every {self.every}")
            object.__setattr__(self, "n_steps", n_steps)
        if self.shape == "jump" and self.n_steps is None:
            raise ValueError("a jump needs the step at which it happens: 'jump(0, 1, 100)'")

    def __str__(self) -> str:
        """The string that `read_schedule` reads."""
        period = "" if self.every is None else f" every {self.every}"
        length = "" if self.n_steps in (None, self.every) else f", {self.n_steps}"
        return f"{self.shape}({self.first!r}, {self.end!r}{length}){period}"

    @property
    def last(self) -> float:
        """The value after the last step."""
        return self.end

    @property
    def extremes(self) -> tuple[float, float]:
        """The ends, because all shapes are monotone."""
        return min(self.first, self.end), max(self.first, self.end)

    def extremes_of_chain(self, n_steps: int) -> tuple[float, float]:
        """Return the values at the ends of the chain or of its first period."""
        end = self.at((n_steps if self.every is None else min(n_steps, self.every)) - 1)
        return min(self.first, end), max(self.first, end)

    def at(self, step: int) -> float:
        """Return the value of a step."""
        if self.n_steps is None:
            raise ValueError(f"{self} has no length yet; state it: {EXAMPLE}")
        way = min(1.0, (step if self.every is None else step % self.every) / self.n_steps)
        # Where nothing changes, or no longer does, formulas would leave rounding errors.
        if way == 1.0 or self.first == self.end:
            return self.end
        return SHAPES[self.shape](self.first, self.end, way)

    def for_length(self, n_steps: int) -> Self:
        """Return the schedule with a length, that of the chain if none is stated."""
        return self if self.n_steps is not None else replace(self, n_steps=n_steps)


@dataclass(frozen=True)
class StepFunction(Schedule):
    """A user's function of the step, called for steps 0 ... n_steps.

    A model file does not hold it.
    """

    function: Callable[[int], float]
    n_steps: int
    _values: tuple[float, ...] = field(init=False, repr=False, compare=False)

    storable = False

    def __post_init__(self) -> None:
        """Call the function at every step; reject values that are not finite."""
        _check_length(self.n_steps)
        values = tuple(float(self.function(step)) for step in range(self.n_steps + 1))
        for step, value in enumerate(values):
            if not math.isfinite(value):
                raise ValueError(f"a schedule needs finite numbers; at step {step} it is {value!r}")
        object.__setattr__(self, "_values", values)

    @property
    def values(self) -> tuple[float, ...]:
        """The values of steps 0 ... n_steps, which are all that a chain sees of the function."""
        return self._values

    @property
    def last(self) -> float:
        """The value after the last step."""
        return self._values[-1]

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return min(self._values), max(self._values)

    def extremes_of_chain(self, n_steps: int) -> tuple[float, float]:
        """Return the smallest and the largest value at the steps 0 ... n_steps - 1."""
        return min(self._values[:n_steps]), max(self._values[:n_steps])

    def at(self, step: int) -> float:
        """Return the value of a step."""
        return self._values[min(step, self.n_steps)]


class Moving:
    """A frozen dataclass that may have schedules among its fields."""

    @property
    def schedules(self) -> dict[str, Schedule]:
        """Fields that change from step to step."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Schedule)}

    @property
    def storable(self) -> bool:
        """Whether a model file can contain it."""
        return all(schedule.storable for schedule in self.schedules.values())

    def at_step(self, step: int) -> Self:
        """Return the object of a step, with numbers in place of schedules."""
        moving = self.schedules
        if not moving:
            return self
        now = {name: schedule.at(step) for name, schedule in moving.items()}
        return replace(self, **now)  # type: ignore[type-var]  # a dataclass

    def for_length(self, n_steps: int) -> Self:
        """Return the object of a chain of so many steps, which schedules without a length take."""
        moving = self.schedules
        if not moving:
            return self
        long = {name: schedule.for_length(n_steps) for name, schedule in moving.items()}
        return replace(self, **long)  # type: ignore[type-var]


# A parameter that may change from step to step. What a user states becomes a number or a schedule.
Scheduled = float | str | Schedule


def read_schedule(value: Scheduled, name: str) -> float | Schedule:
    """Return a number as it is, and the schedule that a string describes."""
    if isinstance(value, Schedule):
        return value
    if isinstance(value, str):
        try:
            return parse_schedule(value)
        except ValueError as error:
            short = value if len(value) <= MOST_CHARACTERS else f"{value[:MOST_CHARACTERS]}..."
            raise ValueError(f"{name}={short!r}: {error}") from error
    if callable(value):
        raise ValueError(f"{name} as a function needs a length: schedules.StepFunction(f, n_steps)")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a number or a schedule such as {EXAMPLE}, got {value!r}"
        ) from error


def value_at(value: Scheduled, step: int) -> float:
    """Return a number, or a schedule's value at a step."""
    return value.at(step) if isinstance(value, Schedule) else float(value)


def is_schedule(value: Any) -> bool:
    """Whether a parameter of an estimator is a schedule, or a string that may describe one."""
    return isinstance(value, Schedule) or (isinstance(value, str) and value != "auto")


def last_of(value: Scheduled) -> float:
    """Return a number, or the last value of a schedule."""
    return value.last if isinstance(value, Schedule) else float(value)


def extremes_of(value: Scheduled) -> tuple[float, float]:
    """Return the smallest and the largest value."""
    return value.extremes if isinstance(value, Schedule) else (float(value), float(value))


def parse_schedule(text: str) -> Shape:
    """Return the schedule that a string describes, or raise ValueError."""
    call = _CALL.fullmatch(text) if len(text) <= MOST_CHARACTERS else None
    if call is None:
        raise ValueError(f"not a schedule; write {EXAMPLE}")
    shape, arguments = call[1], call[2].split(",")
    period = None if call[3] is None else int(call[3])
    if len(arguments) not in (2, 3):
        raise ValueError(f"a schedule has two values, and a length if you like: {EXAMPLE}")
    try:
        first, last = (float(argument) for argument in arguments[:2])
        n_steps = int(arguments[2]) if len(arguments) == 3 else None
    except ValueError as error:
        raise ValueError(f"a schedule has two numbers and a whole one: {EXAMPLE}") from error
    return Shape(shape, first, last, n_steps, period)


def _check_length(n_steps: int | None) -> None:
    if n_steps is not None and (n_steps != int(n_steps) or n_steps < 1):
        raise ValueError(f"a schedule has a length of 1 step or more, got {n_steps!r}")
