"""Several quantiles in one model: sorted, and as good as a model of each level."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss

from sglb import SGLBRegressor, load, losses
from sglb.target import Target

LEVELS = [0.1, 0.5, 0.9]
FAST = {"loss": "quantile", "n_estimators": 40, "max_depth": 3, "random_state": 0, "n_jobs": 1}


def noisy_rows(n=1500, seed=0):
    """Noise whose spread depends on the row."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


X, Y = noisy_rows()


def several(**parameters):
    return SGLBRegressor(**FAST | {"quantile": LEVELS} | parameters)


def is_sorted(predictions):
    return bool((np.diff(predictions, axis=1) >= 0.0).all())


def test_predictions_are_a_column_per_level_that_never_cross():
    model = several(learning_rate=1.0).fit(X, Y)  # a rate so high that raw scores do cross
    assert model.predict(X).shape == (len(X), 3)
    assert not is_sorted(model.predict_raw(X))
    assert is_sorted(model.predict(X))
    assert is_sorted(model.predict(10.0 * noisy_rows(seed=1)[0]))
    np.testing.assert_array_equal(model.predict(X), np.sort(model.predict_raw(X), axis=1))


def test_sorting_never_raises_the_pinball_loss():
    raw = np.random.default_rng(1).normal(size=(len(Y), 3))

    def pinball(predictions):
        columns = zip(LEVELS, predictions.T, strict=True)
        return sum(mean_pinball_loss(Y, column, alpha=level) for level, column in columns)

    assert pinball(np.sort(raw, axis=1)) < pinball(raw)


def test_each_level_has_its_share_of_new_rows_below():
    parameters = {"n_estimators": 1000, "early_stopping_rounds": 50, "max_depth": 4}
    X_new, y_new = noisy_rows(4000, seed=2)
    model = several(**parameters).fit(*noisy_rows(4000), eval_set=[noisy_rows(1000, seed=3)])
    below = (y_new[:, None] <= model.predict(X_new)).mean(axis=0)
    # A standard error of .008 for the new rows, and as much for the trained ones.
    np.testing.assert_allclose(below, LEVELS, atol=0.035)


def test_one_model_is_no_worse_than_one_of_each_level():
    rows, (X_new, y_new) = noisy_rows(4000), noisy_rows(4000, seed=2)
    parameters = {"n_estimators": 500, "early_stopping_rounds": 50, "max_depth": 4}
    sets = {"eval_set": [noisy_rows(1000, seed=3)]}
    together = several(**parameters).fit(*rows, **sets)
    for level, column in zip(LEVELS, together.predict(X_new).T, strict=True):
        alone = several(**parameters, quantile=level).fit(*rows, **sets)
        wanted = mean_pinball_loss(y_new, alone.predict(X_new), alpha=level)
        assert mean_pinball_loss(y_new, column, alpha=level) < 1.02 * wanted


def test_a_list_an_array_and_an_object_are_the_same_model():
    wanted = several().fit(X, Y).predict(X)
    for model in (
        several(quantile=tuple(LEVELS)),
        several(quantile=np.array(LEVELS)),
        several(loss=losses.Quantile(LEVELS), quantile=None),
        clone(several()),
    ):
        np.testing.assert_array_equal(model.fit(X, Y).predict(X), wanted)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_threads_does_not_change_a_bit(n_jobs):
    for n in (1500, 20_000):  # the slopes of many rows and outputs are not stored
        rows = noisy_rows(n)
        wanted = several(n_estimators=5).fit(*rows).predict(X)
        np.testing.assert_array_equal(
            several(n_estimators=5, n_jobs=n_jobs).fit(*rows).predict(X), wanted
        )


def test_stages_files_rows_and_uncertainty_agree_with_predict(tmp_path):
    model = several(early_stopping_rounds=10).fit(X[:1000], Y[:1000], eval_set=(X[1000:], Y[1000:]))
    wanted = model.predict(X)
    assert len(model.evals_result_["validation_0"]["loss"]) >= model.n_iter_
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last, wanted, rtol=1e-9, atol=1e-9)
    assert all(is_sorted(stage) for stage in model.staged_predict(X))
    predict_row = model.row_predictor()
    np.testing.assert_array_equal(np.stack([predict_row(row) for row in X[:50]]), wanted[:50])
    model.save(tmp_path / "m.sglb")
    loaded = load(tmp_path / "m.sglb")
    np.testing.assert_array_equal(loaded.predict(X), wanted)
    assert loaded.loss_ == model.loss_
    assert loaded.quantile == LEVELS
    with pytest.warns(UserWarning, match="draws"):
        parts = loaded.predict_uncertainty(X[:5])
    assert parts.knowledge.shape == (5, 3)
    assert parts.data is None


