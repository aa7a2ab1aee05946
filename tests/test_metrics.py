"""Metrics: values against scikit-learn's, directions, and what is refused."""

import numpy as np
import pytest
from sklearn import metrics as oracle

from sglb.losses import get_loss
from sglb.metrics import METRICS, Metric, get_metric
from sglb.target import Target

rng = np.random.default_rng(0)
N = 200
WEIGHT = rng.integers(0, 4, N).astype(float)
BINARY = rng.integers(0, 2, N).astype(float)
RAW = rng.normal(size=N).round(1)  # rounded, so that there are ties
CLASSES = rng.integers(0, 3, N).astype(float)
RAWS = rng.normal(size=(N, 3))
NUMBERS = rng.normal(size=N)
LOGISTIC, SOFTMAX, SQUARED = (
    get_loss("logistic"),
    get_loss("softmax", n_classes=3),
    get_loss("squared"),
)
PROBABILITY = LOGISTIC.link(RAW)
SUMS = SOFTMAX.link(RAWS)


def binary(name, weight):
    return METRICS[name](Target.of(BINARY, weight), RAW, LOGISTIC)


def several(name, weight):
    return METRICS[name](Target.of(CLASSES, weight), RAWS, SOFTMAX)


def regression(name, weight):
    return METRICS[name](Target.of(NUMBERS, weight), RAW, SQUARED)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(
    ("ours", "name", "theirs"),
    [
        (binary, "logloss", lambda w: oracle.log_loss(BINARY, PROBABILITY, sample_weight=w)),
        (binary, "loss", lambda w: oracle.log_loss(BINARY, PROBABILITY, sample_weight=w)),
        (binary, "auc", lambda w: oracle.roc_auc_score(BINARY, RAW, sample_weight=w)),
        (binary, "brier", lambda w: oracle.brier_score_loss(BINARY, PROBABILITY, sample_weight=w)),
        (binary, "error", lambda w: oracle.zero_one_loss(BINARY, RAW > 0, sample_weight=w)),
        (binary, "accuracy", lambda w: oracle.accuracy_score(BINARY, RAW > 0, sample_weight=w)),
        (several, "logloss", lambda w: oracle.log_loss(CLASSES, SUMS, sample_weight=w)),
        (several, "loss", lambda w: oracle.log_loss(CLASSES, SUMS, sample_weight=w)),
        (
            several,
            "error",
            lambda w: oracle.zero_one_loss(CLASSES, RAWS.argmax(axis=1), sample_weight=w),
        ),
        (
            regression,
            "rmse",
            lambda w: oracle.root_mean_squared_error(NUMBERS, RAW, sample_weight=w),
        ),
        (regression, "mae", lambda w: oracle.mean_absolute_error(NUMBERS, RAW, sample_weight=w)),
        (regression, "r2", lambda w: oracle.r2_score(NUMBERS, RAW, sample_weight=w)),
        (
            regression,
            "loss",
            lambda w: oracle.mean_squared_error(NUMBERS, RAW, sample_weight=w) / 2,
        ),
    ],
)
def test_a_metric_has_the_value_that_scikit_learn_gives(ours, name, theirs, weight):
    assert ours(name, weight) == pytest.approx(theirs(weight), rel=1e-12)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_knows_which_of_two_values_is_better(metric):
    low, high = 0.2, 0.4
    assert metric.better(high, than=low) == metric.greater_is_better
    assert metric.better(low, than=high) != metric.greater_is_better
    assert not metric.better(low, than=low)
    assert metric.better(low, than=float("nan"))
    assert not metric.better(float("nan"), than=low)


def test_two_outputs_for_two_classes_have_the_area_under_the_curve_of_their_difference():
    raws = np.column_stack([np.zeros(N), RAW])
    value = METRICS["auc"](Target.of(BINARY), raws, get_loss("softmax", n_classes=2))
    assert value == pytest.approx(binary("auc", None), rel=1e-12)


def test_the_area_under_the_curve_of_one_class_is_not_a_number():
    assert np.isnan(METRICS["auc"](Target.of(np.zeros(N)), RAW, LOGISTIC))


def test_a_function_of_target_and_prediction_is_a_metric():
    def worst(y, prediction):
        return np.abs(y - prediction).max()

    metric = get_metric(worst, "binary")
    assert (metric.name, metric.greater_is_better) == ("worst", False)
    assert metric(Target.of(BINARY), RAW, LOGISTIC) == np.abs(BINARY - PROBABILITY).max()


def test_a_function_may_say_that_greater_is_better():
    def hits(y, prediction):
        return np.mean(y == (prediction > 0.5))

    hits.greater_is_better = True
    assert get_metric(hits).greater_is_better


def test_a_metric_object_passes_through():
    user_metric = Metric("own", True, lambda target, raw, loss: 1.0)
    assert get_metric(user_metric, "regression") is user_metric


@pytest.mark.parametrize("wrong", ["gini", 3, None])
def test_what_is_not_a_metric_is_rejected_with_the_names_that_are(wrong):
    with pytest.raises(ValueError, match=r"eval_metric=.*logloss"):
        get_metric(wrong)


@pytest.mark.parametrize(
    ("name", "task"), [("auc", "regression"), ("rmse", "binary"), ("auc", "multiclass")]
)
def test_a_metric_without_meaning_for_the_task_is_rejected(name, task):
    with pytest.raises(ValueError, match=f"eval_metric='{name}' has no meaning for a {task} task"):
        get_metric(name, task)
