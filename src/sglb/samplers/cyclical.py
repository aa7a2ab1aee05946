"""Cyclical Langevin boosting: the learning rate falls to nothing, jumps up, and falls again.

    eps_k = eps / 2 (1 + cos(pi w)),     w = (k mod C) / C

Long steps at the beginning of a cycle, without noise, lead the chain to another valley of the loss;
in the last part of the cycle, with noise, its states are draws from that valley (Zhang et al.,
ICLR 2020).
"""

from dataclasses import dataclass
from typing import Self

from sglb.elementary import cosine_turn
from sglb.samplers.base import Move, Named, Rates, demand
from sglb.samplers.langevin import Langevin

# Cycles of a chain by name.
N_CYCLES = 5


@dataclass(frozen=True)
class Cyclical(Named):
    """Langevin boosting in cycles of `cycle_length` steps, noise in the last `drawn` share.

    The states of that part are draws, near the law of the temperature as the rate is small there.
    """

    planned = True
    learning_rate: float
    temperature: float
    shrink_rate: float
    cycle_length: int
    drawn: float = 0.5
    subsample: float = 1.0
    structure_noise: float = 1.0

    def __post_init__(self) -> None:
        """Validate what `Langevin` does not."""
        demand("cycle_length", self.cycle_length, self.cycle_length >= 2, "at least 2")
        demand("drawn", self.drawn, 0.0 < self.drawn <= 1.0, "in (0, 1]")

    @classmethod
    def of(cls, rates: Rates) -> Self:
        """Return five cycles."""
        return cls(
            rates.learning_rate,
            rates.temperature,
            rates.shrink_rate,
            max(2, rates.n_steps // N_CYCLES),
            subsample=rates.subsample,
            structure_noise=rates.structure_noise,
        )

    def is_drawn(self, step: int) -> bool:
        """Whether the state after a step, counted from 0, is a draw."""
        return step % self.cycle_length >= (1.0 - self.drawn) * self.cycle_length

    def move(self, step: int) -> Move:
        """Move as Langevin boosting does at the rate of this step, with noise where it draws."""
        turn = 0.5 * (step % self.cycle_length) / self.cycle_length
        rate = self.learning_rate * (0.5 + 0.5 * cosine_turn(turn))
        temperature = self.temperature if self.is_drawn(step) else 0.0
        return Langevin(
            rate, temperature, self.shrink_rate, self.subsample, self.structure_noise
        ).move(step)
