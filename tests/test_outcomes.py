"""Distributions of outcomes: learned out of fold, calibrated, in any unit."""

import numpy as np
import pandas as pd
import pytest

from sglb import SGLBClassifier, SGLBRegressor
from sglb.outcomes.log_scale import LIMIT, LogScale

N = 3000
FAST = {"n_estimators": 100, "random_state": 0, "max_depth": 4}


def noisy(n_rows=N, seed=0):
    """y = sin(3 a) + noise whose deviation, .1 to 1.1, depends on b."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, 3))
    deviation = 0.1 + 0.5 * (1.0 + X[:, 1])
    return X, np.sin(3.0 * X[:, 0]) + deviation * rng.normal(size=n_rows), deviation


@pytest.fixture(scope="module")
def model():
    X, y, _ = noisy()
    return SGLBRegressor(uncertainty=True, **FAST).fit(X, y)


def test_the_prediction_is_that_of_a_fit_without_uncertainty(model):
    X, y, _ = noisy()
    plain = SGLBRegressor(**FAST).fit(X, y)
    assert (model.predict(X) == plain.predict(X)).all()
    prediction, deviation = model.predict(X, return_std=True)
    assert (prediction == plain.predict(X)).all()
    assert (deviation == model.predict_distribution(X).std).all()


def test_intervals_hold_new_rows_as_often_as_they_say_at_every_scale(model):
    X, y, deviation = noisy(20_000, seed=1)
    interval = model.predict_interval(X, coverage=0.9)
    inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
    # A binomial share of 4,000 rows is off by .015 with probability .002.
    assert abs(inside.mean() - 0.9) < 0.02
    for rows in np.array_split(np.argsort(deviation), 5):
        assert 0.85 < inside[rows].mean() < 0.95
    width = interval[:, 1] - interval[:, 0]
    assert np.corrcoef(width, deviation)[0, 1] > 0.9


def test_quantiles_do_not_cross_and_match_the_distribution(model):
    X, _, _ = noisy(200, seed=2)
    quantiles = model.predict_quantiles(X, [0.1, 0.5, 0.9])
    assert quantiles.shape == (200, 3)
    assert (np.diff(quantiles, axis=1) > 0.0).all()
    np.testing.assert_allclose(
        model.predict_distribution(X).cdf(quantiles.T), np.tile([[0.1], [0.5], [0.9]], 200)
    )


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_y_does_not_matter(model, factor):
    X, y, _ = noisy()
    other = SGLBRegressor(uncertainty=True, **FAST).fit(X, factor * y)
    np.testing.assert_allclose(
        other.predict_interval(X[:50]), factor * model.predict_interval(X[:50]), rtol=1e-6
    )


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_any_number_of_threads_gives_the_same_bits(model, n_jobs):
    X, y, _ = noisy()
    other = SGLBRegressor(uncertainty=True, n_jobs=n_jobs, **FAST).fit(X, y)
    assert (other.predict_interval(X) == model.predict_interval(X)).all()


def test_the_scales_of_several_chains_are_those_of_their_mean():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.0, 1.0, (2000, 4))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]  # all errors are those of the chains
    train, test = slice(0, 500), slice(500, None)
    noisy_chains = {"uncertainty": True, "subsample": 0.3, **FAST}
    widths = []
    for n_chains in (1, 5):
        model = SGLBRegressor(n_chains=n_chains, **noisy_chains).fit(X[train], y[train])
        low, high = model.predict_interval(X[test]).T
        # Rows out of fold have chains of a fifth fewer rows, so that intervals are too wide.
        assert 0.87 < np.mean((low <= y[test]) & (y[test] <= high)) < 0.96
        widths.append(np.mean(high - low))
    assert widths[1] < 0.9 * widths[0]


@pytest.mark.parametrize(
    ("settings", "n_more"),
    [({}, 0), ({"n_chains": 2}, 5), ({"n_estimators": 9, "n_chains": 2}, 10)],
)
def test_progress_tells_how_many_more_chains_there_are(capfd, settings, n_more):
    X, y, _ = noisy(100)
    SGLBRegressor(uncertainty=True, max_depth=2, verbose=1, **settings).fit(X, y)
    said = capfd.readouterr().err
    assert ("error bars: " in said) == (n_more > 0)
    assert n_more == 0 or f"error bars: {n_more} more chains" in said


def test_classes_need_no_more_chains(capfd):
    X, y, _ = noisy(100)
    SGLBClassifier(uncertainty=True, max_depth=2, n_estimators=9, verbose=1).fit(X, y > 0.0)
    assert "more chains" not in capfd.readouterr().err


def test_rows_that_are_predicted_exactly_have_narrow_intervals_and_no_error():
    X = np.arange(200.0)[:, None]
    model = SGLBRegressor(uncertainty=True, **FAST).fit(X, np.full(200, 7.0))
    interval = model.predict_interval(X)
    assert np.isfinite(interval).all()
    assert (np.abs(interval - 7.0) < 1e-3).all()


def test_categories_weights_and_counts():
    rng = np.random.default_rng(3)
    town = rng.integers(0, 300, 2000)
    frame = pd.DataFrame(
        {"town": pd.Categorical([f"t{t}" for t in town]), "x": rng.normal(size=2000)}
    )
    weight = rng.uniform(0.5, 2.0, 2000)
    y = rng.poisson(np.exp(0.3 * frame["x"] + 0.002 * town))
    numbers = SGLBRegressor(uncertainty=True, **FAST).fit(frame, y, weight)
    assert (np.diff(numbers.predict_interval(frame), axis=1) > 0.0).all()
    counts = SGLBRegressor(loss="poisson", uncertainty=True, **FAST).fit(frame, y, weight)
    distribution = counts.predict_distribution(frame)
    assert distribution.discrete
    np.testing.assert_allclose(distribution.mean, counts.predict(frame))


@pytest.mark.parametrize("loss", ["gamma", "tweedie"])
def test_amounts_have_laws_of_their_own(loss):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 2))
    mean = np.exp(1.0 + 0.5 * X[:, 0])
    y = rng.gamma(2.0, mean / 2.0)
    if loss == "tweedie":
        y *= rng.uniform(size=3000) < 0.7
    model = SGLBRegressor(loss=loss, uncertainty=True, **FAST).fit(X[:2000], y[:2000])
    distribution = model.predict_distribution(X[2000:])
    np.testing.assert_allclose(distribution.mean, model.predict(X[2000:]))
    quantile = model.predict_quantiles(X[2000:], 0.9)[:, 0]
    # A binomial share of 1,000 rows is off by .03 with probability .002.
    assert abs(np.mean(y[2000:] <= quantile) - 0.9) < 0.045


def test_many_rows_need_fewer_folds_for_intervals_that_hold():
    X, y, deviation = noisy(16_000)
    settings = FAST | {"n_estimators": 40, "learning_rate": 0.2, "uncertainty": True}
    model, other = (SGLBRegressor(n_jobs=n_jobs, **settings).fit(X, y) for n_jobs in (1, 3))
    X, y, deviation = noisy(20_000, seed=1)
    interval = model.predict_interval(X, coverage=0.9)
    assert (other.predict_interval(X, coverage=0.9) == interval).all()
    inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
    # A binomial share of 4,000 rows is off by .015 with probability .002.
    for rows in np.array_split(np.argsort(deviation), 5):
        assert 0.87 < inside[rows].mean() < 0.93


def test_two_folds_of_weighted_rows_with_categories_give_intervals(monkeypatch):
    monkeypatch.setattr("sglb.folds.RESIDUAL_FOLDS", ())
    X, y, _ = noisy()
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["d"] = pd.Categorical((10 * X[:, 0]).round().astype(int).astype(str))
    weight = np.random.default_rng(0).integers(1, 4, N).astype(float)
    model = SGLBRegressor(uncertainty=True, **FAST).fit(frame, y, weight)
    interval = model.predict_interval(frame)
    inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
    assert 0.88 < inside.mean() < 0.97  # of training rows


def test_several_quantiles_are_a_distribution_after_any_fit():
    X, y, _ = noisy()
    model = SGLBRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], **FAST).fit(X, y)
    distribution = model.predict_distribution(X)
    np.testing.assert_allclose(distribution.quantiles([0.1, 0.5, 0.9]), model.predict(X))
    assert (model.predict_interval(X, 0.8) == distribution.interval(0.8)).all()
    with_draws = SGLBRegressor(loss="quantile", quantile=[0.1, 0.9], uncertainty=True, **FAST)
    assert (with_draws.fit(X, y).predict_uncertainty(X).knowledge > 0.0).all()
    median = SGLBRegressor(loss="quantile", **FAST).fit(X, y)
    with pytest.raises(ValueError, match="loss 'quantile' has no distribution of y"):
        median.predict_distribution(X)


def test_a_model_without_uncertainty_says_what_to_pass():
    X, y, _ = noisy(100)
    model = SGLBRegressor(**FAST).fit(X, y)
    with pytest.raises(ValueError, match="fit it with uncertainty=True"):
        model.predict_interval(X)
    robust = SGLBRegressor(loss="cauchy", uncertainty=True, **FAST).fit(X, y)
    with pytest.raises(ValueError, match="loss 'cauchy' has no distribution of y"):
        robust.predict_interval(X)


def test_the_gradient_of_a_log_scale_is_that_of_its_loss():
    loss, r = LogScale(), np.array([0.0, 0.3, 2.0])
    for z in (-0.5 * LIMIT - 1.0, -1.0, 0.0, 3.0):
        raw, step = np.full(3, z), 1e-6
        slope = (loss.loss(r, raw + step) - loss.loss(r, raw - step)) / (2.0 * step)
        np.testing.assert_allclose(loss.gradient(r, raw), slope, rtol=1e-5, atol=1e-6)
    assert np.isfinite(loss.loss(r, np.full(3, -1e6))).all()
