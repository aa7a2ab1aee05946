"""What a summary measures, against the definition; and that its warnings come when they should."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor

import sglb
from sglb import SGLBClassifier, SGLBRegressor, diagnostics
from sglb.estimators.summary import summarise
from sglb.posterior import ChainPosterior, LeafDraws, LongChains, PosteriorPlan
from sglb.samplers import Langevin

TWO = load_breast_cancer(return_X_y=True)
NUMBERS = load_diabetes(return_X_y=True)
N_ROWS = 300


def short(stages, kind="full"):
    """A posterior that is known at watched rows alone: stages (2, n_rows, n_draws)."""
    mirror = kind == "laplace"
    n_draws = stages.shape[2]
    values = np.zeros((1, 1, n_draws // 2 if mirror else n_draws), dtype=np.float32)
    draws = LeafDraws(np.array([1]), values, mirror, stages[:, None])
    return ChainPosterior(draws, PosteriorPlan(kind, n_draws, 1.0, n_steps=150))


def independent(n_draws=96, seed=0):
    return np.random.default_rng(seed).normal(size=(2, N_ROWS, n_draws))


def warnings_of(stages, **options):
    return summarise(short(stages, **options), 1.0).warnings


def test_numbers_are_those_of_the_diagnostics():
    stages = independent()
    summary = summarise(short(stages), 0.25)
    by_row = np.moveaxis(stages, 2, 1)
    np.testing.assert_array_equal(summary.rhat, diagnostics.rhat(by_row))
    np.testing.assert_array_equal(summary.ess_bulk, diagnostics.ess_bulk(by_row[1:]))
    np.testing.assert_array_equal(summary.ess_tail, diagnostics.ess_tail(by_row[1:]))
    batches = np.repeat(np.arange(6), 16)
    expected = diagnostics.rhat_nested(by_row[1][:, None], batches)
    np.testing.assert_array_equal(summary.rhat_nested, expected)
    assert summary.knowledge == pytest.approx(stages[1].var(axis=1).mean())
    assert summary.cost == pytest.approx(0.125 * summary.knowledge / 96)
    assert summary.warnings == []


def test_mirror_images_count_once():
    half = independent(48)
    summary = summarise(short(np.concatenate([half, -half], axis=2), "laplace"), 1.0)
    assert summary.n_draws == 96
    assert 40 < np.median(summary.ess_bulk) < 60
    np.testing.assert_array_equal(summary.rhat, diagnostics.rhat(np.moveaxis(half, 2, 1)))


def test_each_warning_has_its_cause():
    shifted = independent()
    shifted[1] += 0.8
    (text,) = warnings_of(shifted)
    assert "the chains have not forgotten their start; use more than n_steps=150" in text
    wide = independent()
    wide[1] *= 1.08
    (text,) = warnings_of(wide)
    assert "changed by 19% in the second half" in text
    rng = np.random.default_rng(1)
    alike = independent() + np.repeat(rng.normal(scale=0.8, size=(2, N_ROWS, 6)), 16, axis=2)
    assert any("draws of a batch of 16 are alike" in text for text in warnings_of(alike))
    (text,) = warnings_of(independent(48))
    assert "use 100 or more" in text


def test_draws_that_are_equal_everywhere_are_no_cause():
    summary = summarise(short(np.zeros((2, N_ROWS, 96))), 1.0)
    assert summary.warnings == []
    assert summary.cost == 0.0
    assert "nan" in str(summary)


def test_too_few_draws_are_rejected():
    with pytest.raises(ValueError, match="6 draws are too few for a summary; use 8 or more"):
        summarise(short(independent(6), "laplace"), 1.0)


def long(states):
    """Long chains that are known at watched rows alone: states (n_chains, n_states, n_rows)."""
    plan = PosteriorPlan("paper", 100, 1.0, n_steps=1000)
    return LongChains((), Langevin(1.0, 1.0, 0.1), plan, states[:, :, None])


def autoregression(a, seed=0):
    rng = np.random.default_rng(seed)
    states = np.empty((4, 200, N_ROWS))
    state = rng.normal(size=(4, N_ROWS))
    for step in range(200):
        state = a * state + np.sqrt(1.0 - a * a) * rng.normal(size=state.shape)
        states[:, step] = state
    return states


def test_effective_draws_of_chains_are_those_of_an_autoregression():
    """800 states of correlation a^k are worth 800 (1 - a) / (1 + a) draws, and n_draws at most."""
    assert summarise(long(autoregression(0.2)), 1.0).warnings == []
    slow = summarise(long(autoregression(0.95)), 1.0)
    assert np.median(slow.ess_bulk) == pytest.approx(800 * 0.05 / 1.95, rel=0.5)
    (text,) = slow.warnings
    assert "draws are worth about" in text
    assert "They last 1e+02 relaxation times" in text
    fast = summarise(long(autoregression(0.2)), 1.0)
    assert (fast.ess_bulk == 100.0).mean() > 0.99
    assert fast.cost == pytest.approx(0.5 * fast.knowledge / 100.0)


def test_chains_at_different_places_have_not_mixed():
    states = autoregression(0.2)
    states[0] += 2.0
    (text,) = summarise(long(states), 1.0).warnings
    assert "R-hat is too large at 9" in text or "R-hat is too large at 100" in text


def test_the_summary_of_a_model_prints_what_it_measures():
    model = SGLBClassifier(n_estimators=60, max_depth=3, random_state=0).fit(*TWO)
    summary = model.posterior(*TWO, prior_variance=0.3).summary()
    assert summary.warnings == []
    assert repr(summary) == str(summary)
    for name in ("R-hat", "nested R-hat", "draws, bulk", "draws, tails", "in the loss, at most"):
        assert name in str(summary)
    assert summary.cost == pytest.approx(0.125 * summary.knowledge / 100)


def test_models_of_other_libraries_have_the_same_summary():
    forest = RandomForestRegressor(20, max_depth=3, random_state=0).fit(*NUMBERS)
    summary = sglb.posterior_of(forest, *NUMBERS, temperature=3000.0).summary()
    assert summary.ess_tail.shape == summary.rhat.shape == summary.rhat_nested.shape
    assert summary.cost == pytest.approx(0.5 * summary.knowledge / 100)


def test_a_loss_without_bounded_curvature_has_no_bound_of_its_error():
    model = SGLBRegressor(loss="poisson", n_estimators=20, random_state=0)
    model.fit(NUMBERS[0], np.round(NUMBERS[1]))
    summary = model.posterior(NUMBERS[0], np.round(NUMBERS[1]), temperature=1.0).summary()
    assert summary.cost is None
    assert "at most" not in str(summary)


@pytest.mark.parametrize("n_steps", [0, 1, 2, 10])
@pytest.mark.parametrize("kind", ["laplace", "full"])
def test_chains_that_have_hardly_moved_are_not_trusted(kind, n_steps):
    """Their draws are where they were halfway, so that no comparison of the two can tell."""
    model = SGLBClassifier(n_estimators=60, max_depth=3, random_state=0).fit(*TWO)
    summary = model.posterior(*TWO, kind=kind, prior_variance=0.3, n_steps=n_steps).summary()
    assert summary.relaxations < 3.0
    assert any("still near their start" in text for text in summary.warnings)


def test_relaxation_times_are_those_of_the_mean_curvature():
    """eps (h + gamma) a step, with eps = .25 / (1 + gamma) and h = 1: a quarter a step."""
    forest = RandomForestRegressor(20, max_depth=3, random_state=0).fit(*NUMBERS)
    summary = sglb.posterior_of(forest, *NUMBERS, temperature=3000.0, n_steps=18).summary()
    assert summary.relaxations == pytest.approx(18 * 0.25)
    (text,) = [text for text in summary.warnings if "relaxation times" in text]
    assert "last 4.5 relaxation times" in text
    assert "use n_steps=20 or more" in text
    enough = sglb.posterior_of(forest, *NUMBERS, temperature=3000.0, n_steps=20).summary()
    assert not any("relaxation times" in text for text in enough.warnings)


def test_the_error_of_a_mean_counts_all_outputs():
    X, y = load_iris(return_X_y=True)
    model = SGLBClassifier(n_estimators=20, random_state=0).fit(X, y)
    posterior = model.posterior(X, y, prior_variance=1.0)
    summary = posterior.summary()
    variance = posterior.predict_raw(X).var(axis=0).sum(axis=1).mean()
    assert summary.cost == pytest.approx(0.25 * variance / 100, rel=0.01)
