"""What a sampler is: the physics of one step of the chain.

A sampler turns the number of a step into a `Move`; the loop in `chain.py` carries it out:

    tree = -learning_rate * mean over leaf of (gradient + noise * normal),    S <- C S + b (x) tree
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol, Self

from sglb.transition import KEEP, Transition


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
    structure_noise: float = -1.0  # as `noise`
    temperature: float = -1.0  # by sigma^2 = 2 T / eps

    def __post_init__(self) -> None:
        """Reject an invalid move; that the chain stays bounded is for `settings` to check."""
        demand("learning_rate", self.learning_rate, self.learning_rate > 0.0, "above 0")
        demand("noise", self.noise, self.noise >= 0.0, "at least 0")
        if self.temperature == -1.0:
            temperature = 0.5 * self.noise * self.noise * self.learning_rate
            object.__setattr__(self, "temperature", temperature)
        demand("temperature", self.temperature, self.temperature >= 0.0, "at least 0")
        if self.structure_noise == -1.0:
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


@dataclass(frozen=True)
class Rates:
    """What samplers by name are made of, with "auto" resolved.

    `hot_temperature` carries a row over the barriers of the loss, `n_steps` are planned.
    """

    learning_rate: float
    temperature: float
    hot_temperature: float
    shrink_rate: float
    friction: float
    subsample: float
    structure_noise: float
    n_steps: int


class Named(ABC):
    """A sampler that estimators know by name: a dataclass made of rates.

    `planned` says that its moves depend on how many steps there will be.
    """

    planned: ClassVar[bool] = False

    @abstractmethod
    def move(self, step: int) -> Move:
        """Return the move of step 0, 1, 2, ..."""

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
