"""Algorithm 2 itself as a sampler: a few long chains, whose later states are the draws.

    structure   searched for the noisy gradient of each step
    leaves      gradient steps with noise, sigma^2 = 2 T / eps
    prior       gamma = leaves / (N tau^2), tau^2 = prior variance of a raw score at T = 1
    eps         as long as the bias of a step is small (`drawing.STEP`)

All chains begin at the model's start, and the second half of each is used. Directions that the data
do not determine relax at the rate eps gamma a step: n steps are eps gamma n relaxation times, and
the second halves of four chains are worth about as many independent draws. That is N prior_variance
/ leaves times as many steps as draws, where draws around frozen trees (`of_model`) need none: the
price of a posterior whose trees are not those of a trained model. Its kernel is that of the trees
which noise alone would grow, a leaf without training rows is 0.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sglb import tasks
from sglb.boosting import boost
from sglb.callbacks import BaseCallback, StepInfo, Stop
from sglb.chains import boost_all
from sglb.diagnostics import LEAST_DRAWS
from sglb.leaves import LeafRule
from sglb.losses import Loss
from sglb.posterior.drawing import AUTO_STEPS, STEP
from sglb.posterior.of_model import (
    FULL_VARIANCE,
    WATCHED_ROWS,
    ChainPosterior,
    PosteriorPlan,
    check_kind,
    variance_of_numbers,
)
from sglb.posterior.states import virtual_states
from sglb.recipe import Recipe
from sglb.samplers import Langevin
from sglb.schedules import last_of
from sglb.target import Target
from sglb.trace import States, Trace
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]

# Chains: R-hat compares several, and more of them would spend more steps on forgetting their start.
N_CHAINS = 4
# Steps up to which "auto" goes: minutes. Leaf values of all chains that it keeps: 256 MB.
MOST_STEPS, MOST_VALUES = 20_000, 1 << 25
# Trees that leaves are counted on.
PILOT_STEPS = 64
# States of a chain in which the watched rows are recorded, and more where there are more draws.
WATCHED_STATES = 200


@dataclass(frozen=True)
class LongChains:
    """Chains of the same length, and the plan with all its numbers.

    `watched` (n_chains, n_states, n_outputs, n_rows) are raw scores of some training rows in states
    of the second halves.
    """

    traces: tuple[Trace, ...]
    sampler: Langevin
    plan: PosteriorPlan
    watched: Floats

    @property
    def n_draws(self) -> int:
        """Number of draws, of all chains."""
        return self.plan.n_draws

    @property
    def n_relaxations(self) -> float:
        """Relaxation times that each chain lasts."""
        rate = last_of(self.sampler.learning_rate) * last_of(self.sampler.shrink_rate)
        return rate * self.plan.n_steps

    def states(self) -> States:
        """Return the draws ready for prediction, chain after chain."""
        numbers = virtual_states(self.plan.n_steps, self.n_draws // len(self.traces)).tolist()
        return States.of(self.traces, [numbers] * len(self.traces))


AnyPosterior = ChainPosterior | LongChains


def run_long_chains(
    recipe: Recipe,
    columns: NDArray[np.uint8],
    target: Target,
    plan: PosteriorPlan,
    n_threads: int = 1,
) -> LongChains:
    """Run chains on rows, given as codes, with the loss, bins, start and depth of a recipe.

    A plan of AUTO_STEPS gets as many as its draws need, up to 20,000.
    """
    loss = recipe.loss
    assert loss is not None
    kept = target.weight > 0.0  # a row of weight zero would have infinite noise
    data = TrainingSet.build(
        columns, recipe.bins.n_codes, target, n_threads, is_level=recipe.encoding.is_level
    ).take(kept)
    sampler, plan = _resolve(recipe, loss, data, plan, n_threads)
    recipe = with_sampler(recipe, sampler, plan)
    rows = np.unique(np.linspace(0, data.n_rows - 1, WATCHED_ROWS).astype(np.intp))
    states = virtual_states(plan.n_steps, max(WATCHED_STATES, plan.n_draws // N_CHAINS))
    watch = Watch(rows, states.tolist())
    if tasks.are_sent():
        run = partial(_run_alone, recipe, data, plan.n_steps, watch, n_threads)
        ended = tasks.send([partial(run, number) for number in range(N_CHAINS)])
    else:
        ended = _run_all(recipe, data, plan.n_steps, watch, n_threads)
    traces, watched = zip(*ended, strict=True)
    return LongChains(traces, sampler, plan, np.array(watched))


def _run_all(
    recipe: Recipe, data: TrainingSet, n_steps: int, watch: "Watch", n_threads: int
) -> list[tuple[Trace, list[Floats]]]:
    """Run the chains side by side in threads; return the trace and the watched rows of each."""
    assert recipe.loss is not None
    at_once = min(N_CHAINS, n_threads) if recipe.loss.thread_safe else 1
    chains = [
        recipe.make_chain(data, n_threads - at_once + 1, number=number)
        for number in range(N_CHAINS)
    ]
    watches = [watch.again() for _ in chains]
    traces = boost_all(chains, n_steps, [[each] for each in watches], (), at_once)
    return [(trace, each.raws) for trace, each in zip(traces, watches, strict=True)]


def _run_alone(
    recipe: Recipe, data: TrainingSet, n_steps: int, watch: "Watch", n_threads: int, number: int
) -> tuple[Trace, list[Floats]]:
    """Run a chain of a number in a task; return its trace and the watched rows."""
    chain = recipe.make_chain(data, tasks.threads_here(n_threads), number=number)
    return boost(chain, n_steps, [watch]), watch.raws


def with_sampler(recipe: Recipe, sampler: Langevin, plan: PosteriorPlan) -> Recipe:
    """Return the recipe of the long chains of a plan: gradient leaves, and noise of their own."""
    settings = replace(
        recipe.settings,
        sampler=sampler,
        learning_rate=last_of(sampler.learning_rate),
        temperature=last_of(sampler.temperature),
        shrink_rate=last_of(sampler.shrink_rate),
        leaves=LeafRule("gradient"),
        random_strength=0.0,
        seed=plan.seed,
        n_steps=plan.n_steps,
        search_length=False,
    )
    return replace(recipe, settings=settings)


class Watch(BaseCallback):
    """Records the raw scores of some rows in some states of a chain."""

    def __init__(self, rows: NDArray[np.intp], states: Iterable[int]) -> None:
        self._rows = rows
        self._states = frozenset(states)
        self.raws: list[Floats] = []

    def again(self) -> "Watch":
        """Return one of the same rows and states, which has not recorded any."""
        return Watch(self._rows, self._states)

    def step(self, info: StepInfo) -> Stop | None:
        """Record the rows if this state is wanted."""
        if info.step in self._states:
            self.raws.append(info.raw[:, self._rows])
        return None


def _resolve(
    recipe: Recipe, loss: Loss, data: TrainingSet, plan: PosteriorPlan, n_threads: int
) -> tuple[Langevin, PosteriorPlan]:
    """Return the sampler of a plan, and the plan with all its numbers."""
    check_kind(loss, plan.kind)
    curvature = loss.smoothness
    assert curvature is not None
    if plan.n_draws % N_CHAINS:
        raise ValueError(
            f"n_draws={plan.n_draws} is not allowed with kind='paper'; use a multiple of"
            f" {N_CHAINS}, so that all chains have as many"
        )
    if plan.prior_variance is None:
        raw = np.repeat(recipe.offset[:, None], data.n_rows, axis=1)
        is_number = loss.task == "regression"
        variance = variance_of_numbers(loss, data.target, raw, plan) if is_number else FULL_VARIANCE
        plan = replace(plan, prior_variance=variance)
    guess = _sampler(1 << recipe.settings.max_depth, data, curvature, plan)
    pilot = with_sampler(recipe, guess, plan).make_chain(data, n_threads)
    cover = boost(pilot, PILOT_STEPS).arrays()["cover"]
    sampler = _sampler(int(np.count_nonzero(cover)) / PILOT_STEPS, data, curvature, plan)
    least = max(2 * plan.n_draws // N_CHAINS, 2 * LEAST_DRAWS)
    if plan.n_steps == AUTO_STEPS:
        rate = last_of(sampler.learning_rate) * last_of(sampler.shrink_rate)
        values = N_CHAINS * len(recipe.offset) << recipe.settings.max_depth
        most = max(min(MOST_STEPS, MOST_VALUES // values), least)
        plan = replace(plan, n_steps=min(math.ceil(plan.n_draws / rate), most))
    if plan.n_steps < least:
        raise ValueError(
            f"n_steps={plan.n_steps} is not allowed with kind='paper' and n_draws={plan.n_draws};"
            f" use at least {least}: draws are states of the second half of {N_CHAINS} chains"
        )
    return sampler, plan


def _sampler(n_leaves: float, data: TrainingSet, curvature: float, plan: PosteriorPlan) -> Langevin:
    """Return the sampler whose prior has this variance on trees with this many leaves."""
    assert plan.prior_variance is not None
    shrink_rate = n_leaves / (data.target.total_weight * plan.prior_variance)
    return Langevin(STEP / (curvature + shrink_rate), plan.temperature, shrink_rate)