def test_categories_and_missing_values_are_accepted():
    table = pd.DataFrame(X, columns=list("abc"))
    table["city"] = pd.Categorical(np.random.default_rng(4).integers(0, 300, len(X)).astype(str))
    table.loc[::5, "a"] = np.nan
    model = several().fit(table, Y + table["city"].cat.codes / 100)
    assert is_sorted(model.predict(table))


def test_the_length_of_a_chain_is_cross_validated():
    model = several(n_estimators="auto").fit(X[:300], Y[:300])
    assert 1 <= model.n_iter_ <= 1000
    assert is_sorted(model.predict(X))


@pytest.mark.parametrize("leaf_method", ["gradient", "newton"])
def test_edge_cases_fit(leaf_method):
    for rows, y in (
        (X[:1], Y[:1]),
        (X[:50], np.zeros(50)),
        (X[:50], np.full(50, 1e6)),
        (X[:50], np.repeat([0.0, 1.0], [45, 5])),
        (X[:50], np.full(50, -3.0)),
    ):
        model = several(leaf_method=leaf_method).fit(rows, y)
        predictions = model.predict(rows)
        assert np.isfinite(predictions).all()
        assert is_sorted(predictions)
        if len(set(y)) == 1:  # up to the smoothing, .003 of a spread that counts as 1
            np.testing.assert_allclose(predictions, y[0], atol=0.02)


def test_weights_are_multiplicities():
    weight = np.random.default_rng(5).integers(1, 4, len(Y))
    X_few = np.round(4.0 * X)  # few values, so that both have the same bins
    parameters = {"sampler": "plain", "learning_rate": 0.1}
    weighted = several(**parameters).fit(X_few, Y, sample_weight=weight)
    repeated = several(**parameters).fit(np.repeat(X_few, weight, axis=0), np.repeat(Y, weight))
    assert np.median(np.abs(weighted.predict(X_few) - repeated.predict(X_few))) < 1e-12


@pytest.mark.parametrize("factor", [2.0**-10, 2.0**20])
def test_a_scaled_target_gives_the_scaled_model(factor):
    wanted = several().fit(X, Y).predict(X)
    actual = several().fit(X, Y * factor).predict(X) / factor
    assert np.median(np.abs(actual - wanted)) < 1e-6


def test_the_gradients_of_all_levels_have_the_same_mean_square_at_the_start():
    y = np.random.default_rng(6).normal(size=100_000)
    loss = losses.Quantile([0.01, 0.3, 0.5, 0.99]).adapt(Target.of(y))
    raw = np.tile(loss.init(Target.of(y)), (len(y), 1))
    # Smoothing, and the 1,000 rows beyond an outer quantile.
    np.testing.assert_allclose((loss.gradient(y, raw) ** 2).mean(axis=0), 0.25, rtol=0.05)


@pytest.mark.parametrize(
    "levels",
    [[], [0.5], [0.5, 0.1], [0.1, 0.1], [0.0, 0.5], [0.5, 1.0], [0.1, np.nan], [[0.1, 0.9]], ["a"]],
    ids=repr,
)
def test_levels_that_are_not_increasing_numbers_between_0_and_1_are_rejected(levels):
    with pytest.raises(ValueError, match=r"quantile=.* is not allowed; .*increasing order"):
        several(quantile=levels).fit(X, Y)
    with pytest.raises((ValueError, TypeError)):
        losses.Quantile(levels)


def test_metrics_of_one_prediction_are_rejected_before_training():
    sets = {"eval_set": [(X, Y)]}
    for metric in ("rmse", "mae", "r2"):
        with pytest.raises(ValueError, match=f"eval_metric='{metric}' compares y with one"):
            several().fit(X, Y, **sets, eval_metric=metric)
    model = several().fit(X, Y, **sets, eval_metric=lambda y, q: np.mean(np.abs(y - q[:, 1])))
    assert model.best_score_ > 0.0
