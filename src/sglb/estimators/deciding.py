"""Decisions by probabilities: the cheapest one, or that of a tuned threshold."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier

from sglb import sums
from sglb.costs import cheapest, read_costs, take_costs
from sglb.estimators.base import ChainEstimator
from sglb.estimators.fold_models import FoldModels
from sglb.frame import read_weight
from sglb.target import Target
from sglb.thresholds import CountMetric, Sweep, Tuned, find_metric
from sglb.weights import are_equal

Array = NDArray[Any]
Floats = NDArray[np.float64]

ADVICE = "pass costs, a matrix costs[y, d] of decision d where the class is y, or one for each row"


class DecisionMixin:
    """What a fitted classifier decides by its probabilities."""

    classes_: Array

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, (n_rows, n_classes)."""
        raise NotImplementedError

    def _read_target(self, y: Any, weight: Floats, training: Target | None = None) -> Target:
        raise NotImplementedError

    def _check_probabilities(self) -> None:
        """Raise ValueError if `predict_proba` does not return estimates of probabilities."""

    def _twin(self) -> Any:
        """Return the classifier as it is now, which another fit does not change."""
        return deepcopy(self)

    def decide(self, X: Any, costs: Any) -> Array:
        """Return the decision of least expected cost for each row, a class.

            decision = model.decide(X, [[0, 1], [20, 0]])

        costs[y, d] is the cost of decision d where the class is y, classes in the order of
        `classes_`; or there is such a matrix for each row (`sglb.costs.action_costs`). Expected
        costs are those by `predict_proba`: of a model whose probabilities are not frequencies of
        classes, by class_weight or by its loss, take `model.calibrate(X_other, y_other).decide`.
        """
        self._check_probabilities()
        probability = self.predict_proba(X)
        matrices = read_costs(costs, len(probability), self.classes_)
        labels: Array = self.classes_[cheapest(matrices, probability)]
        return labels

    def tune_threshold(
        self, X: Any, y: Any, metric: Any = "f1", sample_weight: Any = None, *, costs: Any = None
    ) -> FixedThresholdClassifier:
        """Return this model with the best threshold of the probability of the second class.

            tuned = model.tune_threshold(X_other, y_other, "mcc")
            tuned.predict(X), tuned.best_threshold_, tuned.best_score_

        X, y are rows that the model has not seen; `cross_tune_threshold` is for training rows.
        `metric` is "f1", "f0.5", "f2", "mcc", "balanced_accuracy", "accuracy", "cost" with `costs`,
        an object of `sglb.thresholds` (FBeta, RecallAtPrecision, PrecisionAtRecall, or your own
        with of_counts(counts)), or a function of (y, decisions), the higher the better, which is
        called at 1,000 thresholds at most. All others look at every threshold there is; of equally
        good ones the highest is taken. The score is of the rows that chose it: a little too good.

        The result is scikit-learn's FixedThresholdClassifier around this model as it is now. The
        model and its file have no threshold: pickle the result, or keep `best_threshold_`.
        """
        probability = self.predict_proba(X)
        target = _read_scored(self, y, sample_weight, len(probability))
        return at_threshold(self._twin(), tune(probability[:, 1], target, metric, costs))


def _read_scored(model: DecisionMixin, y: Any, sample_weight: Any, n_rows: int) -> Target:
    """Return the target of rows that a threshold is chosen by."""
    if len(model.classes_) != 2:
        raise ValueError(
            f"a threshold is for two classes, and the model has {len(model.classes_)};"
            " decide(X, costs) is for any number"
        )
    if not n_rows:
        raise ValueError("there are no rows to choose a threshold by")
    weight = read_weight(sample_weight, range(n_rows))
    return model._read_target(y, weight, Target.of([], classes=model.classes_))


def tune(probability: Floats, target: Target, metric: Any, costs: Any) -> Tuned:
    """Return the best of all thresholds of the probability of class 1 by a metric."""
    counted = target.values[target.weight > 0.0]
    if (counted == counted[0]).all():
        raise ValueError(
            f"y has a single class, {target.classes.tolist()[int(counted[0])]!r}, by which no"
            " threshold can be chosen"
        )
    is_cost = isinstance(metric, str) and metric == "cost"
    if is_cost == (costs is None):
        raise ValueError(f"metric='cost' and costs go together; {ADVICE}")
    sweep = Sweep(probability, target.values > 0.0, target.weight)
    if is_cost:
        realised = target.with_costs(read_costs(costs, len(target), target.classes)).realised_costs
        idle = sums.mean(realised[:, 0], target.weight)
        return sweep.by_savings(realised[:, 0] - realised[:, 1], idle)
    rule = find_metric(metric)
    if isinstance(rule, CountMetric):
        return sweep.by_counts(rule)
    weighted = target.take(target.weight > 0.0)
    if not are_equal(weighted.weight):
        raise ValueError(
            "a function of (y, decisions) knows of no weights; pass a metric by name, or an object"
            " with of_counts(counts), as those of sglb.thresholds are"
        )
    return Sweep(
        probability[target.weight > 0.0], weighted.values > 0.0, weighted.weight
    ).by_function(rule, target.classes)


def tune_out_of_fold(
    model: ChainEstimator, rows: tuple[Any, Any, Any], metric: Any, costs: Any
) -> Tuned:
    """Return the best threshold of rows (X, y, weight), by clones that have not seen them."""
    folds = FoldModels(model, *rows)
    classes, model_classes = folds.target.classes, model.classes_
    if len(classes) != 2 or not np.array_equal(classes, model_classes):
        raise ValueError(
            f"y has the classes {classes.tolist()}, the model {model_classes.tolist()}; a threshold"
            " needs two, and the rows that the model was fitted to"
        )
    if costs is not None:
        costs = take_costs(read_costs(costs, folds.n_stated, classes), folds.row_numbers)
    probability = folds.out_of_fold(lambda clone, X: clone.predict_proba(X)[:, 1])
    target = Target.of(folds.target.values, folds.weight, classes=classes)
    return tune(probability, target, metric, costs)


def at_threshold(model: Any, tuned: Tuned) -> FixedThresholdClassifier:
    """Return scikit-learn's classifier of a fitted model with a threshold."""
    classifier = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=tuned.threshold, response_method="predict_proba"
    )
    # As scikit-learn's TunedThresholdClassifierCV calls them.
    classifier.best_threshold_, classifier.best_score_ = tuned
    return classifier
