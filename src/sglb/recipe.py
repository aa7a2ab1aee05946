"""Everything that is known of chains before their first step.

A recipe and traces are a model; a checkpoint in mid-training needs no more than that.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sglb.bins import Bins
from sglb.categories import Encoding, row_orders, training_codes
from sglb.chain import Chain
from sglb.cluster import DealtRows, TrainingData
from sglb.folds import (
    N_FOLDS,
    CrossValidation,
    Fold,
    FoldMaker,
    LazyCrossValidation,
    assign_folds,
)
from sglb.frame import Features
from sglb.losses import Loss
from sglb.noise import NOISE_VERSION, chain_seed
from sglb.rows import Rows
from sglb.settings import Settings
from sglb.shard import Shard
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet

Kind = Literal["classifier", "regressor", "ranker"]


@dataclass(frozen=True)
class Recipe:
    """What a chain is made by.

    `parameters` are the constructor's arguments at fit, `settings` the numbers they resolve to.
    `loss` is None where a user's own loss was not stored: such a model knows raw scores only.
    `encoding` makes the features of the trees of a table, `bins` their codes. `offset` is where the
    chain starts, (n_outputs,).
    """

    kind: Kind
    parameters: dict[str, Any]
    settings: Settings
    loss: Loss | None
    encoding: Encoding
    bins: Bins
    offset: NDArray[np.float64]
    classes: NDArray[Any]  # none for numbers
    feature_names: list[str] | None
    total_weight: float
    noise_version: int = NOISE_VERSION

    @property
    def inverse_temperature(self) -> float:
        """beta = N / T, the paper's inverse temperature; infinite without noise."""
        temperature = self.settings.temperature
        return self.total_weight / temperature if temperature > 0.0 else float("inf")

    def check_noise(self) -> None:
        """Reject a recipe whose chain drew noise that is no longer drawn."""
        if self.noise_version != NOISE_VERSION:
            raise ValueError(
                f"this model was trained with version {self.noise_version} of the noise, and this"
                f" version of sglb draws version {NOISE_VERSION}: it can predict, but not continue"
                " training"
            )

    def encode_training(
        self, features: Features, target: Target, n_threads: int
    ) -> NDArray[np.uint8]:
        """Return the codes of training rows, (n_features, n_rows), of the first copy.

        Rows in another order get other codes, drawn from the same law.
        """
        seed = self.settings.seed
        return training_codes(
            self.encoding, self.bins, features, target, seed=seed, n_threads=n_threads
        )

    def training_order(self, n_rows: int) -> NDArray[np.uint32] | None:
        """Return the order that the codes of training rows depend on, None if they do not.

        Means by category are over the rows before a row, so that the last rows in this order have
        codes like those of new rows.
        """
        return row_orders(self.settings.seed, 1, n_rows)[0] if self.encoding.tables else None

    def start_trace(self) -> Trace:
        """Return the trace of a chain that has not taken a step."""
        size = self.settings.sampler.move(0).transition.size
        return Trace(self.bins, self.settings.max_depth, self.offset, size=size)

    def make_chain(
        self,
        data: TrainingData,
        n_threads: int,
        trace: Trace | None = None,
        *,
        number: int = 0,
    ) -> Chain:
        """Return a chain on all rows of `data`, in the state that a trace leads to.

        Chains of other numbers differ from the first in their noise alone.
        """
        settings, loss = self.settings, self.loss
        if loss is None:
            raise ValueError("a user-defined loss is not stored in a recipe; set it first")
        self.check_noise()
        trace = self.start_trace() if trace is None else trace
        newton = settings.leaves.method == "newton"
        rule = GreedySearch(
            settings.max_depth,
            l2=settings.leaves.l2,
            newton=newton,
            structure_rows=settings.structure_rows,
            structure_outputs=settings.structure_outputs,
            random_strength=settings.random_strength,
            n_threads=n_threads,
        )
        rows: Rows
        if isinstance(data, DealtRows):
            rows = data.start_rows(loss, trace, newton=newton, number=number)
        else:
            rows = Shard.start(data, loss, trace, newton=newton, n_threads=n_threads)
        seed = chain_seed(settings.seed, number) if number else settings.seed
        return Chain(rows, settings.sampler, rule, settings.leaves, trace, seed=seed)

    def cross_validation(
        self, data: TrainingSet, *, number: int = 0, n_folds: int = N_FOLDS
    ) -> CrossValidation:
        """Return chains of a number on all rows but those of a fold each; none has taken a step.

        Chains of all numbers have the same folds, of which the first `n_folds` have a chain.
        """
        return CrossValidation(*self._folds(data, number), n_folds)

    def lazy_cross_validation(
        self, data: TrainingSet, *, number: int = 0, n_folds: int = N_FOLDS
    ) -> LazyCrossValidation:
        """Return the same chains, which are made when they are needed."""
        return LazyCrossValidation(*self._folds(data, number), n_folds)

    def _folds(self, data: TrainingSet, number: int) -> tuple[FoldMaker, NDArray[np.intp]]:
        fold_of = assign_folds(data, self.settings.seed)
        return partial(make_fold_of, self, data, number), fold_of


def make_fold_of(
    recipe: Recipe,
    data: TrainingSet,
    number: int,
    inside: NDArray[np.bool_],
    trace: Trace | None = None,
) -> Fold:
    """Return a fold of a chain of a number, in the state that a trace leads to."""
    rows = data.take(~np.tile(inside, data.n_copies))
    chain = recipe.make_chain(rows, 1, trace, number=number)
    return Fold(chain, data.first_copy().take(inside))
