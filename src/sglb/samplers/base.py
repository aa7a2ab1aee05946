"""What a sampler is: the physics of one step of the chain.

A sampler turns the number of a step into a `Move`; the loop in `chain.py` carries it out:

    tree = -learning_rate * mean over leaf of (gradient + noise * normal),    S <- C S + b (x) tree
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, Self

from sglb.caching import cached_property
from sglb.schedules import Moving, Schedule, read_schedule, value_at
from sglb.transition import KEEP, Transition

# A number that may change from step to step.
Rate = float | Schedule

# Default of a number that follows from others.
UNSTATED: Any = None


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a chain.

    `noise` is the standard deviation sigma of the Gaussian noise on the gradient of a row of
    weight one in the leaves, `structure_noise` that in the search of the structure, the same unless
    stated. `transition` is how the state moves, `subsample` the probability with which a row's
    gradient enters its unbiased estimate. `temperature` is that of the law which the chain tends
    to; without momentum it follows from the noise.
    """

    learning_rate: float
    noise: float = 0.0
    transition: Transition = KEEP
    subsample: float = 1.0
    structure_noise: float = UNSTATED  # as `noise`
    temperature: float = UNSTATED  # by sigma^2 = 2 T / eps
    time: float = UNSTATED  # as if all steps before had this learning rate

    def __post_init__(self) -> None:
        """Reject an invalid move; that the chain stays bounded is for `settings` to check."""
        demand("learning_rate", self.learning_rate, self.learning_rate > 0.0, "above 0")
        demand("noise", self.noise, self.noise >= 0.0, "at least 0")
        if self.temperature is None:
            temperature = 0.5 * self.noise * self.noise * self.learning_rate
            object.__setattr__(self, "temperature", temperature)
        demand("temperature", self.temperature, self.temperature >= 0.0, "at least 0")
        if self.structure_noise is None:
            object.__setattr__(self, "structure_noise", self.noise)
        demand("structure_noise", self.structure_noise, self.structure_noise >= 0.0, "at least 0")
        if self.transition.size == 1:
            demand(
                "shrink", self.shrink, self.shrink <= 1.0, "at most 1 (a shrink rate at least 0)"
            )
        demand("subsample", self.subsample, 0.0 < self.subsample <= 1.0, "in (0, 1]")

    @property
    def shrink(self) -> float:
        """The factor that the model is multiplied with."""
        return float(self.transition.C[0, 0])

    def time_at(self, step: int) -> float:
        """Return the sum of the learning rates of the steps before this one."""
        return self.learning_rate * step if self.time is None else self.time


@dataclass(frozen=True)
class Rates:
    """What samplers by name are made of, with "auto" resolved.

    `hot_temperature` carries a row over the barriers of the loss, `hot_shrink_rate` is that of a
    chain which starts there, `n_steps` are planned.
    """

    learning_rate: Rate
    temperature: Rate
    hot_temperature: Rate
    shrink_rate: Rate
    hot_shrink_rate: Rate
    friction: float
    subsample: float
    structure_noise: float
    n_steps: int


class StorableSampler(Moving, ABC):
    """A sampler that model files can hold: a dataclass of numbers, some of which may be schedules.

    `scheduled` names its fields that may be; a string is read as one. A sampler that `exchanges` is
    a ladder of temperatures for several chains.
    """

    exchanges: ClassVar[bool] = False
    scheduled: ClassVar[tuple[str, ...]] = ("learning_rate", "temperature", "shrink_rate")

    def __post_init__(self) -> None:
        """Read the schedules; the numbers are validated where they become a move."""
        for field in fields(self):  # type: ignore[arg-type]  # a dataclass
            if field.name in self.scheduled:
                value = read_schedule(getattr(self, field.name), f"a sampler's {field.name}")
                object.__setattr__(self, field.name, value)

    def move(self, step: int) -> Move:
        """Return the move of step 0, 1, 2, ..."""
        if not self._is_moving:
            return self._move
        # Of numbers that `for_length` has validated, without `__post_init__` at each step.
        now = object.__new__(type(self))
        vars(now).update(self._numbers)
        for name, schedule in self._moving.items():
            vars(now)[name] = schedule.at(step)
        move = now._move
        object.__setattr__(move, "time", self._time(step))
        return move

    @cached_property
    @abstractmethod
    def _move(self) -> Move:
        """The move of all steps, where all fields are numbers."""

    @cached_property
    def _is_moving(self) -> bool:
        return bool(self._moving)

    @cached_property
    def _moving(self) -> dict[str, Schedule]:
        return self.schedules

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        """Fields that are the same at all steps."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if name not in self._moving}

    @cached_property
    def _times(self) -> list[float]:
        return [0.0]

    def _time(self, step: int) -> float:
        """Return the sum of the learning rates of the steps before."""
        times, rate = self._times, vars(self)["learning_rate"]
        while len(times) <= step:
            times.append(times[-1] + value_at(rate, len(times) - 1))
        return times[step]

    def for_length(self, n_steps: int) -> Self:
        """Return the sampler of a chain of this length; reject numbers that make no valid move."""
        fixed = super().for_length(n_steps)
        for name, schedule in fixed.schedules.items():
            for value in schedule.extremes_of_chain(n_steps):
                try:
                    _ = replace(fixed.at_step(0), **{name: value})._move  # type: ignore[type-var]
                except ValueError as error:
                    raise ValueError(f"{name}={str(schedule)!r}: {error}") from error
        return fixed

    def boldest_move(self, n_steps: int) -> Move:
        """Return the move with the largest of the rates at all steps of a chain."""
        if not self._is_moving:
            return self._move
        largest = {n: s.extremes_of_chain(n_steps)[1] for n, s in self.schedules.items()}
        return replace(self, **largest)._move  # type: ignore[type-var]

    @classmethod
    def of(cls, rates: Rates) -> Self:
        """Return the sampler with the rates that its fields name."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # a dataclass
        return cls(**{name: getattr(rates, name) for name in names})


def demand(name: str, value: float, holds: bool, wanted: str) -> None:
    """Reject a number of a sampler that is not finite or out of its range."""
    if not holds or not math.isfinite(value):
        raise ValueError(f"a sampler's {name} must be {wanted}, not {value!r}")


class Sampler(Protocol):
    """Anything that says how the chain moves at a step."""

    def move(self, step: int) -> Move:
        """Return the move of step 0, 1, 2, ..."""
        ...
