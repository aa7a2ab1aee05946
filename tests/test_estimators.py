"""The estimators: fit and predict."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from sglb import Langevin, NonFiniteGradient, SGLBClassifier, SGLBRegressor
from sglb.losses import Logistic, Quantile, Softmax
from small_tables import CANCER, DIABETES, FAST, IRIS, split

# ------------------------------------------------------------------------------- it learns


@pytest.mark.parametrize("sampler", ["plain", "stochastic", "langevin"])
@pytest.mark.parametrize("leaf_method", ["gradient", "newton"])
def test_a_classifier_learns_two_classes(sampler, leaf_method):
    X, X_test, y, y_test = split(CANCER)
    sample = {"subsample": 0.7} if sampler == "stochastic" else {}
    model = SGLBClassifier(**FAST, sampler=sampler, leaf_method=leaf_method, **sample).fit(X, y)
    assert model.score(X_test, y_test) > 0.9


def test_a_classifier_learns_three_classes():
    X, X_test, y, y_test = split(IRIS)
    model = SGLBClassifier(**FAST).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    assert isinstance(model.loss_, Softmax)


def test_a_regressor_learns_numbers():
    X, X_test, y, y_test = split(DIABETES)
    same = {"n_estimators": 40, "max_depth": 3, "learning_rate": 0.2, "random_state": 0}
    theirs = GradientBoostingRegressor(**same).fit(X, y).score(X_test, y_test)
    assert SGLBRegressor(**FAST).fit(X, y).score(X_test, y_test) > theirs > 0.2


@pytest.mark.parametrize("leaf_method", ["gradient", "newton"])
def test_the_unit_of_the_target_does_not_matter(leaf_method):
    X, y = DIABETES
    metres = SGLBRegressor(**FAST, leaf_method=leaf_method).fit(X, y).predict(X)
    millimetres = SGLBRegressor(**FAST, leaf_method=leaf_method).fit(X, 1024 * y).predict(X)
    np.testing.assert_allclose(millimetres, 1024 * metres, rtol=1e-9)
    tiny = SGLBRegressor(**FAST, leaf_method=leaf_method).fit(X, y / 2**20).predict(X)
    np.testing.assert_allclose(tiny, metres / 2**20, rtol=1e-9)


def test_defaults_learn_without_any_parameter():
    X, X_test, y, y_test = split(CANCER)
    assert SGLBClassifier().fit(X, y).score(X_test, y_test) > 0.93


@pytest.mark.parametrize("loss", ["sla", "savage", "logistic", Logistic()])
def test_every_loss_for_two_classes_learns(loss):
    X, X_test, y, y_test = split(CANCER)
    model = SGLBClassifier(**FAST | {"learning_rate": 0.5}, loss=loss).fit(X, y)
    assert model.score(X_test, y_test) > 0.88


@pytest.mark.parametrize("loss", ["absolute", "huber", "quantile", "cauchy", "welsch"])
def test_every_loss_for_numbers_is_lower_after_training(loss):
    X, y = DIABETES
    y = (y - y.mean()) / y.std()
    model = SGLBRegressor(**FAST, loss=loss).fit(X, y, eval_set=[(X, y)])
    curve = model.evals_result_["validation_0"]["loss"]
    assert curve[-1] < 0.95 * curve[0]


def test_a_quantile_has_its_share_of_rows_below():
    X, y = DIABETES
    model = SGLBRegressor(**FAST | {"n_estimators": 200}, loss=Quantile(level=0.9)).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.9, abs=0.08)


def test_counts_have_positive_predictions():
    X, y = DIABETES
    counts = np.round(y / 50)
    assert (SGLBRegressor(**FAST, loss="poisson").fit(X, counts).predict(X) > 0).all()


def test_missing_values_are_learned_from():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    hidden = rng.random(400) < 0.5
    X[hidden, 0] = np.nan
    model = SGLBClassifier(**FAST).fit(X, hidden)
    assert model.score(X, hidden) == 1.0


# ------------------------------------------------------------------------- what comes back


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([10.0, 20.0]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_any_type_come_back(labels):
    X, y = CANCER
    model = SGLBClassifier(**FAST).fit(X, labels[y])
    assert model.classes_.tolist() == labels.tolist()
    assert model.predict(X).dtype == labels.dtype
    assert set(model.predict(X)) <= set(labels)
    assert (model.predict(X) == labels[y]).mean() > 0.95


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_probabilities_and_scores_tell_the_same_story(n_classes):
    X, y = IRIS
    X, y = X[y < n_classes], y[y < n_classes]
    model = SGLBClassifier(**FAST).fit(X, y)
    probability, score = model.predict_proba(X), model.decision_function(X)
    assert probability.shape == (len(y), n_classes)
    assert score.shape == ((len(y),) if n_classes == 2 else (len(y), 3))
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), probability.argmax(axis=1))
    chosen = (score > 0) if n_classes == 2 else score.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), chosen)


def test_softmax_for_two_classes_has_one_score_a_row():
    X, y = CANCER
    model = SGLBClassifier(**FAST, loss="softmax").fit(X, y, eval_set=[CANCER], eval_metric="auc")
    score = model.decision_function(X)
    assert score.shape == (len(y),)
    np.testing.assert_array_equal(model.predict(X), score > 0)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-score)))


def test_stages_end_with_the_prediction():
    X, y = IRIS
    model = SGLBClassifier(**FAST, temperature=0.1, shrink_rate=0.1).fit(X, y)
    for staged, final in (
        (model.staged_predict(X), model.predict(X)),
        (model.staged_predict_proba(X), model.predict_proba(X)),
        (model.staged_decision_function(X), model.decision_function(X)),
    ):
        stages = list(staged)
        assert len(stages) == model.n_iter_ == 40
        np.testing.assert_allclose(stages[-1], final, atol=1e-6)
    regressor = SGLBRegressor(**FAST).fit(*DIABETES)
    stages = list(regressor.staged_predict(DIABETES[0]))
    np.testing.assert_allclose(stages[-1], regressor.predict(DIABETES[0]), rtol=1e-6)


@pytest.mark.parametrize(("data", "width"), [(CANCER, 2), (IRIS, 3)])
def test_no_rows_give_empty_predictions_of_the_right_shape(data, width):
    model = SGLBClassifier(**FAST).fit(*data)
    nothing = data[0][:0]
    assert model.predict(nothing).shape == (0,)
    assert model.predict_proba(nothing).shape == (0, width)
    assert model.decision_function(nothing).shape == ((0,) if width == 2 else (0, 3))
    assert model.predict_uncertainty(nothing).knowledge.shape == (0,)
    assert [stage.shape for stage in model.staged_predict(nothing)] == [(0,)] * 40
    assert SGLBRegressor(**FAST).fit(*DIABETES).predict(DIABETES[0][:0]).shape == (0,)


@pytest.mark.parametrize("loss", ["auto", "softmax", "sla"])
def test_a_single_class_is_always_predicted(loss):
    X, _ = IRIS
    model = SGLBClassifier(**FAST, loss=loss, temperature=10.0).fit(X, ["only"] * len(X))
    assert set(model.predict(X)) == {"only"}
    assert model.predict_proba(X).tolist() == [[1.0]] * len(X)
    assert model.predict_uncertainty(X).total.max() == 0.0


def test_constant_features_and_a_constant_target_work():
    model = SGLBRegressor(**FAST).fit(np.zeros((10, 3)), np.full(10, 7.0))
    np.testing.assert_allclose(model.predict(np.zeros((2, 3))), 7.0, atol=0.1)
    assert model.feature_importances_.tolist() == [0.0, 0.0, 0.0]


def test_importances_are_shares_that_find_the_feature_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    model = SGLBRegressor(**FAST, sampler="plain").fit(X, 3 * X[:, 2] + 0.1 * X[:, 0])
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() == 2
    assert model.feature_importances_[2] > 0.9


def test_fitted_attributes_say_what_auto_became():
    X, y = CANCER
    model = SGLBClassifier(n_estimators=10).fit(X, y)
    assert 0 < model.learning_rate_ <= 0.5
    assert (model.temperature_, model.shrink_rate_) == (1e-5, 1e-5)
    assert model.leaf_method_ == "newton"
    assert model.inverse_temperature_ == pytest.approx(len(y) / 1e-5)
    assert (model.best_iteration_, model.best_score_, model.evals_result_) == (None, None, {})
    plain = SGLBClassifier(n_estimators=10, sampler="plain").fit(X, y)
    assert (plain.temperature_, plain.inverse_temperature_) == (0.0, float("inf"))
    weighted = SGLBClassifier(n_estimators=10, temperature=0.5).fit(X, y, np.full(len(y), 2.0))
    assert weighted.inverse_temperature_ == pytest.approx(2 * len(y) / 0.5)


# --------------------------------------------------------------------- seeds and threads


def test_the_seed_decides_the_model():
    X, y = DIABETES

    def raw(state):
        model = SGLBRegressor(**FAST | {"random_state": state}, temperature=1.0)
        return model.fit(X, y).predict(X)

    np.testing.assert_array_equal(raw(1), raw(1))
    np.testing.assert_array_equal(raw(1), raw(np.random.RandomState(1)))
    assert (raw(1) != raw(2)).any()
    assert (raw(None) != raw(None)).any()


@pytest.mark.parametrize("n_jobs", [2, 3, 8, None, -1])
def test_the_model_is_the_same_for_any_number_of_threads(n_jobs):
    X, y = CANCER
    single = SGLBClassifier(**FAST, temperature=0.1).fit(X, y)
    other = SGLBClassifier(**FAST | {"n_jobs": n_jobs}, temperature=0.1).fit(X, y)
    np.testing.assert_array_equal(single.decision_function(X), other.decision_function(X))


# ----------------------------------------------------------------------- weights and classes


def test_a_row_of_weight_zero_is_not_there():
    X, y = DIABETES
    weight = np.ones(len(y))
    weight[100:] = 0.0
    with_zeros = SGLBRegressor(**FAST).fit(X, y, sample_weight=weight)
    without = SGLBRegressor(**FAST).fit(X[:100], y[:100], sample_weight=weight[:100])
    np.testing.assert_array_equal(with_zeros.predict(X), without.predict(X))


@pytest.mark.parametrize("leaf_method", ["gradient", "newton"])
def test_a_row_of_weight_two_is_a_row_that_is_there_twice(leaf_method):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (200, 3)).astype(float)  # few values: the same bins either way
    y = np.sin(X[:, 0] / 5) + X[:, 1] / 20 + 0.3 * rng.normal(size=200)
    weight = rng.integers(0, 4, 200)
    for estimator, target in ((SGLBRegressor, y), (SGLBClassifier, y > 0.9)):
        model = estimator(**FAST, sampler="plain", leaf_method=leaf_method)
        weighted = clone(model).fit(X, target, sample_weight=weight).predict_raw(X)
        repeated = clone(model).fit(X.repeat(weight, axis=0), target.repeat(weight)).predict_raw(X)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-12, atol=1e-12)


def test_heavy_rows_pull_the_prediction():
    X, y = np.zeros((10, 1)), np.arange(10) % 2.0
    model = SGLBRegressor(**FAST, sampler="plain").fit(X, y, sample_weight=1 + 8 * y)
    np.testing.assert_allclose(model.predict(X[:1]), 0.9)


def test_class_weights_are_row_weights_with_a_mean_of_one():
    X, y = CANCER
    weight = np.where(y == 1, 5.0, 2.0)
    weight /= weight.mean()
    by_class = SGLBClassifier(**FAST, class_weight={0: 2.0, 1: 5.0}).fit(X, y)
    by_row = SGLBClassifier(**FAST).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(by_class.decision_function(X), by_row.decision_function(X))
    balanced = SGLBClassifier(**FAST, class_weight="balanced").fit(X, y)
    share = np.bincount(y) * 2 / len(y)
    again = SGLBClassifier(**FAST).fit(X, y, sample_weight=1 / share[y])
    np.testing.assert_allclose(balanced.decision_function(X), again.decision_function(X), rtol=1e-6)


def test_class_weights_multiply_row_weights():
    X, y = CANCER
    rows = 1.0 + np.arange(len(y)) % 3
    both = SGLBClassifier(**FAST, class_weight={0: 2.0, 1: 1.0}).fit(X, y, rows)
    share = np.where(y == 0, 2.0, 1.0)
    single = SGLBClassifier(**FAST).fit(X, y, rows * share / np.average(share, weights=rows))
    np.testing.assert_array_equal(both.decision_function(X), single.decision_function(X))


def test_negative_class_weights_are_refused():
    with pytest.raises(ValueError, match="class_weight must be at least 0; row"):
        SGLBClassifier(**FAST, class_weight={0: -1.0, 1: 1.0}).fit(*CANCER)


# --------------------------------------------------------------------------------- losses


class UsersLogistic:
    """The logistic loss as a user would write it."""

    convex = True

    def loss(self, y, raw):
        return np.logaddexp(0, (1 - 2 * y) * raw)

    def gradient(self, y, raw):
        return 1 / (1 + np.exp(-raw)) - y

    def hessian(self, y, raw):
        p = 1 / (1 + np.exp(-raw))
        return p * (1 - p)

    def init(self, y, weight):
        return np.log(y.mean() / (1 - y.mean()))


def test_a_users_loss_walks_the_same_path_as_the_built_in_one():
    X, y = CANCER
    user_model = SGLBClassifier(**FAST, loss=UsersLogistic(), sampler="plain").fit(X, y)
    built_in = SGLBClassifier(**FAST, sampler="plain").fit(X, y)
    assert user_model.leaf_method_ == "newton"
    difference = np.abs(user_model.predict_proba(X) - built_in.predict_proba(X))
    assert np.median(difference) < 1e-3


def test_a_gradient_that_is_not_finite_is_an_error_with_row_and_step():
    class Broken(UsersLogistic):
        calls = 0

        def gradient(self, y, raw):
            gradient = super().gradient(y, raw)
            # On all rows after the first tree, not on trial.
            self.calls += len(raw) == len(CANCER[1]) and len(np.unique(raw)) > 2
            if self.calls == 2:
                gradient[17] = np.nan
            return gradient

    with pytest.raises(NonFiniteGradient, match=r"row 17, output 0 at step 2") as error:
        SGLBClassifier(**FAST, loss=Broken(), leaf_method="gradient").fit(*CANCER)
    assert (error.value.row, error.value.output, error.value.step) == (17, 0, 2)


@pytest.mark.parametrize(
    ("estimator", "data", "message"),
    [
        (SGLBClassifier(loss="sla"), IRIS, "Only binary classification is supported.*'sla'"),
        (SGLBClassifier(loss="savage"), IRIS, "Only binary classification is supported"),
        (SGLBClassifier(loss=Logistic()), IRIS, "use loss='softmax'"),
        (SGLBClassifier(loss=Softmax(4)), IRIS, "4 outputs, but y has 3 classes"),
        (SGLBClassifier(loss="squared"), IRIS, "is for regression; use SGLBRegressor"),
        (SGLBRegressor(loss="logistic"), DIABETES, "is for classification; use SGLBClassifier"),
        (SGLBRegressor(loss="mse"), DIABETES, "unknown loss 'mse'"),
        (SGLBRegressor(loss="poisson"), (DIABETES[0], -DIABETES[1]), "poisson.*row 0"),
        (SGLBRegressor(loss="squared", learning_rate=2.5), DIABETES, "diverge"),
        (SGLBRegressor(max_depth=0), DIABETES, "max_depth=0 is not allowed"),
    ],
)
def test_what_cannot_work_is_refused_before_training(estimator, data, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*data)


def test_logistic_means_softmax_with_more_than_two_classes():
    assert isinstance(SGLBClassifier(**FAST, loss="logistic").fit(*IRIS).loss_, Softmax)


def test_a_loss_for_two_classes_says_so_in_its_tags():
    def multi_class(loss):
        return SGLBClassifier(loss=loss).__sklearn_tags__().classifier_tags.multi_class

    assert multi_class("auto")
    assert multi_class("logistic")
    assert multi_class(Softmax(3))
    assert not multi_class("sla")
    assert not multi_class("savage")
    assert not multi_class(UsersLogistic())


@pytest.mark.parametrize(
    "labels",
    [
        np.array([True, True, True, True]),
        np.array([False, True, False, True]),
        np.array([-128, 127, -128, 127], dtype=np.int8),
        np.array([-(2**63), 2**63 - 1] * 2),
        np.array([2**64 - 1, 2**64 - 3] * 2, dtype=np.uint64),
        np.array([70_000, 5, 5, 70_000]),
        np.array([7, 3, 7, 9], dtype=np.uint8),
    ],
    ids=lambda labels: f"{labels.dtype}-{labels[0]}",
)
def test_classes_of_whole_numbers_are_their_sorted_values(labels):
    X = np.arange(4.0)[:, None]
    model = SGLBClassifier(n_estimators=2, random_state=0).fit(X, labels)
    assert model.classes_.dtype == labels.dtype
    assert np.array_equal(model.classes_, np.unique(labels))
    assert set(model.predict(X)) <= set(labels.tolist())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGLBRegressor(loss="softmax").fit(*CANCER), "'softmax' is for classification"),
        (lambda: SGLBClassifier(sampler=Langevin).fit(*CANCER), "sampler=.* is not allowed"),
        (
            lambda: SGLBClassifier().fit(CANCER[0][:4], np.array(["a", 1, "b", 2], object)),
            "y mixes labels of types",
        ),
        (lambda: SGLBClassifier().fit(*CANCER, callbacks=5), "callbacks: 5 is not a callback"),
        (lambda: SGLBRegressor().fit(CANCER[0], CANCER[1] * 1e300), "or y is too large"),
        (lambda: SGLBRegressor(loss=Nowhere()).fit(*CANCER), "is .nan. in row 0, at y"),
        (lambda: SGLBClassifier().fit(pd.Series(CANCER[1]), CANCER[1]), "Expected a 2-dimensional"),
        (lambda: SGLBClassifier().fit(pl.Series(CANCER[1]), CANCER[1]), "Expected 2D array"),
    ],
)
def test_errors_name_the_culprit(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


class Nowhere:
    """A loss that has no value anywhere."""

    def loss(self, y, raw):
        return np.full_like(raw, np.nan)

    gradient = loss
