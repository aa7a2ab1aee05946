"""Draws from the posterior of frozen partitions: many short chains, each from a prior draw."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb import sums, tasks
from sglb.posterior.energies import Energy, QuadraticEnergy
from sglb.posterior.frozen import BATCH, FrozenChain, PriorDraws
from sglb.posterior.leaf_draws import LeafDraws
from sglb.posterior.partitions import Partitions
from sglb.posterior.prior import LeafPrior
from sglb.samplers import Langevin
from sglb.schedules import last_of

Floats = NDArray[np.float64]
NO_ROWS: NDArray[np.intp] = np.empty(0, dtype=np.intp)

# Largest eps (h + gamma). A step makes the variance of a leaf too large by the factor
# 1 / (1 - eps (h + gamma) / 2), h being the curvature there: by at most 14 %, and by less where the
# curvature is below its bound.
STEP = 0.25
# Largest eps gamma. A draw is made of about 1 / (eps gamma) trees: with fewer its law would not be
# that of the mean over all trees, and its variance would go up and down with the trees drawn last.
SHRINK = 0.05

# Steps of an automatic plan, doubled until the variance of the draws changes by less than STILL in
# the second half. Few columns with strong signals, a sine of one for example, need 300 and more.
FEWEST_STEPS, MOST_STEPS, STILL = 150, 2400, 0.1
AUTO_STEPS = -1
# Relaxation times, 1 / (eps (h + gamma)) for the mean curvature h, that a chain lasts at least:
# what is left of the variance of the prior along all rows falls by exp(-10) in five of them. With
# fewer the draws stand still because they have not moved. With even curvatures 150 steps are more;
# of rare classes or large counts the steepest rows keep steps short, and all others wait.
RELAXATIONS = 5.0
# Quotient of the largest and the mean curvature above which the leaves are asked for theirs, which
# is lower. It takes as long as the covers of the leaves.
STEEP = 8.0


@dataclass(frozen=True)
class DrawPlan:
    """How to draw.

    `prior_variance` is the variance of a row's raw score a priori at temperature 1, on average over
    the rows. The posterior is that of exp(-energy / temperature) and has the prior variance times
    the temperature. `learning_rate` is by default the longest step of little bias.

    After 150 steps from a prior draw the standard deviations of predictions are within a few per
    cent of those of a long chain on most tables, at 5,000 rows as at 20,000. AUTO_STEPS are as many
    as the draws of the first batch need.
    """

    prior_variance: float = 1.0
    temperature: float = 1.0
    n_steps: int = 150
    learning_rate: float | None = None

    def __post_init__(self) -> None:
        """Reject numbers out of range; `LeafPrior` examines the prior variance."""
        if not (math.isfinite(self.temperature) and self.temperature > 0.0):
            raise ValueError(f"temperature must be a number above 0, not {self.temperature!r}")
        if self.n_steps < 0 and self.n_steps != AUTO_STEPS:
            raise ValueError(f"n_steps must be at least 0, not {self.n_steps!r}")

    def sampler(self, energy: Energy, prior: LeafPrior, curvature: float | None = None) -> Langevin:
        """Return the numbers of the chains; `curvature` is by default the energy's own bound."""
        shrink_rate = prior.shrink_rate(self.prior_variance)
        learning_rate = self.learning_rate
        if learning_rate is None:
            largest = energy.curvature if curvature is None else curvature
            learning_rate = min(STEP / (largest + shrink_rate), SHRINK / shrink_rate)
        if not 0.0 < learning_rate * shrink_rate < 1.0:
            raise ValueError(
                f"learning_rate must lie between 0 and 1 / shrink rate = {1.0 / shrink_rate:.3g},"
                f" not {learning_rate!r}"
            )
        return Langevin(learning_rate, self.temperature, shrink_rate)


class BatchDraws(NamedTuple):
    """Draws of a batch, as `LeafDraws` has those of all."""

    values: NDArray[np.floating[Any]]
    stages: Floats
    n_steps: int
    relaxations: float


