"""Several chains of a model: R-hat over them, their variance beside the posterior's, equal ones."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import sglb
from sglb import SGLBClassifier, SGLBRegressor, diagnostics
from sglb.estimators.summary import summarise

TWO = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)
FAST = {"n_estimators": 40, "random_state": 0, "max_depth": 3}
# At temperature 1 with gradient leaves: 4,000 steps are 100 relaxation times.
LAW = {
    "temperature": 1.0,
    "shrink_rate": 0.05,
    "learning_rate": 0.5,
    "leaf_method": "gradient",
    "n_estimators": 4000,
    "max_depth": 3,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def several():
    return SGLBClassifier(n_chains=3, **FAST).fit(*TWO)


def test_rhat_is_that_of_states_of_the_second_halves(several):
    X = TWO[0][:9]
    # Nine states from 21 to 40, evenly spaced.
    numbers = np.linspace(40, 21, 9).round()[::-1]
    states = [trace.predict(X, states=numbers.astype(int))[:, 0] for trace in several.traces_]
    expected = diagnostics.rhat(np.array(states))
    np.testing.assert_allclose(several.chain_rhat(X, n_states=9), expected)


def test_chains_that_sample_a_law_agree_and_trained_ones_do_not(several):
    X, y = TWO[0][:200], TWO[1][:200]
    mixed = SGLBClassifier(n_chains=4, **LAW).fit(X, y).chain_rhat(X)
    assert mixed.shape == (200,)
    assert np.median(mixed) < 1.05
    assert np.median(several.chain_rhat(TWO[0])) > 1.5


def test_rhat_of_several_outputs_categories_and_one_chain():
    model = SGLBClassifier(n_chains=2, **FAST).fit(*THREE)
    assert model.chain_rhat(THREE[0]).shape == (150, 3)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": pd.Categorical(rng.integers(0, 90, 300))})
    y = (frame["a"] + rng.normal(size=300) > 0.0).astype(int)
    single = SGLBClassifier(**FAST).fit(frame, y)
    assert (single.chain_rhat(frame) > 1.0).mean() > 0.9  # its halves differ


def test_rhat_needs_several_states():
    model = SGLBClassifier(n_chains=2, **{**FAST, "n_estimators": 6}).fit(*TWO)
    with pytest.raises(ValueError, match="R-hat needs 4 states of each chain, and one has 3"):
        model.chain_rhat(TWO[0])
    with pytest.raises(ValueError, match="n_states=1 is not allowed"):
        model.chain_rhat(TWO[0], n_states=1)


def test_the_summary_has_the_variance_between_chains(several, tmp_path):
    post = several.posterior(*TWO, prior_variance=0.3)
    raw = several.predict_raw_chains(TWO[0])
    rows = np.unique(np.linspace(0, 568, 500).astype(int))
    summary = post.summary()
    assert summary.between_chains == pytest.approx(raw[:, rows].var(axis=0, ddof=1).mean())
    assert f"variance between chains  {summary.between_chains:.4g}" in str(summary)
    assert summary.warnings == []
    post.save(tmp_path / "p.sglb")
    for other in (sglb.load(tmp_path / "p.sglb"), pickle.loads(pickle.dumps(post))):
        assert other.summary().between_chains == summary.between_chains
    single = SGLBClassifier(**FAST).fit(*TWO).posterior(*TWO, n_draws=8, prior_variance=0.3)
    assert single.summary().between_chains is None
    assert "between" not in str(single.summary())


def test_chains_that_differ_more_than_draws_are_worth_a_warning(several):
    drawn = several.posterior(*TWO, prior_variance=0.3)._posterior
    (text,) = summarise(replace(drawn, between_chains=10.0), 0.25).warnings
    assert "differ more (10) than the draws do" in text
    assert "use a larger prior_variance, or more n_chains" in text


@pytest.mark.parametrize("options", [{"sampler": "plain"}, {"temperature": 0.0}])
def test_equal_chains_are_worth_a_warning(options):
    with pytest.warns(UserWarning, match="2 of them are no better than one") as caught:
        model = SGLBClassifier(n_chains=2, random_strength=0.0, **options, **FAST).fit(*TWO)
    assert caught[0].filename == __file__
    assert np.ptp(model.predict_raw_chains(TWO[0]), axis=0).max() == 0.0


def test_equal_chains_that_had_nothing_to_learn_are_not():
    model = SGLBRegressor(n_chains=2, sampler="plain", **FAST).fit(TWO[0], np.ones(569))
    assert (model.predict(TWO[0]) == 1.0).all()


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": "plain", "structure_sample": 0.5},
        {"sampler": "stochastic", "subsample": 0.5},
        {"sampler": "langevin"},
    ],
)
def test_chains_that_differ_come_without_a_warning(options):
    model = SGLBClassifier(n_chains=2, **options, **FAST).fit(*TWO)  # a warning is an error here
    assert np.ptp(model.predict_raw_chains(TWO[0]), axis=0).max() > 0.0
