"""A fitted classifier with calibrated probabilities: its log odds, stretched and moved.

    two classes       log odds -> slope * log odds + bias
    several classes   scores -> slope * scores

Slope and bias have the lowest log loss on rows that the model was not trained on (`sglb.scaling`).
"""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sglb.elementary import log
from sglb.estimators.deciding import DecisionMixin
from sglb.estimators.fold_models import FoldModels
from sglb.frame import read_weight
from sglb.losses.links import SIGMOID, SOFTMAX
from sglb.scaling import ProbabilityScaling
from sglb.target import Target

if TYPE_CHECKING:
    from sglb.estimators.classifier import SGLBClassifier

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Smaller probabilities are raised to this, so that their logarithm is finite.
LEAST = 1e-300


class CalibratedClassifier(ClassifierMixin, BaseEstimator, DecisionMixin):  # type: ignore[misc]
    """A classifier of scikit-learn's kind around a fitted one, with other probabilities.

    Made by `model.calibrate(X, y)` and `model.cross_calibrate(X, y)`, which leave the model as it
    is. Rows keep their order by the probability of a class of two. Of several classes the most
    likely stays the same; of two it changes in rows between .5 before and .5 after.

    model        fitted classifier
    scaling_     slope and bias; a slope below 1 means that the model was too sure of itself
    classes_     labels, in the order of the columns of `predict_proba`
    """

    def __init__(self, model: "SGLBClassifier") -> None:
        self.model = model

    def __sklearn_tags__(self) -> Tags:
        return self.model.__sklearn_tags__()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Calibrate by rows that the model was not trained on."""
        model = self.model
        model._fitted()
        _require_classes(model.classes_)
        scores = log_odds(model, X)
        if not len(scores):
            raise ValueError("there are no calibration rows")
        weight = read_weight(sample_weight, scores)
        target = model._read_target(y, weight, Target.of([], classes=model.classes_))
        return self._calibrate(scores, target.values, weight)

    def _fit_out_of_fold(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Calibrate by the training rows, each scored by a clone that has not seen it."""
        model = self.model
        model._fitted()
        _require_classes(model.classes_)
        folds = FoldModels(model, X, y, sample_weight)
        classes = folds.target.classes
        if not np.array_equal(classes, model.classes_):
            raise ValueError(
                f"y has the classes {classes.tolist()}, the model {model.classes_.tolist()}; pass"
                " the rows that the model was fitted to"
            )
        return self._calibrate(folds.out_of_fold(log_odds), folds.target.values, folds.weight)

    def _calibrate(self, scores: Floats, label: Floats, weight: Floats) -> Self:
        self.scaling_ = ProbabilityScaling.fit(scores, label, weight)
        self.classes_: Array = self.model.classes_
        self.n_features_in_ = self.model.n_features_in_
        if hasattr(self.model, "feature_names_in_"):
            self.feature_names_in_ = self.model.feature_names_in_
        return self

    def _read_target(self, y: Any, weight: Floats, training: Target | None = None) -> Target:
        return self.model._read_target(y, weight, training)

    def decision_function(self, X: Any) -> Floats:
        """Return calibrated log odds of the second class of two, or a score for each class."""
        check_is_fitted(self)
        return self.scaling_.apply(log_odds(self.model, X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, (n_rows, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return SIGMOID.columns(scores[None], 2)
        return SOFTMAX.columns(scores.T, len(self.classes_))

    def predict(self, X: Any) -> Array:
        """Return the most likely class of each row."""
        scores = self.decision_function(X)
        index = (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Array = self.classes_[index]
        return labels


def log_odds(model: "SGLBClassifier", X: Any) -> Floats:
    """Return log odds of the second class of two, (n_rows,), or of several (n_rows, n_classes).

    Those of several classes are up to a number a row. They are the model's raw scores where its
    link is the usual one, else logarithms of its probabilities; without a link, which a file may
    lack, raw scores have to do.
    """
    link = model._core_link()
    if link is not None:
        return model.decision_function(X) / link.unit
    if model.loss_ is None:
        return model.decision_function(X)
    logarithm = log(np.maximum(model.predict_proba(X), LEAST))
    return logarithm[:, 1] - logarithm[:, 0] if logarithm.shape[1] == 2 else logarithm


def _require_classes(classes: Array) -> None:
    if len(classes) < 2:
        raise ValueError(f"the model knows a single class, {classes.tolist()[0]!r}")
