"""Draws of a model at rows of a table: all that a `Posterior` needs to know of its making."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sglb.caching import cached_property
from sglb.estimators.sources import Source
from sglb.model import Model
from sglb.posterior import (
    AnyPosterior,
    ChainPosterior,
    LongChains,
    PosteriorPlan,
    draw_for_chains,
    run_long_chains,
)
from sglb.posterior.leaf_draws import BLOCK_BYTES
from sglb.settings import n_threads
from sglb.target import Target
from sglb.trace import States

if TYPE_CHECKING:
    from sglb.estimators.base import ChainEstimator

Floats = NDArray[np.float64]


class Draws(Protocol):
    """Draws of a source."""

    @property
    def n_chains(self) -> int:
        """Chains that the draws are states of, equally many of each; 1 where they all differ."""
        ...

    def blocks(self, X: Any) -> Iterator[Floats]:
        """Yield raw scores (n_outputs, rows of a block, n_draws), one block at least."""
        ...


class TreeDraws:
    """Draws of the leaf values of frozen trees, each of a short chain of its own."""

    n_chains = 1

    def __init__(self, source: Source, posterior: ChainPosterior) -> None:
        self._source = source
        self._draws = posterior.draws

    def blocks(self, X: Any) -> Iterator[Floats]:
        """Add the draws to the raw scores of the source."""
        source, draws = self._source, self._draws
        partitions, centre = source.rows(X)
        for rows, values in draws.blocks(partitions, source.n_threads):
            yield centre[:, rows, None] + values
        if not partitions.n_rows:
            yield np.empty((*centre.shape, draws.n_draws))


class StateDraws:
    """States of long chains, chain after chain."""

    def __init__(self, estimator: "ChainEstimator", chains: LongChains) -> None:
        self._estimator = estimator
        self._chains = chains
        self.n_chains = len(chains.traces)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_states"}

    @cached_property
    def _states(self) -> States:
        return self._chains.states()

    def blocks(self, X: Any) -> Iterator[Floats]:
        """Predict all states in one traversal of the trees."""
        states, threads = self._states, n_threads(self._estimator.n_jobs)
        features, recipe = self._estimator._read(X, threads), self._estimator._fitted().recipe
        size = max(BLOCK_BYTES // (8 * states.n_states * states.n_outputs), 64)
        for _, values in recipe.encoding.blocks(features, threads):
            for first in range(0, max(len(values), 1), size):
                raw = states.predict(values[first : first + size], threads)
                yield np.moveaxis(raw, 0, 2)


def draw_for_plan(
    model: Model,
    columns: NDArray[np.uint8],
    target: Target,
    plan: PosteriorPlan,
    n_threads: int,
) -> AnyPosterior:
    """Draw what a plan says, given the codes of the training rows and their target."""
    loss = model.recipe.loss
    assert loss is not None
    if plan.kind == "paper":
        return run_long_chains(model.recipe, columns, target, plan, n_threads)
    order = model.recipe.training_order(len(target))
    return draw_for_chains(loss, model.traces, columns, target, plan, n_threads, order)


def draws_at(source: Source, posterior: AnyPosterior) -> Draws:
    """Return the draws of a posterior, at rows as their source reads them."""
    if isinstance(posterior, LongChains):
        assert source.estimator is not None  # other libraries' models have no chains
        return StateDraws(source.estimator, posterior)
    return TreeDraws(source, posterior)
