"""A fitted estimator with guaranteed coverage: conformal intervals and sets around its predictions.

The guarantee needs calibration rows that the model was not trained on and that are exchangeable
with the rows to predict. It is marginal: on average over rows and calibration samples, for classes
within each class (`sglb.conformal`).
"""

from collections.abc import Sequence
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
              "quantiles": between the predictions of two quantiles, moved apart or together (CQR);
              of a model of several quantiles, between its lowest and its highest
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
        if upper is not None or len(_levels(model)) > 1:
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
        intervals = self._residuals.interval(self.model.predict(X), self._scale(X), coverage)
        if self.method == "residuals":
            return intervals
        return within_support(intervals, self.model.predict_distribution(X))

    def _scale(self, X: Any) -> Floats | float:
        if self.method == "residuals":
            return 1.0
        return predictive_scale(self.model.predict_distribution(X))

    def _two_quantiles(self, X: Any) -> tuple[Floats, Floats]:
        """Return the predictions of both quantiles in ascending order: two fits may cross."""
        if self.upper is None:
            several = self.model.predict(X)
            return several[:, 0], several[:, -1]
        lower, upper = self.model.predict(X), self.upper.predict(X)
        return np.minimum(lower, upper), np.maximum(lower, upper)


class ConformalClassifier:
    """Sets of classes around the probabilities of a classifier. Made by `model.conformalize(X, y)`.

    n_rows    calibration rows of each class, (n_classes,)
    """

    def __init__(self, model: "SGLBClassifier", X: Any, y: Any) -> None:
        if len(model.classes_) < 2:
            raise ValueError(f"the model knows a single class, {model.classes_.tolist()[0]!r}")
        self.model = model
        probability = _require_rows(model.predict_proba(X))
        template = Target.of([], classes=model.classes_)
        label = model._read_target(y, equal_weights(len(probability)), template).values
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


def within_support(intervals: Intervals, distribution: Distribution) -> Intervals:
    """Return intervals cut to the support of the law of y: a count is not negative."""
    low, high = distribution.support
    lower, upper = intervals.bounds.T
    bounds = np.column_stack([np.maximum(lower, low), np.minimum(upper, high)])
    return replace(intervals, bounds=bounds)


def _levels(model: "SGLBRegressor") -> Sequence[float]:
    """Return the levels of a model of quantiles, none for one of means."""
    loss = model._fitted().recipe.loss
    return () if loss is None else loss.levels


def _check_levels(model: "SGLBRegressor", upper: "SGLBRegressor") -> None:
    both = [_levels(model), _levels(upper)]
    if max(map(len, both)) > 1:
        raise ValueError(
            "upper and this model must each be of a single quantile; a model of several needs no"
            " upper: its intervals are between its lowest and its highest"
        )
    low, high = (levels[0] if levels else None for levels in both)
    if low is None or high is None or not low < high:
        raise ValueError(
            "upper must be a model with loss='quantile' of a higher level than that of this one;"
            f" the levels are {low} and {high}"
        )
