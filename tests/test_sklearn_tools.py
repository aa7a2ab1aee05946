"""The estimators among scikit-learn's tools: tables, clones, pipelines, searches."""

import copy
import inspect

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sglb import SGLBClassifier, SGLBRegressor
from small_tables import CANCER, DIABETES, FAST, IRIS, split


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_tables_are_read_by_name_and_reordered_columns_are_refused(table):
    X, y = IRIS
    names = ["a", "b", "c", "d"]
    frame = table(dict(zip(names, X.T, strict=True)))
    model = SGLBClassifier(**FAST).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(frame), SGLBClassifier(**FAST).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="Column 0 is 'b'; in fit it was 'a'"):
        model.predict(frame[["b", "a", "c", "d"]])


def test_predicting_before_fitting_is_an_error():
    for method in ("predict", "predict_proba", "decision_function", "predict_uncertainty"):
        with pytest.raises(NotFittedError):
            getattr(SGLBClassifier(), method)(IRIS[0])
    with pytest.raises(NotFittedError):
        next(SGLBClassifier().staged_predict(IRIS[0]))


def test_clones_are_not_fitted_and_have_the_same_parameters():
    model = SGLBClassifier(**FAST, temperature=0.5).fit(*IRIS)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "classes_")


def test_copies_predict_the_same():
    model = SGLBClassifier(**FAST).fit(*IRIS)
    np.testing.assert_array_equal(copy.deepcopy(model).predict(IRIS[0]), model.predict(IRIS[0]))


def test_a_pipeline_scales_the_validation_rows_too():
    X, X_val, y, y_val = split(CANCER)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SGLBClassifier(**FAST, early_stopping_rounds=5).set_fit_request(
            X_val=True, y_val=True
        )
        pipeline = Pipeline(
            [("scale", StandardScaler()), ("model", model)], transform_input=["X_val"]
        )
        pipeline.fit(X, y, X_val=X_val, y_val=y_val)
    fitted = pipeline["model"]
    scaler = pipeline["scale"]
    alone = clone(model).fit(scaler.transform(X), y, eval_set=[(scaler.transform(X_val), y_val)])
    assert fitted.evals_result_ == alone.evals_result_
    assert pipeline.score(X_val, y_val) > 0.9


def test_grid_search_finds_its_way():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SGLBClassifier(**FAST)),
        {"sglbclassifier__max_depth": [1, 3], "sglbclassifier__temperature": [1e-5, 1e-3]},
        cv=3,
    ).fit(*IRIS)
    assert search.best_score_ > 0.9


def test_cross_validation_works_in_processes():
    scores = cross_val_score(SGLBRegressor(**FAST), *DIABETES, cv=3, n_jobs=2)
    assert scores.mean() > 0.3


def test_calibration_works():
    X, X_test, y, y_test = split(CANCER)
    model = CalibratedClassifierCV(SGLBClassifier(**FAST, loss="sla"), cv=3).fit(X, y)
    assert model.score(X_test, y_test) > 0.9


def test_joblib_stores_a_fitted_model(tmp_path):
    model = SGLBClassifier(**FAST).fit(*IRIS)
    joblib.dump(model, tmp_path / "m.joblib")
    again = joblib.load(tmp_path / "m.joblib")
    np.testing.assert_array_equal(again.predict_proba(IRIS[0]), model.predict_proba(IRIS[0]))


@pytest.mark.parametrize("kind", [SGLBClassifier, SGLBRegressor])
def test_an_unknown_parameter_is_rejected_with_the_nearest_name(kind):
    with pytest.raises(
        TypeError, match=rf"^{kind.__name__} has no parameter 'n_estimator'; did you"
    ):
        kind(n_estimator=5)
    with pytest.raises(TypeError, match=r"has no parameter 'zzz'; it has loss, .*n_estimators, .*"):
        kind(zzz=1)
    with pytest.raises(TypeError, match=rf"{kind.__name__}.__init__\(\) takes 1 positional"):
        kind(100)


def test_a_subclass_may_have_parameters_of_its_own():
    class Slow(SGLBRegressor):
        def __init__(self, patience=3, *, n_estimators=10, random_state=0):
            super().__init__(n_estimators=n_estimators, random_state=random_state)
            self.patience = patience

    class Any(SGLBRegressor):
        def __init__(self, **parameters):
            super().__init__(**parameters)

    model = Slow(5, n_estimators=7)
    assert clone(model).get_params() == {"n_estimators": 7, "patience": 5, "random_state": 0}
    with pytest.raises(TypeError, match="Slow has no parameter 'patient'; did you mean 'patience'"):
        Slow(patient=5)
    assert Any(n_estimators=3).n_estimators == 3


def test_the_signature_shows_every_parameter_with_its_default():
    for kind in (SGLBClassifier, SGLBRegressor):
        shown = inspect.signature(kind).parameters
        assert {name: single.default for name, single in shown.items()} == kind().get_params()
