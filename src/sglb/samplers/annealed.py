"""SGLB that cools down: temperature and shrink rate fall from step to step, geometrically.

    T_k = T_first (T_last / T_first)^(k / n_steps),     gamma_k alike

At a fixed temperature the chain converges to a law, the flatter the higher the temperature; the
lower it is, the longer a barrier keeps the chain. So the way to the global optimum is a temperature
that starts high and falls slowly. The shrink rate may fall with it: it keeps scores small, where
the smoothed 0-1 loss has few optima, but only large scores reach its infimum.
"""

from dataclasses import dataclass
from typing import Self

from sglb.samplers.base import Move, Named, Rates, demand
from sglb.samplers.langevin import Langevin
from sglb.schedules import geometric

# By name a chain ends at this share of the temperature that it starts with, after this share of its
# steps; the others are spent at the end of the way.
COOLING, COOLING_SHARE = 1e-4, 0.8


@dataclass(frozen=True)
class Annealed(Named):
    """Langevin boosting from the first to the second of two temperatures and shrink rates in
    `n_steps` steps, and on with the second ones. There is no stationary law.
    """

    planned = True
    learning_rate: float
    temperatures: tuple[float, float]
    shrink_rates: tuple[float, float]
    n_steps: int
    subsample: float = 1.0
    structure_noise: float = 1.0

    def __post_init__(self) -> None:
        """Validate the number of steps; `Langevin` validates the rates."""
        demand("n_steps", self.n_steps, self.n_steps >= 1, "at least 1")

    @classmethod
    def of(cls, rates: Rates) -> Self:
        """Cool down from the hot temperature at a constant shrink rate."""
        return cls(
            rates.learning_rate,
            (rates.hot_temperature, COOLING * rates.hot_temperature),
            (rates.shrink_rate, rates.shrink_rate),
            max(1, round(COOLING_SHARE * rates.n_steps)),
            rates.subsample,
            rates.structure_noise,
        )

    def move(self, step: int) -> Move:
        """Move as Langevin boosting does at the temperature of this step."""
        way = min(1.0, step / self.n_steps)
        temperature, shrink_rate = (
            geometric(first, last, way) if first > 0.0 else first
            for first, last in (self.temperatures, self.shrink_rates)
        )
        return Langevin(
            self.learning_rate, temperature, shrink_rate, self.subsample, self.structure_noise
        ).move(step)
