"""A fitted estimator with guaranteed coverage: conformal intervals and sets around its predictions.

The guarantee needs calibration rows that the model was not trained on and that are exchangeable
with the rows to predict. It is marginal: on average over rows and calibration samples, for classes
within each class (`sglb.conformal`).
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sglb.conformal import (
    ConformalClasses,
    ConformalQuantiles,
    ConformalResiduals,
    Intervals,
    PredictionSets,
)
from sglb.distributions import Distribution
from sglb.target import Target
from sglb.weights import equal_weights

if TYPE_CHECKING:
    from sglb.estimators.classifier import SGLBClassifier
    from sglb.estimators.regressor import SGLBRegressor

Floats = NDArray[np.float64]


class ConformalRegressor:
    """Intervals of y around the predictions of a regressor. Made by `model.conformalize(X, y)`.

    method    "scaled residuals": as wide as y is uncertain in a row, for fits with uncertainty=True
              "residuals": of one width
              "quantiles": between the predictions of two quantiles, moved apart or together (CQR)
    n_rows    calibration rows
    """

    def __init__(
        self, model: "SGLBRegressor", X: Any, y: Any, upper: "SGLBRegressor | None" = None
    ) -> None:
        self.model = model
        self.upper = upper
        centre = _require_rows(model.predict(X))
        outcome = model._read_target(y, equal_weights(len(centre))).values
        self.n_rows = len(centre)
        self._quantiles: ConformalQuantiles | None = None
        if upper is not None:
            _check_levels(model, upper)
            self.method = "quantiles"
            self._quantiles = ConformalQuantiles(outcome, *self._two_quantiles(X))
            return
        has_law = model._fitted().outcomes is not None
        self.method = "scaled residuals" if has_law else "residuals"
        self._residuals = ConformalResiduals(outcome, centre, self._scale(X))

    def __repr__(self) -> str:
        return f"ConformalRegressor(method={self.method!r}, n_rows={self.n_rows})"

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Intervals:
        """Return an interval of y for each row: `bounds` (n_rows, 2), `guarantee`, `mean_width`."""
        if self._quantiles is not None:
            return self._quantiles.interval(*self._two_quantiles(X), coverage=coverage)
        found = self._residuals.interval(self.model.predict(X), self._scale(X), coverage)
        if self.method == "residuals":
            return found
        # No outcome lies outside the support of its law: a count is not negative.
        low, high = self.model.predict_distribution(X).support
        lower, upper = found.bounds.T
        return replace(
            found, bounds=np.column_stack([np.maximum(lower, low), np.minimum(upper, high)])
        )

    def _scale(self, X: Any) -> Floats | float:
        if self.method == "residuals":
            return 1.0
        return predictive_scale(self.model.predict_distribution(X))

    def _two_quantiles(self, X: Any) -> tuple[Floats, Floats]:
        """Return the predictions of both models in ascending order: two fits may cross."""
        assert self.upper is not None
        one, other = self.model.predict(X), self.upper.predict(X)
        return np.minimum(one, other), np.maximum(one, other)


class ConformalClassifier:
    """Sets of classes around the probabilities of a classifier. Made by `model.conformalize(X, y)`.

    n_rows    calibration rows of each class, (n_classes,)
    """

    def __init__(self, model: "SGLBClassifier", X: Any, y: Any) -> None:
        if len(model.classes_) < 2:
            raise ValueError(f"the model knows a single class, {model.classes_[0]!r}")
        self.model = model
        probability = _require_rows(model.predict_proba(X))
        known = Target.of([], classes=model.classes_)
        label = model._read_target(y, equal_weights(len(probability)), known).values
        self.n_rows = np.bincount(label.astype(np.intp), minlength=len(model.classes_))
        self._classes = ConformalClasses(label, probability)

    def __repr__(self) -> str:
        return f"ConformalClassifier(n_rows={self.n_rows.tolist()})"

    def predict_set(self, X: Any, coverage: float = 0.9) -> PredictionSets:
        """Return a set of classes for each row: `members` (n_rows, n_classes), in the order of
        `model.classes_`, `guarantee`, `mean_size`.

        The guarantee holds among the rows of each class.
        """
        return self._classes.sets(self.model.predict_proba(X), coverage)


def predictive_scale(distribution: Distribution) -> Floats:
    """Return the width of the distribution of y in each row.

    That is the standard deviation, where it is infinite the distance of the quartiles.
    """
    std = distribution.std
    quartiles = distribution.ppf(0.75) - distribution.ppf(0.25)
    return np.where(np.isfinite(std), std, quartiles)


def _require_rows(predictions: Any) -> Floats:
    if not len(predictions):
        raise ValueError("there are no calibration rows")
    return np.asarray(predictions)


def _check_levels(model: "SGLBRegressor", upper: "SGLBRegressor") -> None:
    levels: list[Any] = [
        getattr(fitted._fitted().recipe.loss, "level", None) for fitted in (model, upper)
    ]
    if None in levels or not levels[0] < levels[1]:
        raise ValueError(
            "upper must be a model with loss='quantile' of a higher level than that of this one;"
            f" the levels are {levels[0]} and {levels[1]}"
        )
