"""What a fit leaves behind: everything that prediction and the model file need, and no more."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sglb.categories import Encoding
from sglb.ensemble import Ensemble, States
from sglb.layouts import KnownLayout
from sglb.losses import Loss

Kind = Literal["classifier", "regressor"]
Scores = dict[str, dict[str, list[float]]]  # evaluation set -> metric -> one value a step


@dataclass(frozen=True)
class Model:
    """A fitted chain and the facts that belong to it.

    `parameters` are the constructor's arguments at fit. `loss` is None where a user's own loss was
    not stored: such a model knows raw scores only. `encoding` makes the ensemble's features of a
    table. `residual_variance` is the
    weighted mean squared residual of the training rows, None where the prediction is not a mean.
    """

    kind: Kind
    parameters: dict[str, Any]
    loss: Loss | None
    ensemble: Ensemble
    encoding: Encoding
    classes: NDArray[Any] | None
    feature_names: list[str] | None
    feature_dtype: str
    learning_rate: float
    temperature: float
    shrink_rate: float
    leaf_method: str
    total_weight: float
    seed: int
    residual_variance: float | None = None
    best_iteration: int | None = None
    best_score: float | None = None
    evals_result: Scores = field(default_factory=dict)

    @cached_property
    def final(self) -> States:
        """The last state of the chain, ready for prediction."""
        return self.ensemble.states([len(self.ensemble)])

    @cached_property
    def layout(self) -> KnownLayout:
        """What is known of the frames that the model has read."""
        return KnownLayout()

    @property
    def n_columns(self) -> int:
        """Columns of the caller's table."""
        return self.encoding.n_columns

    @property
    def inverse_temperature(self) -> float:
        """beta = N / T, the paper's inverse temperature; infinite without noise."""
        return self.total_weight / self.temperature if self.temperature > 0.0 else float("inf")

    @property
    def feature_importances(self) -> NDArray[np.float64]:
        """Share of each column in the gain of all splits; zeros if nothing was ever split."""
        gains = self.encoding.share(self.ensemble.feature_gains())
        total = gains.sum()
        return gains / total if total > 0.0 else np.zeros_like(gains)
