"""Posteriors of other libraries' models: centred at them, from their leaves, and clear about what
they need.
"""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import sglb
from sglb.peers.source import LeafNumbers

NUMBERS = load_diabetes(return_X_y=True)
TWO = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)
NAMES = np.array(["benign", "malignant"])
SMALL = {"n_estimators": 20, "random_state": 0}
SCIKIT = {
    "forest, two": lambda: (RandomForestClassifier(**SMALL).fit(*TWO), TWO),
    "forest, three": lambda: (ExtraTreesClassifier(**SMALL).fit(*THREE), THREE),
    "forest, numbers": lambda: (RandomForestRegressor(**SMALL).fit(*NUMBERS), NUMBERS),
    "boosting, two": lambda: (GradientBoostingClassifier(**SMALL).fit(*TWO), TWO),
    "boosting, three": lambda: (GradientBoostingClassifier(**SMALL).fit(*THREE), THREE),
    "boosting, numbers": lambda: (GradientBoostingRegressor(**SMALL).fit(*NUMBERS), NUMBERS),
}


def lightgbm(kind, data):
    library = pytest.importorskip("lightgbm")
    if kind == "estimator":
        model = library.LGBMRegressor if data is NUMBERS else library.LGBMClassifier
        return model(n_estimators=20, verbose=-1).fit(*data)
    options = {
        id(NUMBERS): {"objective": "regression"},
        id(TWO): {"objective": "binary", "sigmoid": 2.0},
        id(THREE): {"objective": "multiclass", "num_class": 3},
    }
    return library.train(options[id(data)] | {"verbose": -1}, library.Dataset(*data), 20)


def xgboost(kind, data):
    library = pytest.importorskip("xgboost")
    if kind == "estimator":
        model = library.XGBRegressor if data is NUMBERS else library.XGBClassifier
        return model(n_estimators=20).fit(*data)
    options = {
        id(NUMBERS): {"objective": "reg:squarederror"},
        id(TWO): {"objective": "binary:logistic"},
        id(THREE): {"objective": "multi:softprob", "num_class": 3},
    }
    return library.train(options[id(data)], library.DMatrix(*data), 20)


def catboost(kind, data):
    library = pytest.importorskip("catboost")
    options = {"iterations": 20, "verbose": 0, "allow_writing_files": False}
    if kind == "estimator":
        model = library.CatBoostRegressor if data is NUMBERS else library.CatBoostClassifier
        return model(**options).fit(*data)
    losses = {id(NUMBERS): "RMSE", id(TWO): "Logloss", id(THREE): "MultiClass"}
    return library.CatBoost(options | {"loss_function": losses[id(data)]}).fit(*data)


def own_predictions(model, X):
    """What the library itself predicts: numbers, or the probabilities of all classes."""
    package = type(model).__module__.split(".")[0]
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    if package == "xgboost" and type(model).__name__ == "Booster":
        X = sys.modules["xgboost"].DMatrix(X)
    probability = package == "catboost" and len(model.classes_)
    prediction = np.asarray(
        model.predict(X, prediction_type="Probability") if probability else model.predict(X)
    )
    is_event = type(model).__name__ == "Booster" and prediction.ndim == 1 and prediction.max() <= 1
    return np.column_stack([1 - prediction, prediction]) if is_event else prediction


def check(model, data):
    X, y = data
    options = {"temperature": 3000.0} if data is NUMBERS else {}
    post = sglb.posterior_of(model, X, y, n_draws=20, prior_variance=1e-9, **options)
    # A prior without variance leaves the model as it is.
    np.testing.assert_allclose(post.mean(X), own_predictions(model, X), rtol=1e-3, atol=1e-3)
    wide = sglb.posterior_of(model, X, y, n_draws=20, prior_variance=1.0, **options)
    assert (wide.std(X) > 0.0).all()
    assert wide.uncertainty(X).knowledge.mean() > 10.0 * post.uncertainty(X).knowledge.mean()
    raw = wide.predict_raw(X)
    np.testing.assert_allclose(raw[:10] + raw[10:], 2.0 * raw.mean(axis=0) + 0.0 * raw[:10])