class PosteriorDriver:
    """Draws from posteriors of an energy under the prior of partitions of the training rows.

    What does not depend on the prior variance is computed once: covers of the leaves, and the prior
    draws of the first batch.
    """

    def __init__(
        self, energy: Energy, partitions: Partitions, *, seed: int = 0, n_threads: int = 1
    ) -> None:
        self.energy = energy
        self.prior = LeafPrior(partitions, energy.weight, energy.unit)
        self.seed, self.n_threads = seed, n_threads
        self._first_start: PriorDraws | None = None
        self._mean_curvature = energy.mean_curvature
        self._largest: float | None = None

    def fewest_steps(self, plan: DrawPlan) -> int:
        """Return the steps that an automatic plan begins with."""
        rate = self._relaxations_of_step(self._sampler(plan))
        return min(max(FEWEST_STEPS, math.ceil(RELAXATIONS / rate)), MOST_STEPS)

    def _sampler(self, plan: DrawPlan) -> Langevin:
        if plan.learning_rate is None and self._largest is None:
            self._largest = self.energy.curvature
            if self._largest > STEEP * self._mean_curvature:
                self._largest = self.energy.leaf_curvature(self.prior.partitions)
        return plan.sampler(self.energy, self.prior, self._largest)

    def _relaxations_of_step(self, sampler: Langevin) -> float:
        rate, shrink_rate = last_of(sampler.learning_rate), last_of(sampler.shrink_rate)
        return rate * (self._mean_curvature + shrink_rate)

    def draw(
        self,
        plan: DrawPlan,
        n_draws: int,
        *,
        mirror: bool = False,
        watched: NDArray[np.intp] = NO_ROWS,
    ) -> LeafDraws:
        """Draw as a plan says.

        With `mirror` half of the draws are minus the others, which have the same law where the
        energy is quadratic: their mean is exactly 0. The draws know their stages at the `watched`
        training rows.
        """
        self._check(n_draws, mirror)
        energy, prior = self.energy, self.prior
        n_chains = n_draws // 2 if mirror else n_draws
        batches = [(first, min(BATCH, n_chains - first)) for first in range(0, n_chains, BATCH)]
        values = np.empty((prior.n_all_leaves, energy.n_outputs, n_chains), dtype=np.float32)
        stages = np.empty((2, energy.n_outputs, len(watched), n_chains))
        for (first, n_in_batch), batch in zip(
            batches, self._draw_batches(plan, batches, watched), strict=True
        ):
            inside = slice(first, first + n_in_batch)
            values[:, :, inside], stages[..., inside], n_steps, relaxations = batch
        if mirror:
            stages = np.concatenate([stages, -stages], axis=3)
        n_leaves = np.array(prior.partitions.n_leaves)
        return LeafDraws(n_leaves, values, mirror, stages, n_steps, relaxations)

    def _draw_batches(
        self, plan: DrawPlan, batches: Sequence[tuple[int, int]], watched: NDArray[np.intp]
    ) -> Iterator[BatchDraws]:
        """Yield the draws of batches; the first of them tells how many steps the others take."""
        first, *others = batches
        drawn = self.draw_batch(plan, watched, *first)
        yield drawn
        plan = replace(plan, n_steps=drawn.n_steps)
        if len(others) > 1 and tasks.are_sent():
            run = partial(_draw_alone, self, plan, watched)
            yield from tasks.send([partial(run, *batch) for batch in others])
        else:
            for batch in others:
                yield self.draw_batch(plan, watched, *batch)

    def draw_batch(
        self, plan: DrawPlan, watched: NDArray[np.intp], first: int, n_draws: int
    ) -> BatchDraws:
        """Return draws `first`, `first` + 1, ... of one batch."""
        energy, prior = self.energy, self.prior
        sampler, start = self._sampler(plan), self._start(first, n_draws)
        chain = FrozenChain(energy, prior, sampler, start=start, n_threads=self.n_threads)
        if plan.n_steps == AUTO_STEPS:
            halfway = _run_until_still(chain, watched, self.fewest_steps(plan))
        else:
            halfway = _run(chain, plan.n_steps, watched)
        stages = np.stack([halfway, chain.state[:, watched]])
        relaxations = chain.n_steps * self._relaxations_of_step(sampler)
        return BatchDraws(chain.leaf_values(), stages, chain.n_steps, relaxations)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_first_start": None}

    def _check(self, n_draws: int, mirror: bool) -> None:
        if n_draws < 1:
            raise ValueError(f"n_draws must be at least 1, not {n_draws!r}")
        if mirror and n_draws % 2:
            raise ValueError(f"n_draws={n_draws} must be even: mirror images come in pairs")
        if mirror and not isinstance(self.energy, QuadraticEnergy):
            raise ValueError("only draws of a quadratic energy have mirror images of the same law")

    def _start(self, first: int, n_draws: int) -> PriorDraws:
        kept = self._first_start
        if first == 0 and kept is not None and kept.n_draws == n_draws:
            return kept
        start = PriorDraws.make(
            self.prior,
            self.energy.n_outputs,
            first,
            n_draws,
            seed=self.seed,
            n_threads=self.n_threads,
        )
        if first == 0:
            self._first_start = start
        return start


def _draw_alone(
    driver: PosteriorDriver, plan: DrawPlan, watched: NDArray[np.intp], first: int, n_draws: int
) -> BatchDraws:
    """Return the draws of a batch in a task, which has a driver of its own."""
    driver.n_threads = tasks.threads_here(driver.n_threads)
    batch = driver.draw_batch(plan, watched, first, n_draws)
    return batch._replace(values=batch.values.astype(np.float32))


def _run(chain: FrozenChain, n_steps: int, rows: NDArray[np.intp]) -> Floats:
    """Take steps up to number `n_steps`; return the state of some rows halfway."""
    halfway = chain.state[:, rows]
    while chain.n_steps < n_steps:
        if chain.n_steps == n_steps // 2:
            halfway = chain.state[:, rows]
        chain.step()
    return halfway


def _run_until_still(chain: FrozenChain, rows: NDArray[np.intp], fewest: int) -> Floats:
    """Run for the fewest steps, twice as many, ... until the variance of the draws stands still.

    Returns the state of some rows halfway. The variance still changes if it does so by more than
    STILL, and by more than two standard errors: the draws of a batch are independent.
    """
    end = fewest
    halfway = _run(chain, end, rows)
    while end < MOST_STEPS:
        before, after = _squares(halfway), _squares(chain.state[:, rows])
        change = after - before
        mean = abs(sums.mean(change))
        error = math.sqrt(sums.mean(np.square(change - sums.mean(change))) / len(change))
        if mean <= STILL * sums.mean(before) or mean <= 2.0 * error:
            break
        end, halfway = 2 * end, chain.state[:, rows]
        _run(chain, end, NO_ROWS)
    return halfway


def _squares(state: Floats) -> Floats:
    """Return the mean square of each draw about the mean of all draws, (M,)."""
    centred = state - sums.over_axis(state, 2)[:, :, None] / state.shape[2]
    squares = np.square(centred).reshape(-1, state.shape[2])
    return np.array([sums.mean(column) for column in squares.T])
