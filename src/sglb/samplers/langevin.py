"""Stochastic gradient Langevin boosting: the paper's Algorithm 2.

    sigma^2 = 2 N / (eps beta) = 2 T / eps,      C = 1 - gamma eps

with inverse temperature beta = N / T. At T = 1 the chain samples the Bayesian posterior
exp(-sum of losses); as T falls it concentrates at the global optimum.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from sglb.samplers.base import Move, Named, demand
from sglb.transition import Transition


@dataclass(frozen=True)
class Langevin(Named):
    """Langevin diffusion in the space of boosted ensembles (SGLB).

    `structure_noise` multiplies the noise of the structures alone. The law of one step is exact for
    any factor, because structures and leaves draw independent noise.
    """

    learning_rate: float
    temperature: float
    shrink_rate: float
    subsample: float = 1.0
    structure_noise: float = 1.0

    def move(self, step: int) -> Move:
        """Noise on structure and leaves, and a little shrinking, at every step alike."""
        return self._move

    @cached_property
    def _move(self) -> Move:
        demand("learning_rate", self.learning_rate, self.learning_rate > 0.0, "above 0")
        demand("temperature", self.temperature, self.temperature >= 0.0, "at least 0")
        demand("structure_noise", self.structure_noise, self.structure_noise >= 0.0, "at least 0")
        noise = math.sqrt(2.0 * self.temperature / self.learning_rate)
        return Move(
            learning_rate=self.learning_rate,
            noise=noise,
            transition=Transition.shrink(1.0 - self.shrink_rate * self.learning_rate),
            subsample=self.subsample,
            structure_noise=self.structure_noise * noise,
        )
