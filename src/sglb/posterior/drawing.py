"""Draws from the posterior of frozen partitions: many short chains, each from a prior draw."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.posterior.energies import Energy, QuadraticEnergy
from sglb.posterior.frozen import BATCH, FrozenChain
from sglb.posterior.leaf_draws import LeafDraws
from sglb.posterior.partitions import Partitions
from sglb.posterior.prior import LeafPrior
from sglb.samplers import Langevin

Floats = NDArray[np.float64]
NO_ROWS: NDArray[np.intp] = np.empty(0, dtype=np.intp)

# Largest eps (h + gamma). A step makes the variance of a leaf too large by the factor
# 1 / (1 - eps (h + gamma) / 2), h being the curvature there: by at most 14 %, and by less where the
# curvature is below its bound.
STEP = 0.25

# Steps of an automatic plan, doubled until the variance of the draws changes by less than STILL in
# the second half. Few columns with strong signals, a sine of one for example, need 300 and more.
FEWEST_STEPS, MOST_STEPS, STILL = 150, 2400, 0.1


@dataclass(frozen=True)
class DrawPlan:
    """How to draw.

    `prior_variance` is the variance of a row's raw score a priori at temperature 1, on average over
    the rows. The posterior is that of exp(-energy / temperature) and has the prior variance times
    the temperature. `learning_rate` is by default the longest step of little bias.

    After 150 steps from a prior draw the standard deviations of predictions are within a few per
    cent of those of a long chain on most tables, at 5,000 rows as at 20,000; `enough_steps` tells
    where it takes more.
    """

    prior_variance: float = 1.0
    temperature: float = 1.0
    n_steps: int = 150
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        """Reject numbers out of range; `LeafPrior` examines the prior variance."""
        if not (math.isfinite(self.temperature) and self.temperature > 0.0):
            raise ValueError(f"temperature must be a number above 0, not {self.temperature!r}")
        if self.n_steps < 0:
            raise ValueError(f"n_steps must be at least 0, not {self.n_steps!r}")

    def sampler(self, energy: Energy, prior: LeafPrior) -> Langevin:
        """Return the numbers of the chains."""
        shrink_rate = prior.shrink_rate(self.prior_variance)
        learning_rate = self.learning_rate
        if learning_rate is None:
            learning_rate = STEP / (energy.curvature + shrink_rate)
        if not 0.0 < learning_rate * shrink_rate < 1.0:
            raise ValueError(
                f"learning_rate must lie between 0 and 1 / shrink rate = {1.0 / shrink_rate:.3g},"
                f" not {learning_rate!r}"
            )
        return Langevin(learning_rate, self.temperature, shrink_rate)


def draw_posterior(
    energy: Energy,
    partitions: Partitions,
    plan: DrawPlan,
    n_draws: int,
    *,
    mirror: bool = False,
    watched: NDArray[np.intp] = NO_ROWS,
    seed: int = 0,
    n_threads: int = 1,
) -> LeafDraws:
    """Draw from the posterior of an energy under the prior of partitions of the training rows.

    With `mirror` half of the draws are minus the others, which have the same law where the energy
    is quadratic: their mean is exactly 0. The draws know their stages at the `watched` training
    rows.
    """
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, not {n_draws!r}")
    if mirror and n_draws % 2:
        raise ValueError(f"n_draws={n_draws} must be even: mirror images come in pairs")
    if mirror and not isinstance(energy, QuadraticEnergy):
        raise ValueError("only draws of a quadratic energy have mirror images of the same law")
    prior = LeafPrior(partitions, energy.weight, energy.unit)
    sampler = plan.sampler(energy, prior)
    n_chains = n_draws // 2 if mirror else n_draws
    values = np.empty((prior.n_all_leaves, energy.n_outputs, n_chains), dtype=np.float32)
    stages = np.empty((2, energy.n_outputs, len(watched), n_chains))
    for first in range(0, n_chains, BATCH):
        end = min(first + BATCH, n_chains)
        chain = FrozenChain(
            energy, prior, sampler, first, end - first, seed=seed, n_threads=n_threads
        )
        for step in range(plan.n_steps):
            if step == plan.n_steps // 2:
                stages[0, :, :, first:end] = chain.state[:, watched]
            chain.step()
        stages[1, :, :, first:end] = chain.state[:, watched]
        values[:, :, first:end] = chain.leaf_values()
    if mirror:
        stages = np.concatenate([stages, -stages], axis=3)
    return LeafDraws(np.array(partitions.n_leaves), values, mirror, stages)


def enough_steps(
    energy: Energy,
    partitions: Partitions,
    plan: DrawPlan,
    watched: NDArray[np.intp],
    *,
    seed: int = 0,
    n_threads: int = 1,
) -> int:
    """Return how many steps it takes until the variance of the draws no longer changes.

    The first batch runs for FEWEST_STEPS, then for twice as many, and so on, until its variance at
    the watched training rows is that of halfway but for STILL.
    """
    prior = LeafPrior(partitions, energy.weight, energy.unit)
    sampler = plan.sampler(energy, prior)
    chain = FrozenChain(energy, prior, sampler, seed=seed, n_threads=n_threads)
    end, halfway = FEWEST_STEPS, 0.0
    while True:
        while chain.n_steps < end:
            if chain.n_steps == end // 2:
                halfway = _variance(chain, watched)
            chain.step()
        now = _variance(chain, watched)
        if abs(now - halfway) <= STILL * halfway or end >= MOST_STEPS:
            return end
        end, halfway = 2 * end, now


def _variance(chain: FrozenChain, rows: NDArray[np.intp]) -> float:
    """Return the variance over draws, mean over rows and outputs."""
    return sums.mean(chain.state[:, rows].var(axis=2).reshape(-1))
