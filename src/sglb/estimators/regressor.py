"""Numbers to predict."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from sglb.estimators.base import Array, ChainEstimator, Floats
from sglb.losses import Loss, get_loss
from sglb.uncertainty import Uncertainty, of_means


class SGLBRegressor(RegressorMixin, ChainEstimator):  # type: ignore[misc]
    """Stochastic gradient Langevin boosting for numbers.

    Parameters are those of `SGLBClassifier` without `class_weight`; `loss` is "squared" (mean),
    "absolute" (median), "quantile", "huber", "poisson" (counts), "cauchy" or "welsch" (robust), an
    object of `sglb.losses`, or any object with loss(y, raw) and gradient(y, raw).
    """

    _kind = "regressor"

    def _choose_loss(self, classes: Array | None) -> Loss:
        loss = get_loss(self.loss)
        if loss.task != "regression":
            raise ValueError(f"loss={loss.name!r} is for classes; use SGLBClassifier")
        return loss

    def _answer(self, raw: Floats) -> Floats:
        return raw if self.loss_ is None else self.loss_.link(raw)

    def predict(self, X: Any) -> Floats:
        """Return the prediction of each row."""
        return self._answer(self.predict_raw(X))

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Yield the predictions of the chain after each step."""
        for raw in self.staged_predict_raw(X):
            yield self._answer(raw)

    def predict_uncertainty(self, X: Any, n_states: int = 10) -> Uncertainty:
        """Return mean, knowledge, data and total uncertainty (variances) of each row.

        `knowledge` is the variance of the prediction over up to `n_states` states of the second
        half of the chain. `data` is one number for all rows, the mean squared residual of the
        training rows: it takes the noise for constant, and is too small where the chain has
        fitted its training rows closely. For losses whose prediction is not a mean, `data` and
        `total` are None.
        """
        draws = np.stack([self._answer(raw) for raw in self._draws(X, n_states)])
        return of_means(draws, self._model.residual_variance)