@pytest.mark.parametrize("name", SCIKIT)
def test_draws_are_around_a_model_of_scikit_learn(name):
    model, data = SCIKIT[name]()
    if "forest" in name and data is not NUMBERS:  # probabilities are half a vote from 0 and 1
        X, y = data
        post = sglb.posterior_of(model, X, y, n_draws=20, prior_variance=1e-9)
        of_model = model.predict_proba(X)
        np.testing.assert_allclose(post.mean(X), of_model, atol=len(model.classes_) / 40)
        assert (post.mean(X).argmax(axis=1) == of_model.argmax(axis=1)).all()
        return
    check(model, data)


@pytest.mark.parametrize("data", [NUMBERS, TWO, THREE], ids=["numbers", "two", "three"])
@pytest.mark.parametrize("kind", ["estimator", "booster"])
@pytest.mark.parametrize("make", [lightgbm, xgboost, catboost])
def test_draws_are_around_a_model_of_a_library(make, kind, data):
    check(make(kind, data), data)


@pytest.mark.parametrize("data", [NUMBERS, TWO], ids=["numbers", "two"])
@pytest.mark.parametrize("make", [lightgbm, xgboost, catboost, None])
def test_no_rows_have_no_predictions_in_every_library(make, data):
    if make is None:
        name = "forest, numbers" if data is NUMBERS else "boosting, two"
        model = SCIKIT[name]()[0]
    else:
        model = make("estimator", data)
    post = sglb.posterior_of(model, *data, n_draws=4, temperature=1.0)
    classes = () if data is NUMBERS else (2,)
    none = data[0][:0]
    assert post.predict(none).shape == (4, 0, *classes)
    assert post.interval(none).shape == (0, *classes, 2)
    assert post.uncertainty(none).knowledge.shape == (0,)
    with pytest.raises(ValueError, match="X has no rows"):
        sglb.posterior_of(model, none, data[1][:0])


@pytest.mark.parametrize("kind", [RandomForestClassifier, GradientBoostingRegressor])
def test_a_model_that_is_not_fitted_is_called_so(kind):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        sglb.posterior_of(kind(), *TWO)


def test_an_estimator_of_lightgbm_that_is_not_fitted_is_called_so():
    library = pytest.importorskip("lightgbm")
    with pytest.raises(NotFittedError, match="Need to call fit"):
        sglb.posterior_of(library.LGBMClassifier(), *TWO)


def test_labels_are_those_of_the_model():
    X, y = TWO
    model = GradientBoostingClassifier(**SMALL).fit(X, NAMES[y])
    post = sglb.posterior_of(model, X, NAMES[y], n_draws=4)
    assert post.predict(X).shape == (4, 569, 2)
    assert post.mean(X)[y == 1, 1].mean() > 0.9
    with pytest.raises(ValueError, match="labels that do not occur"):
        sglb.posterior_of(model, X, y)


def test_leaves_that_no_training_row_fell_into_are_one_more_leaf():
    numbers = LeafNumbers([[3, 0], [7, 0], [3, 5]])
    assert numbers.n_leaves.tolist() == [3, 3]
    rows = numbers.partitions([[7, 5], [4, 0], [99, -1]])
    assert rows.leaves(0, 3).tolist() == [[1, 2, 2], [1, 0, 2]]
    with pytest.raises(ValueError, match="the model has 1 trees, and had 2"):
        numbers.partitions([[7]])


def test_rows_unlike_any_others_are_less_known():
    model = RandomForestClassifier(min_samples_leaf=5, **SMALL).fit(*TWO)
    post = sglb.posterior_of(model, *TWO, prior_variance=0.3)
    rng = np.random.default_rng(0)
    strange = np.column_stack([rng.permutation(column) for column in TWO[0].T])
    known, unknown = (post.uncertainty(X).knowledge.mean() for X in (TWO[0], strange))
    assert unknown > 1.5 * known


