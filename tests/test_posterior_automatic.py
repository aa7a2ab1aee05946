"""Numbers that a posterior chooses by itself: temperature and length of the chains; and counts."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from sglb import SGLBRegressor
from sglb.recipe import Recipe

FAST = {"n_estimators": 60, "random_state": 0, "max_depth": 3}
NUMBERS = load_diabetes(return_X_y=True)


def test_an_ordinary_fit_learns_the_temperature_that_error_bars_have():
    """Up to 2,000 rows all folds have residuals, as in a fit with uncertainty=True."""
    X, y = NUMBERS
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    plain = SGLBRegressor(**FAST).fit(X, y, weight)
    known = SGLBRegressor(uncertainty=True, **FAST).fit(X, y, weight)
    expected = known.posterior(X, y, weight, n_draws=4).plan.temperature
    learned = plain.posterior(X, y, weight, n_draws=4).plan.temperature
    assert learned == pytest.approx(expected, rel=1e-12)
    assert 1500.0 < learned < 4000.0  # residuals of training rows would have 400
    assert plain.posterior(X, y, weight, n_draws=4, temperature=1.0).plan.temperature == 1.0


def test_a_temperature_is_learned_from_as_many_folds_as_are_needed(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(5000, 3))
    y = X[:, 0] + rng.normal(size=5000)
    model = SGLBRegressor(n_estimators=30, random_state=0).fit(X, y)
    taken = []
    original = Recipe.lazy_cross_validation

    def count(recipe, data, *, number=0, n_folds=5):
        taken.append(n_folds)
        return original(recipe, data, number=number, n_folds=n_folds)

    monkeypatch.setattr(Recipe, "lazy_cross_validation", count)
    assert model.posterior(X, y, n_draws=4).plan.temperature == pytest.approx(1.0, rel=0.15)
    assert taken == [2]


@pytest.fixture(scope="module")
def skewed():
    """Counts whose largest mean, which keeps the steps of all rows short, is 40 times the mean."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    mean = np.exp(X[:, 0] + X[:, 1])
    y = rng.poisson(mean)
    return SGLBRegressor(loss="poisson", n_estimators=150, random_state=0).fit(X, y), X, y, mean


def test_an_automatic_number_of_steps_is_enough_where_few_rows_are_steep(skewed):
    """With 150 steps draws of large counts had 1.4 times the deviation that they end with."""
    model, X, y, mean = skewed
    spread = []
    for n_steps in ("auto", 4000):
        posterior = model.posterior(
            X, y, temperature=1.0, prior_variance=0.1, n_steps=n_steps, n_draws=64
        )
        assert posterior.summary().warnings == []
        spread.append(posterior.predict_raw(X[mean > 5.0]).std(axis=0).mean())
    assert spread[0] == pytest.approx(spread[1], rel=0.15)


def test_too_few_steps_for_a_few_steep_rows_are_warned_of(skewed):
    model, X, y, _ = skewed
    summary = model.posterior(X, y, temperature=1.0, prior_variance=0.1, n_steps=150).summary()
    assert any("still near their start" in text for text in summary.warnings)


@pytest.mark.parametrize("kind", ["full", "paper"])
def test_a_loss_of_unbounded_curvature_is_told_to_use_laplace(skewed, kind):
    model, X, y, _ = skewed
    with pytest.raises(ValueError, match=f"kind='{kind}' needs .* 'poisson'.*use kind='laplace'"):
        model.posterior(X, y, kind=kind)


def test_noise_of_counts_is_their_mean_and_the_error_of_the_mean_comes_on_top():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = rng.poisson(np.exp(X[:, 0]))
    model = SGLBRegressor(loss="poisson", uncertainty=True, **FAST).fit(X, y)
    u = model.predict_uncertainty(X)
    np.testing.assert_allclose(u.data, model.predict(X), rtol=1e-6)
    np.testing.assert_allclose(u.total, u.data + u.knowledge)
