"""Guaranteed coverage without rows set aside: five models, each fitted without a fold of the rows.

Every row calibrates the models that have not seen it (`sglb.conformal.CrossConformal`,
`CrossConformalClasses`). The proven coverage is lower than that of calibration rows, 1 - 2 alpha
rather than 1 - alpha; the coverage that one sees is close to 1 - alpha.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sglb.conformal import CrossConformal, CrossConformalClasses, Intervals, PredictionSets
from sglb.estimators.conformal import predictive_scale, within_support
from sglb.estimators.fold_models import FoldModels

if TYPE_CHECKING:
    from sglb.estimators.classifier import SGLBClassifier
    from sglb.estimators.regressor import SGLBRegressor

Floats = NDArray[np.float64]


class CrossConformalRegressor:
    """Intervals of y around the predictions of five regressors (CV+).

    Made by `model.cross_conformalize(X, y)`.

    method       "cross"
    is_scaled    whether intervals are as wide as y is uncertain in a row (uncertainty=True), or as
                 the residuals of all rows tell
    models       the five regressors
    n_rows       rows they were fitted to, which are calibration rows as well
    """

    method = "cross"

    def __init__(self, model: "SGLBRegressor", X: Any, y: Any, sample_weight: Any = None) -> None:
        if len(levels := model._choose_loss(np.empty(0)).levels) > 1:
            raise ValueError(
                f"cross_conformalize needs a model of one number a row, and quantile={levels} are"
                f" {len(levels)}; with calibration rows `conformalize` has intervals between them"
            )
        folds = FoldModels(model, X, y, sample_weight)
        self.models = folds.models
        self.n_rows = len(folds)
        self.is_scaled = all(model._fitted().outcomes is not None for model in self.models)
        centre = folds.out_of_fold(lambda model, rows: model.predict(rows))
        scale = folds.out_of_fold(_scale) if self.is_scaled else 1.0
        self._cross = CrossConformal(folds.target.values, centre, folds.fold, scale)

    def __repr__(self) -> str:
        return f"CrossConformalRegressor(is_scaled={self.is_scaled}, n_rows={self.n_rows})"

    def predict(self, X: Any) -> Floats:
        """Return the mean prediction of the models."""
        return np.asarray(sum(model.predict(X) for model in self.models) / len(self.models))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Intervals:
        """Return an interval of y for each row: `bounds` (n_rows, 2), `guarantee`, `mean_width`."""
        means = np.stack([model.predict(X) for model in self.models])
        if not self.is_scaled:
            return self._cross.interval(means, coverage=coverage)
        scales = np.stack([_scale(model, X) for model in self.models])
        intervals = self._cross.interval(means, scales, coverage)
        return within_support(intervals, self.models[0].predict_distribution(X))


class CrossConformalClassifier:
    """Sets of classes by the probabilities of five classifiers.

    Made by `model.cross_conformalize(X, y)`.

    classes_     labels, in the order of the columns of a set
    models       the five classifiers
    n_rows       rows of each class, (n_classes,): they are calibration rows as well
    """

    def __init__(self, model: "SGLBClassifier", X: Any, y: Any, sample_weight: Any = None) -> None:
        folds = FoldModels(model, X, y, sample_weight)
        self.classes_ = folds.target.classes
        self.models = folds.models
        label = folds.target.values.astype(np.intp)
        self.n_rows = np.bincount(label, minlength=len(self.classes_))
        probability = folds.out_of_fold(lambda model, rows: model.predict_proba(rows))
        self._classes = CrossConformalClasses(label, probability, folds.fold)

    def __repr__(self) -> str:
        return f"CrossConformalClassifier(n_rows={self.n_rows.tolist()})"

    def predict_set(self, X: Any, coverage: float = 0.9) -> PredictionSets:
        """Return a set of classes for each row: `members` (n_rows, n_classes), in the order of
        `classes_`, `guarantee`, `mean_size`.

        The guarantee holds among the rows of each class.
        """
        tables = np.stack([model.predict_proba(X) for model in self.models])
        return self._classes.sets(tables, coverage)


def _scale(model: "SGLBRegressor", X: Any) -> Floats:
    return predictive_scale(model.predict_distribution(X))
