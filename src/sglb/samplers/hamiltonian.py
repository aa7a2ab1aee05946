"""Underdamped Langevin boosting: the model has a velocity, and friction takes it away.

    V <- (1 - a) V - eps gamma F + tree,    F <- F + V,     sigma^2 = 2 a T / eps

so that S = (F, V) moves by C = [[1 - eps gamma, 1 - a], [-eps gamma, 1 - a]], b = (1, 1). The
velocity adds up the trees of the last 1 / a steps: the limit is Hamiltonian dynamics with friction,
whose law of F is the same as that of Langevin boosting, exp(-beta [L_N + gamma/2 F' P_inf^-1 F]).
With friction 1 nothing of the velocity survives a step, and this is Langevin boosting.
"""

import math
from dataclasses import dataclass

from sglb.caching import cached_property
from sglb.samplers.base import Move, StorableSampler, demand
from sglb.samplers.langevin import Langevin
from sglb.samplers.preset import OF_NOISE, Preset
from sglb.schedules import Scheduled, last_of
from sglb.transition import Transition


@dataclass(frozen=True)
class Hamiltonian(StorableSampler):
    """Langevin boosting with momentum.

    `friction` is the share of the velocity that each step loses, in (0, 1]. A chain moves about
    1 / friction times as far in a step as one without momentum. Rates may be schedules, as those of
    `Langevin`.
    """

    learning_rate: Scheduled
    temperature: Scheduled
    shrink_rate: Scheduled
    friction: float = 0.1
    subsample: float = 1.0
    structure_noise: float = 1.0

    @cached_property
    def _move(self) -> Move:
        """Noise on structure and leaves, and a velocity that is damped."""
        a = self.friction
        demand("friction", a, 0.0 < a <= 1.0, "in (0, 1]")
        rates = (self.learning_rate, self.temperature, self.shrink_rate)
        without = Langevin(*rates, self.subsample, self.structure_noise).move(0)
        if a == 1.0:
            return without
        pull = last_of(self.learning_rate) * last_of(self.shrink_rate)
        return Move(
            learning_rate=without.learning_rate,
            noise=math.sqrt(a) * without.noise,
            transition=Transition([[1.0 - pull, 1.0 - a], [-pull, 1.0 - a]], [1.0, 1.0]),
            subsample=self.subsample,
            structure_noise=math.sqrt(a) * without.structure_noise,
            temperature=last_of(self.temperature),
        )


PRESET = Preset(Hamiltonian.of, OF_NOISE | {"friction"}, Hamiltonian)
