"""What a posterior must know of the model it is drawn around: a source of rows.

Our own estimators are one source, models of other libraries another (`sglb.peers`).
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sglb.losses import Loss
from sglb.posterior import Partitions, TreePartitions, centre_of
from sglb.settings import n_threads
from sglb.trace import join

if TYPE_CHECKING:
    from sglb.estimators.base import ChainEstimator

Array = NDArray[Any]
Floats = NDArray[np.float64]


class SourceRows(NamedTuple):
    """Rows as draws need them: leaves in every tree, and raw scores that draws are added to."""

    partitions: Partitions
    centre: Floats  # (n_outputs, n_rows)


class Source(Protocol):
    """A model with trees."""

    @property
    def estimator(self) -> "ChainEstimator | None":
        """The fitted estimator, None for a model of another library."""
        ...

    @property
    def classes(self) -> Array:
        """Labels of the classes, (0,) for numbers."""
        ...

    @property
    def loss(self) -> Loss | None:
        """The loss, None where a file did not hold it."""
        ...

    @property
    def n_threads(self) -> int:
        """Threads to use."""
        ...

    def rows(self, X: Any) -> SourceRows:
        """Return rows of a table."""
        ...

    def predict_from(self, raw: Floats) -> Floats:
        """Turn raw scores (n_rows[, n_outputs]) into numbers, or probabilities of all classes."""
        ...

    def total_variance(self, X: Any, knowledge: Floats) -> Floats | None:
        """Return the variance of y about its prediction, (n_rows,), None if it is not known.

        `knowledge` is the variance of the prediction. Asked for in regression only.
        """
        ...


class ChainSource:
    """A fitted estimator; draws are added to its last state or, if not `fitted`, to its start."""

    def __init__(self, estimator: "ChainEstimator", *, fitted: bool) -> None:
        self.estimator = estimator
        self._is_fitted = fitted

    @property
    def classes(self) -> Array:
        """Labels of the classes, (0,) for numbers."""
        return self.estimator._fitted().recipe.classes

    @property
    def loss(self) -> Loss | None:
        """The loss, None where a file did not hold it."""
        return self.estimator._fitted().recipe.loss

    @property
    def n_threads(self) -> int:
        """Threads of the estimator."""
        return n_threads(self.estimator.n_jobs)

    def rows(self, X: Any) -> SourceRows:
        """Return rows of a table, read as the estimator reads them."""
        traces = self.estimator._fitted().traces
        columns, threads = self.estimator._codes(X)
        if self._is_fitted:
            centre = centre_of(traces, columns, threads)
        else:
            centre = np.repeat(traces[0].offset[:, None], columns.shape[1], axis=1)
        return SourceRows(TreePartitions(join(traces), columns, threads), centre)

    def predict_from(self, raw: Floats) -> Floats:
        """Turn raw scores into predictions."""
        return self.estimator._predict_from(raw)

    def total_variance(self, X: Any, knowledge: Floats) -> Floats | None:
        """Return the variance of y.

        One that was learned out of fold includes that of the prediction. That of a law without
        learned numbers, as Poisson's, is noise alone.
        """
        outcomes = self.estimator._fitted().outcomes
        if outcomes is None:
            return None
        variance: Floats = self.estimator.predict_distribution(X).variance
        if outcomes.holds_error:
            return np.maximum(variance, knowledge)
        return variance + knowledge
