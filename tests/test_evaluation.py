"""Evaluation sets and metrics, as `fit` takes them."""

import numpy as np
import pytest

from sglb import SGLBClassifier
from small_tables import CANCER, FAST, split


def test_x_val_is_one_more_evaluation_set():
    X, X_val, y, y_val = split(CANCER)
    first = SGLBClassifier(**FAST).fit(X, y, X_val=X_val, y_val=y_val, eval_metric="auc")
    second = SGLBClassifier(**FAST).fit(X, y, eval_set=[(X_val, y_val)], eval_metric="auc")
    assert first.evals_result_ == second.evals_result_
    both = SGLBClassifier(**FAST).fit(X, y, eval_set=[(X, y)], X_val=X_val, y_val=y_val)
    assert list(both.evals_result_) == ["validation_0", "validation_1"]


def test_one_evaluation_set_needs_no_list():
    X, X_val, y, y_val = split(CANCER)
    listed = SGLBClassifier(**FAST).fit(X, y, eval_set=[(X_val, y_val, np.ones(len(y_val)))])
    bare = SGLBClassifier(**FAST).fit(X, y, eval_set=(X_val, y_val, np.ones(len(y_val))))
    assert bare.evals_result_ == listed.evals_result_
    several = SGLBClassifier(**FAST).fit(X, y, eval_set=((X, y), (X_val, y_val)))
    assert list(several.evals_result_) == ["validation_0", "validation_1"]
    with pytest.raises(ValueError, match=r"eval_set\[0\] must be \(X, y\)"):
        SGLBClassifier(**FAST).fit(X, y, eval_set=(X_val,))


def test_evaluation_labels_keep_their_meaning():
    X, y = CANCER
    labels = np.array(["no", "yes"])[y]
    only_yes = y == 1
    model = SGLBClassifier(**FAST).fit(
        X, labels, eval_set=[(X[only_yes], labels[only_yes])], eval_metric="error"
    )
    expected = np.mean(model.predict(X[only_yes]) != "yes")
    assert model.evals_result_["validation_0"]["error"][-1] == pytest.approx(expected)


def test_a_function_is_a_metric_for_early_stopping():
    def hits(y, prediction):
        return np.mean(y == (prediction > 0.5))

    hits.greater_is_better = True
    X, X_val, y, y_val = split(CANCER)
    model = SGLBClassifier(**FAST, early_stopping_rounds=5).fit(
        X, y, eval_set=[(X_val, y_val)], eval_metric=[hits, "auc"]
    )
    assert model.best_score_ == max(model.evals_result_["validation_0"]["hits"])
    assert model.best_score_ == model.score(X_val, y_val)


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        (
            {"early_stopping_rounds": 5},
            {},
            r"early_stopping_rounds=5 needs an evaluation set: pass eval_set",
        ),
        ({}, {"X_val": CANCER[0]}, "X_val and y_val must be passed together"),
        ({}, {"eval_set": [CANCER[0]]}, r"eval_set\[0\] must be \(X, y\)"),
        (
            {},
            {"eval_set": [(CANCER[0], CANCER[1] + 1)]},
            r"labels that do not occur in the training rows: \[2\]",
        ),
        ({}, {"eval_set": [(CANCER[0][:0], CANCER[1][:0])]}, r"eval_set\[0\]: X has no rows"),
        ({}, {"eval_set": [(CANCER[0][:, :3], CANCER[1])]}, r"eval_set\[0\]: X has 3 features"),
        ({}, {"eval_set": [CANCER, (CANCER[0], CANCER[1][:9])]}, r"eval_set\[1\]: X has 569 rows"),
        ({}, {"eval_set": [CANCER], "eval_metric": "rmse"}, "no meaning for a binary task"),
        ({}, {"eval_set": [CANCER], "eval_metric": []}, "at least one metric"),
        ({}, {"eval_set": [CANCER], "eval_metric": 5}, "eval_metric=5 is not a metric"),
        (
            {},
            {"eval_set": [CANCER], "eval_metric": [lambda y, p: 0.0, lambda y, p: 1.0]},
            "2 metrics with the name '<lambda>'",
        ),
        (
            {"early_stopping_rounds": 5},
            {"eval_set": [(CANCER[0], np.zeros(569, dtype=int))], "eval_metric": "auc"},
            "auc on validation_0 was NaN at each of 5 steps",
        ),
        (
            {},
            {"eval_set": [(*CANCER, -np.ones(len(CANCER[1])))]},
            "weight of validation_0 must be at least 0; row 0",
        ),
    ],
)
def test_evaluation_that_cannot_work_is_rejected(parameters, arguments, message):
    with pytest.raises(ValueError, match=message):
        SGLBClassifier(**FAST, **parameters).fit(*CANCER, **arguments)
