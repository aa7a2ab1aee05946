"""The best threshold: an exact sweep against an exhaustive search, and its use by estimators."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV

from sglb import SGLBClassifier
from sglb.costs import action_costs
from sglb.metrics import expected_cost
from sglb.thresholds import (
    THRESHOLD_METRICS,
    FBeta,
    PrecisionAtRecall,
    RecallAtPrecision,
    Sweep,
    find_metric,
)

# scikit-learn's function of each metric.
TWINS = {
    "accuracy": metrics.accuracy_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "f0.5": lambda *a, **k: metrics.fbeta_score(*a, beta=0.5, zero_division=0, **k),
    "f1": lambda *a, **k: metrics.f1_score(*a, zero_division=0, **k),
    "f2": lambda *a, **k: metrics.fbeta_score(*a, beta=2.0, zero_division=0, **k),
    "mcc": metrics.matthews_corrcoef,
}


def cuts(probability):
    """Every threshold that makes a difference, from the highest on."""
    return [2.0, *np.unique(probability)[::-1]]


def sweep(probability, y, weight=None):
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    return Sweep(np.asarray(probability, dtype=float), np.asarray(y) > 0, weight)


rows = st.lists(
    st.tuples(st.integers(0, 8), st.booleans(), st.integers(1, 3)), min_size=2, max_size=25
).filter(lambda rows: len({y for _, y, _ in rows}) == 2)


@pytest.mark.parametrize("name", THRESHOLD_METRICS)
@settings(max_examples=60, deadline=None)
@given(rows=rows)
def test_the_best_threshold_is_that_of_an_exhaustive_search(name, rows):
    p, y, weight = (np.array(column) for column in zip(*rows, strict=True))
    p = p / 8
    tuned = sweep(p, y, weight).by_counts(THRESHOLD_METRICS[name])
    scores = [TWINS[name](y, p >= t, sample_weight=weight) for t in cuts(p)]
    assert tuned.score == pytest.approx(max(scores), abs=1e-12)
    reached = TWINS[name](y, p >= tuned.threshold, sample_weight=weight)
    assert reached == pytest.approx(tuned.score, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(rows=rows, level=st.sampled_from([0.2, 0.5, 0.75, 1.0]))
def test_recall_at_a_precision_and_precision_at_a_recall(rows, level):
    p, y, weight = (np.array(column) for column in zip(*rows, strict=True))
    p = p / 8
    pairs = [
        (
            metrics.precision_score(y, p >= t, sample_weight=weight, zero_division=0),
            metrics.recall_score(y, p >= t, sample_weight=weight),
        )
        for t in cuts(p)[1:]
    ]
    tuned = sweep(p, y, weight).by_counts(PrecisionAtRecall(level))
    assert tuned.score == pytest.approx(max(a for a, b in pairs if b >= level))
    allowed = [b for a, b in pairs if a >= level]
    if not allowed:
        with pytest.raises(ValueError, match=r"RecallAtPrecision.* allows no threshold"):
            sweep(p, y, weight).by_counts(RecallAtPrecision(level))
    else:
        tuned = sweep(p, y, weight).by_counts(RecallAtPrecision(level))
        assert tuned.score == pytest.approx(max(allowed))


@settings(max_examples=60, deadline=None)
@given(rows=rows, seed=st.integers(0, 1000))
def test_the_threshold_of_least_cost_is_that_of_an_exhaustive_search(rows, seed):
    p, y, weight = (np.array(column) for column in zip(*rows, strict=True))
    p, y = p / 8, y.astype(int)
    costs = np.random.default_rng(seed).normal(size=(len(y), 2, 2))
    known = costs[np.arange(len(y)), y]
    idle = np.average(known[:, 0], weights=weight)
    tuned = sweep(p, y, weight).by_savings(known[:, 0] - known[:, 1], idle)
    paid = [expected_cost(y, (p >= t) * 1, costs, weight) for t in cuts(p)]
    assert tuned.score == pytest.approx(-min(paid), abs=1e-12)
    reached = expected_cost(y, (p >= tuned.threshold) * 1, costs, weight)
    assert reached == pytest.approx(-tuned.score, abs=1e-12)


def test_a_threshold_lies_in_the_middle_and_of_equal_ones_is_the_highest():
    p, y = np.array([0.1, 0.2, 0.6, 0.9]), np.array([0, 0, 1, 1])
    assert sweep(p, y).by_counts(FBeta()) == (pytest.approx(0.4), 1.0)
    # Accuracy 3/4 at .15, .4 and .75: the highest.
    assert sweep(p, [0, 1, 0, 1]).by_counts(THRESHOLD_METRICS["accuracy"]).threshold == 0.75


def test_all_or_none_may_be_best():
    all_positive = sweep([0.3, 0.4], [1, 1]).by_counts(THRESHOLD_METRICS["accuracy"])
    assert all_positive == (0.0, 1.0)
    none = sweep([0.3, 0.4], [0, 0]).by_counts(THRESHOLD_METRICS["accuracy"])
    assert none == (0.7, 1.0)
    certain = sweep([0.3, 1.0], [0, 0]).by_counts(THRESHOLD_METRICS["accuracy"])
    assert 1.0 < certain.threshold < 1.0 + 1e-15


def test_neighbouring_floats_are_told_apart():
    low = 0.3
    high = float(np.nextafter(low, 1.0))
    tuned = sweep([low, high], [0, 1]).by_counts(FBeta())
    assert tuned == (high, 1.0)


def test_the_order_of_the_rows_and_repeated_rows_change_nothing():
    rng = np.random.default_rng(1)
    p, y, count = rng.integers(0, 50, 300) / 50, rng.integers(0, 2, 300), rng.integers(0, 4, 300)
    order, again = rng.permutation(300), np.repeat(np.arange(300), count)
    for metric in THRESHOLD_METRICS.values():
        tuned = sweep(p, y, count).by_counts(metric)
        assert sweep(p[order], y[order], count[order]).by_counts(metric) == tuned
        assert sweep(p[again], y[again]).by_counts(metric).score == pytest.approx(tuned.score)


def test_a_function_is_called_at_every_threshold_up_to_a_thousand():
    rng = np.random.default_rng(2)
    y, p = rng.integers(0, 2, 400), rng.random(400)
    tuned = sweep(p, y).by_function(metrics.f1_score, np.array([0, 1]))
    assert tuned == sweep(p, y).by_counts(FBeta())
    calls = []
    y, p = rng.integers(0, 2, 5000), rng.random(5000)
    sweep(p, y).by_function(lambda y, made: calls.append(made.sum()) or 0.0, np.array([0, 1]))
    assert len(calls) <= 1000
    assert min(calls) == 0
    assert max(calls) == 5000
    assert max(np.diff(calls)) <= 12


@pytest.mark.parametrize("metric", ["auc", "f3", 5, None])
def test_an_unknown_metric_is_rejected(metric):
    with pytest.raises(ValueError, match="metric"):
        find_metric(metric)


@pytest.mark.parametrize("kind", [FBeta, RecallAtPrecision, PrecisionAtRecall])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_parameters_of_metrics_are_checked(kind, value):
    with pytest.raises(ValueError, match="must be"):
        kind(value)


def test_a_class_is_not_a_metric():
    with pytest.raises(TypeError, match="must be an object, got the class FBeta"):
        find_metric(FBeta)


# --- with estimators ---


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    y = np.where(X[:, 0] + rng.normal(size=800) > 1.3, "fraud", "honest")
    return X[:500], y[:500], X[500:], y[500:]


@pytest.fixture(scope="module")
def model(problem):
    X, y, *_ = problem
    return SGLBClassifier(n_estimators=30, random_state=0).fit(X, y)


def test_tuned_thresholds_are_those_of_scikit_learns_classifier(problem, model):
    *_, X, y = problem
    tuned = model.tune_threshold(X, y, "mcc")
    assert isinstance(tuned, FixedThresholdClassifier)
    made = tuned.predict(X)
    # classes_ are sorted: the second, "honest", is the one above the threshold.
    p = model.predict_proba(X)[:, 1]
    assert (made == np.where(p >= tuned.best_threshold_, "honest", "fraud")).all()
    assert metrics.matthews_corrcoef(y, made) == pytest.approx(tuned.best_score_)
    scores = [metrics.matthews_corrcoef(y == "honest", p >= t) for t in cuts(p)]
    assert tuned.best_score_ == pytest.approx(max(scores))
    assert tuned.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert (model.predict(X) == np.where(p > 0.5, "honest", "fraud")).all()  # as before


def test_a_tuned_classifier_is_pickled_and_cloned_and_keeps_its_model(problem, model):
    X_train, y_train, X, y = problem
    again = clone(model).fit(X_train, y_train)
    tuned = again.tune_threshold(X, y, "f1")
    made = tuned.predict(X)
    again.set_params(n_estimators=1).fit(X_train, y_train)
    for other in (tuned, pickle.loads(pickle.dumps(tuned)), clone(tuned)):
        assert (other.predict(X) == made).all()
    by_hand = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=tuned.best_threshold_, response_method="predict_proba"
    )
    assert (by_hand.predict(X) == made).all()
    search = GridSearchCV(by_hand, {"threshold": [0.2, 0.5]}, cv=2).fit(X, y)
    assert search.best_params_["threshold"] in (0.2, 0.5)


def test_the_threshold_of_costs_is_that_of_the_matrix_for_calibrated_rows(problem, model):
    *_, X, y = problem
    costs = action_costs(1.0, 1.6)
    tuned = model.tune_threshold(X, y, "cost", costs=costs)
    paid = expected_cost(y, tuned.predict(X), costs)
    assert paid == pytest.approx(-tuned.best_score_)
    assert paid <= expected_cost(y, model.decide(X, costs), costs)


def test_calibrated_classifiers_have_thresholds_too(problem, model):
    *_, X, y = problem
    calibrated = model.calibrate(X, y)
    tuned = calibrated.tune_threshold(X, y, "balanced_accuracy")
    assert tuned.best_score_ == pytest.approx(
        model.tune_threshold(X, y, "balanced_accuracy").best_score_
    )
    assert metrics.balanced_accuracy_score(y, tuned.predict(X)) == pytest.approx(tuned.best_score_)


def test_thresholds_out_of_fold_are_not_those_of_training_rows(problem, model):
    X, y, *_ = problem
    tuned = model.cross_tune_threshold(X, y, "f1")
    training = model.tune_threshold(X, y, "f1")
    assert tuned.best_score_ < training.best_score_
    weight = np.ones(len(y))
    weight[::7] = 0.0
    costs = np.random.default_rng(3).normal(size=(len(y), 2, 2))
    kept = weight > 0.0
    by_weight = model.cross_tune_threshold(X, y, "cost", weight, costs=costs)
    by_rows = model.cross_tune_threshold(X[kept], y[kept], "cost", costs=costs[kept])
    assert by_weight.best_threshold_ == by_rows.best_threshold_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "auc"}, "metric='auc' is not known"),
        ({"metric": "cost"}, "metric='cost' and costs go together"),
        ({"costs": np.eye(2)}, "metric='cost' and costs go together"),
        ({"metric": "cost", "costs": np.eye(3)}, "costs has the shape"),
        ({"y": ["fraud"] * 300}, "y has a single class, 'fraud'"),
        ({"y": ["other"] * 300}, "other"),
        ({"y": ["fraud"]}, "300"),
        ({"sample_weight": [1.0]}, "sample_weight must have shape"),
        ({"metric": metrics.f1_score, "sample_weight": np.arange(300.0)}, "knows of no weights"),
    ],
)
def test_what_cannot_be_tuned_is_rejected(problem, model, change, message):
    *_, X, y = problem
    with pytest.raises(ValueError, match=message):
        model.tune_threshold(**({"X": X, "y": y} | change))


def test_three_classes_have_no_threshold():
    X, y = np.arange(30.0)[:, None], np.arange(30) % 3
    model = SGLBClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="a threshold is for two classes, and the model has 3"):
        model.tune_threshold(X, y)
    with pytest.raises(ValueError, match="a threshold needs two"):
        model.cross_tune_threshold(X, y)


def test_a_metric_of_counts_of_the_users_own():
    class Hits:
        def of_counts(self, counts):
            return counts.true_positive - 2.0 * counts.false_positive

    p, y = np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 1, 0, 1])
    assert sweep(p, y).by_counts(find_metric(Hits())) == (pytest.approx(0.75), 2.0)
