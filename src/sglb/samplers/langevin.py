"""Stochastic gradient Langevin boosting: the paper's Algorithm 2.

    sigma^2 = 2 N / (eps beta) = 2 T / eps,      C = 1 - gamma eps

with inverse temperature beta = N / T. At T = 1 the chain samples the Bayesian posterior
exp(-sum of losses); as T falls it concentrates at the global optimum.
"""

import math
from dataclasses import dataclass

from sglb.caching import cached_property
from sglb.samplers.base import Move, StorableSampler, demand
from sglb.samplers.preset import Preset
from sglb.schedules import Scheduled, last_of
from sglb.transition import Transition


@dataclass(frozen=True)
class Langevin(StorableSampler):
    """Langevin diffusion in the space of boosted ensembles (SGLB).

    Each of the three rates may be a schedule, such as "geometric(1, 1e-4)". `structure_noise`
    multiplies the noise of the structures alone. The law of one step is exact for any factor,
    because structures and leaves draw independent noise.
    """

    learning_rate: Scheduled
    temperature: Scheduled
    shrink_rate: Scheduled
    subsample: float = 1.0
    structure_noise: float = 1.0

    @cached_property
    def _move(self) -> Move:
        """Noise on structure and leaves, and a little shrinking."""
        rate, temperature = last_of(self.learning_rate), last_of(self.temperature)
        demand("learning_rate", rate, rate > 0.0, "above 0")
        demand("temperature", temperature, temperature >= 0.0, "at least 0")
        demand("structure_noise", self.structure_noise, self.structure_noise >= 0.0, "at least 0")
        noise = math.sqrt(2.0 * temperature / rate)
        wanted = "so large that sqrt(2 temperature / learning_rate), the noise, is finite"
        demand("learning_rate", rate, math.isfinite(noise), wanted)
        return Move(
            learning_rate=rate,
            noise=noise,
            transition=Transition.shrink(1.0 - last_of(self.shrink_rate) * rate),
            subsample=self.subsample,
            structure_noise=self.structure_noise * noise,
        )


PRESET = Preset(Langevin.of, stored=Langevin, for_barriers="annealed", takes_chance=True)
