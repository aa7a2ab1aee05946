"""What a fit leaves behind: everything that prediction and the model file need, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.caching import cached_property
from sglb.layouts import KnownLayout
from sglb.recipe import Recipe
from sglb.trace import States, Trace, join

if TYPE_CHECKING:
    from sglb.outcomes import OutcomeModel
    from sglb.posterior import ChainPosterior

Scores = dict[str, dict[str, list[float]]]  # evaluation set -> metric -> one value a step


@dataclass(frozen=True)
class Record:
    """The scores of evaluation sets during training, and the best by the watched one."""

    best_iteration: int | None = None
    best_score: float | None = None
    evals_result: Scores = field(default_factory=dict)

    def first(self, n_steps: int) -> "Record":
        """Return the scores of the first steps, and the best if it is among them."""
        scores = {
            name: {metric: values[:n_steps] for metric, values in metrics.items()}
            for name, metrics in self.evals_result.items()
        }
        if self.best_iteration is None or self.best_iteration > n_steps:
            return Record(None, None, scores)
        return Record(self.best_iteration, self.best_score, scores)


@dataclass(frozen=True)
class Exchange:
    """What replica exchange leaves behind beside the chain that is the model.

    `others` are the other chains, of the same length: the states of each that were on the coldest
    rung are draws too. `swap_rates[r]` is the share of the exchanges between rungs r and r + 1 that
    were accepted in the whole run, NaN where there was none to accept.
    """

    others: tuple[Trace, ...]
    swap_rates: tuple[float, ...]


def after(
    traces: Sequence[Trace], exchange: Exchange | None, lengths: Sequence[int]
) -> tuple[tuple[Trace, ...], Exchange | None]:
    """Return chains after these numbers of their first steps.

    Of chains that exchanged temperatures the model is the one that was the coldest there, and the
    others follow by their temperatures.
    """
    if exchange is None:
        return tuple(trace.at(n) for trace, n in zip(traces, lengths, strict=True)), None
    chains = [trace.at(lengths[0]) for trace in (*traces, *exchange.others)]
    coldest, *others = sorted(chains, key=lambda chain: float(chain.temperatures[-1]))
    return (coldest,), replace(exchange, others=tuple(others))


@dataclass(frozen=True)
class Model:
    """A recipe and the traces of the chains that it made; raw scores are the mean of the chains'.

    `residual_variance` is the weighted mean squared residual of the training rows, None where the
    prediction is not a mean. `record` is that of the mean of the chains, `chain_records` those of
    each: of a single chain the same one. With `uncertainty=True`, `outcomes` is how y
    is distributed about its predictions, and `posterior` are draws of the model. `exchange` belongs
    to chains that exchanged temperatures.
    """

    recipe: Recipe
    traces: tuple[Trace, ...]
    residual_variance: float | None
    record: Record
    chain_records: tuple[Record, ...]
    outcomes: "OutcomeModel | None" = None
    posterior: "ChainPosterior | None" = None
    exchange: Exchange | None = None

    def first(self, n_steps: int) -> "Model":
        """Return the model after its first steps; a chain that has fewer stays where it ended.

        Of chains that exchanged temperatures, it is the one that was the coldest after that step;
        rates of exchange stay those of the whole run. What was learned about the last state,
        residuals and error bars, does not belong to it.
        """
        if n_steps >= self.n_steps:
            return self
        lengths = [min(n_steps, len(trace)) for trace in self.traces]
        traces, exchange = after(self.traces, self.exchange, lengths)
        recipe = replace(
            self.recipe,
            parameters=self.recipe.parameters | {"n_estimators": n_steps},
            settings=replace(self.recipe.settings, n_steps=n_steps, search_length=False),
        )
        records = tuple(record.first(n_steps) for record in self.chain_records)
        record = self.record.first(n_steps)
        return Model(recipe, traces, None, record, records, exchange=exchange)

    @property
    def n_steps(self) -> int:
        """Steps of the longest chain."""
        return max(len(trace) for trace in self.traces)

    @cached_property
    def final(self) -> States:
        """The mean of the chains' last states, ready for prediction."""
        return States.mean(self.traces)

    @cached_property
    def finals(self) -> States:
        """The last state of each chain, ready for prediction."""
        return States.of(self.traces, [[len(trace)] for trace in self.traces])

    @cached_property
    def layout(self) -> KnownLayout:
        """What is known of the frames that the model has read."""
        return KnownLayout()

    @property
    def feature_importances(self) -> NDArray[np.float64]:
        """Share of each column in the gain of all splits; zeros if nothing was ever split."""
        gains = self.recipe.encoding.share(join(self.traces).feature_gains())
        total = sums.total(gains)
        return gains / total if total > 0.0 else np.zeros_like(gains)