def test_the_temperature_of_numbers_comes_from_calibration_rows():
    X, y = NUMBERS
    model = GradientBoostingRegressor(**SMALL).fit(X[:300], y[:300])
    rest = {"X_calibration": X[300:], "y_calibration": y[300:]}
    post = sglb.posterior_of(model, X[:300], y[:300], n_draws=10, **rest)
    variance = np.mean((y[300:] - model.predict(X[300:])) ** 2)
    assert post.plan.temperature == pytest.approx(variance)
    u = post.uncertainty(X)
    np.testing.assert_allclose(u.data, variance)
    np.testing.assert_allclose(u.total, u.knowledge + variance)
    with pytest.raises(ValueError, match="pass X_calibration and y_calibration; or state"):
        sglb.posterior_of(model, X[:300], y[:300])


def test_quantiles_are_drawn_and_have_knowledge_alone():
    X, y = NUMBERS
    model = GradientBoostingRegressor(loss="quantile", alpha=0.8, **SMALL).fit(X, y)
    u = sglb.posterior_of(model, X, y, n_draws=10, temperature=20.0).uncertainty(X)
    assert (u.knowledge > 0.0).all()
    assert u.data is None


def test_weights_are_repetitions_of_rows():
    X, y = TWO
    model = GradientBoostingClassifier(**SMALL).fit(X, y)
    twice = sglb.posterior_of(model, np.vstack([X, X]), np.append(y, y), prior_variance=0.3)
    weighted = sglb.posterior_of(model, X, y, np.full(len(y), 2.0), prior_variance=0.3)
    np.testing.assert_allclose(twice.std(X), weighted.std(X), rtol=1e-3)


def test_the_same_seed_is_the_same_draws_for_any_number_of_threads():
    model = GradientBoostingClassifier(**SMALL).fit(*TWO)
    draws = [
        sglb.posterior_of(model, *TWO, n_draws=4, random_state=seed, n_jobs=jobs).predict(TWO[0])
        for seed, jobs in ((1, 1), (1, 3), (2, 1))
    ]
    assert (draws[0] == draws[1]).all()
    assert (draws[0] != draws[2]).any()


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (LogisticRegression, {}, TypeError, "not an ensemble of trees with a method `apply`"),
        (HistGradientBoostingClassifier, {}, TypeError, "GradientBoosting has `apply`"),
        (lambda: sglb.SGLBClassifier(n_estimators=5), {}, TypeError, r"use model.posterior\(X, y"),
        (
            lambda: GradientBoostingClassifier(loss="exponential", n_estimators=3),
            {},
            ValueError,
            "no loss of this library goes with the objective 'exponential'; state one",
        ),
        (
            lambda: GradientBoostingClassifier(n_estimators=3),
            {"loss": "squared"},
            ValueError,
            "loss 'squared' is for numbers, and the model is not",
        ),
        (
            lambda: GradientBoostingClassifier(n_estimators=3),
            {"loss": "softmax"},
            ValueError,
            "the model has 1 raw scores for a row, and loss 'softmax' 2",
        ),
        (
            lambda: GradientBoostingClassifier(n_estimators=3),
            {"n_draws": 3},
            ValueError,
            "n_draws=3 is not allowed",
        ),
    ],
)
def test_what_has_no_posterior_says_why(make, options, error, message):
    X, y = TWO[0][:, :3], TWO[1]
    model = make().fit(X, y)
    with pytest.raises(error, match=message):
        sglb.posterior_of(model, X, y, **options)


def test_objects_of_nobody_are_rejected():
    with pytest.raises(
        TypeError, match="posterior_of does not support dict; supported are models of"
    ):
        sglb.posterior_of({}, *TWO)


def test_the_rows_of_y_are_those_of_x():
    model = GradientBoostingClassifier(**SMALL).fit(*TWO)
    with pytest.raises(ValueError, match=r"X has 569 rows but y has 5"):
        sglb.posterior_of(model, TWO[0], TWO[1][:5])
    assert "draws" in str(sglb.posterior_of(model, *TWO, n_draws=20).summary())


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_libraries_are_not_imported_for_models_of_others(library, tmp_path):
    script = (
        "import sys, numpy as np, sglb\n"
        "from sklearn.ensemble import RandomForestClassifier as F\n"
        "X = np.random.default_rng(0).normal(size=(60, 2)); y = X[:, 0] > 0\n"
        "p = sglb.posterior_of(F(5).fit(X, y), X, y, n_draws=2)\n"
        f"print(p.n_draws, {library!r} in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.split() == ["2", "False"]
