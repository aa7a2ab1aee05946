"""Gamma and Tweedie losses in whole models: amounts of any range, zeros, edge cases."""

import numpy as np
import pytest
from sklearn.metrics import mean_tweedie_deviance

from sglb import SGLBRegressor, load, losses

FAST = {"n_estimators": 60, "max_depth": 3, "random_state": 0, "n_jobs": 1}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 4))
MEAN = np.exp(0.7 * X[:, 0] + np.sin(2.0 * X[:, 1]))
GAMMA = MEAN * RNG.gamma(2.0, 0.5, len(X))
# Claims: a Poisson number of gamma amounts, of which three quarters of the rows have none.
CLAIMS = np.array([RNG.gamma(2.0 * k) if k else 0.0 for k in RNG.poisson(0.3 * MEAN)])
AMOUNTS = {
    "gamma": (losses.Gamma(), GAMMA),
    "tweedie": (losses.Tweedie(), CLAIMS),
    "nearly poisson": (losses.Tweedie(1.05), CLAIMS),
    "nearly gamma": (losses.Tweedie(1.95), CLAIMS),
}
every_amount = pytest.mark.parametrize("name", AMOUNTS)


@every_amount
def test_a_model_is_better_than_the_mean(name):
    loss, y = AMOUNTS[name]
    model = SGLBRegressor(**FAST | {"n_estimators": "auto"}, loss=loss).fit(X[:800], y[:800])
    prediction = model.predict(X[800:])
    power = getattr(loss, "power", 2.0)
    constant = np.full(400, y[:800].mean())
    assert (prediction > 0.0).all()
    deviance = mean_tweedie_deviance(y[800:], prediction, power=power)
    assert deviance < 0.98 * mean_tweedie_deviance(y[800:], constant, power=power)
    assert model.predict(X[:800]).mean() == pytest.approx(y[:800].mean(), rel=0.2)


def test_amounts_over_many_orders_of_magnitude_are_learned():
    """Newton steps by the exact second derivative overshoot here by hundreds."""
    y = np.exp(6.0 * X[:, 0]) * RNG.gamma(2.0, 0.5, len(X))
    for rate in ("auto", 0.5, 1.0):
        model = SGLBRegressor(**FAST, loss="gamma", learning_rate=rate).fit(X[:800], y[:800])
        ratio = y[800:] / model.predict(X[800:])
        assert 1.0 / 30.0 < np.median(ratio) < 2.0
        assert mean_tweedie_deviance(y[800:], model.predict(X[800:]), power=2.0) < 4.0


@every_amount
@pytest.mark.parametrize(
    ("sampler", "leaf_method"),
    [("langevin", "newton"), ("plain", "newton"), ("stochastic", "newton"), ("plain", "gradient")],
)
def test_edge_cases_fit(name, sampler, leaf_method):
    loss, _ = AMOUNTS[name]
    targets = [np.full(50, 3.0), np.full(50, 1e-8), np.repeat([1.0, 1e6], [49, 1])]
    if loss.name == "tweedie":
        targets += [np.zeros(50), np.repeat([0.0, 7.0], [49, 1])]
    parameters = {**FAST, "loss": loss, "sampler": sampler, "leaf_method": leaf_method}
    if sampler == "stochastic":
        parameters["subsample"] = 0.5
    for y in targets:
        for n in (1, 50):
            prediction = SGLBRegressor(**parameters).fit(X[-n:], y[-n:]).predict(X)
            assert np.isfinite(prediction).all()
            assert (prediction > 0.0).all()
        if len(set(y)) == 1 and y[0] > 0.0:
            np.testing.assert_allclose(prediction, y[0], rtol=0.01)


@every_amount
def test_weights_are_multiplicities(name):
    loss, y = AMOUNTS[name]
    few, weight = np.round(2.0 * X), RNG.integers(1, 4, len(X))
    parameters = FAST | {"sampler": "plain", "loss": loss}
    weighted = SGLBRegressor(**parameters).fit(few, y, sample_weight=weight).predict(few)
    repeated = SGLBRegressor(**parameters).fit(np.repeat(few, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(np.median(repeated.predict(few) / weighted), 1.0, rtol=1e-9)


@every_amount
def test_files_threads_and_stages_give_the_same_predictions(name, tmp_path):
    loss, y = AMOUNTS[name]
    model = SGLBRegressor(**FAST, loss=loss, early_stopping_rounds=20)
    model.fit(X[:800], y[:800], eval_set=[(X[800:], y[800:])])
    wanted = model.predict(X)
    model.save(tmp_path / "m.sglb")
    assert load(tmp_path / "m.sglb").loss_ == loss
    np.testing.assert_array_equal(load(tmp_path / "m.sglb").predict(X), wanted)
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last, wanted, rtol=1e-9)
    again = SGLBRegressor(**FAST | {"n_jobs": 3}, loss=loss, early_stopping_rounds=20)
    again.fit(X[:800], y[:800], eval_set=[(X[800:], y[800:])])
    np.testing.assert_array_equal(again.predict(X), wanted)


@pytest.mark.parametrize(
    ("loss", "bad", "message"),
    [
        ("gamma", 0.0, "loss 'gamma' needs a number > 0 as target, row 7 has 0.0"),
        ("gamma", -2.0, "loss 'gamma' needs a number > 0 as target, row 7 has -2.0"),
        ("tweedie", -2.0, "loss 'tweedie' needs a number >= 0 as target, row 7 has -2.0"),
    ],
)
def test_a_target_outside_of_the_domain_is_rejected_with_its_row(loss, bad, message):
    y = GAMMA.copy()
    y[7] = bad
    with pytest.raises(ValueError, match=message):
        SGLBRegressor(**FAST, loss=loss).fit(X, y)
    with pytest.raises(ValueError, match=rf"eval_set\[0\]: {message}"):
        SGLBRegressor(**FAST, loss=loss).fit(X, GAMMA, eval_set=[(X, y)])
