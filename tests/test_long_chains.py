"""Algorithm 2 as a sampler: its law, its bits, its shapes, and what it says of itself."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from law import assert_mean, leaf_variance
from sglb import SGLBClassifier, SGLBRegressor
from sglb.categories import Encoding
from sglb.prepare import encoded

FAST = {"n_estimators": 20, "random_state": 0, "max_depth": 3}
TWO = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)


def two_leaves(weighted=False):
    """A table with a single split: whatever the state, the structure is the same."""
    rng = np.random.default_rng(0)
    side = np.repeat([0.0, 1.0], [30, 10])
    weight = rng.integers(1, 4, 40).astype(float) if weighted else None
    return side[:, None], rng.normal(size=40) + 3.0 * side, weight


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_of_a_single_structure_have_the_exact_law(weighted):
    X, y, weight = two_leaves(weighted)
    model = SGLBRegressor(n_estimators=5, max_depth=1, random_state=0).fit(X, y, weight)
    temperature, variance = 0.7, 0.2
    # Twelve steps of the autoregression apart, a^12 = .03, draws are as good as independent.
    post = model.posterior(
        X,
        y,
        weight,
        kind="paper",
        n_draws=4000,
        n_steps=24_000,
        temperature=temperature,
        prior_variance=variance,
    )
    weight = np.ones(40) if weight is None else weight
    gamma = 2.0 / (weight.sum() * variance)
    eps = 0.25 / (1.0 + gamma)
    assert (1.0 - eps * (1.0 + gamma)) ** 12 < 0.04
    start = np.average(y, weights=weight)
    raw = post.predict_raw([[0.0], [1.0]])
    for leaf, row in enumerate(raw.T):
        inside = X[:, 0] == leaf
        mean = start + (np.average(y[inside], weights=weight[inside]) - start) / (1.0 + gamma)
        expected = leaf_variance(weight[inside].sum(), eps, gamma, temperature)
        assert_mean(np.stack([row - mean, (row - mean) ** 2 - expected], axis=-1), 0.0)


def test_the_shrink_rate_makes_the_stated_prior_variance():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    model = SGLBRegressor(n_estimators=5, max_depth=3, random_state=0).fit(X, y)
    chains = model.posterior(X, y, kind="paper", n_draws=4, n_steps=8, temperature=1.0)._posterior
    cover = np.concatenate([trace.arrays()["cover"] for trace in chains.traces])
    n_leaves = np.count_nonzero(cover) / len(cover)
    assert n_leaves < 8.0  # some leaves of the trees are empty
    assert n_leaves / (200 * chains.sampler.shrink_rate) == pytest.approx(1.0, abs=0.1)
    step = chains.sampler.learning_rate * (1.0 + chains.sampler.shrink_rate)
    assert step == pytest.approx(0.25)


@pytest.fixture(scope="module")
def two():
    model = SGLBClassifier(**FAST).fit(*TWO)
    return model, model.posterior(*TWO, kind="paper", n_draws=40, n_steps=400)


def test_the_trees_are_not_those_of_the_model(two):
    model, post = two
    chains = post._posterior
    assert [len(trace) for trace in chains.traces] == [400] * 4
    assert len({trace.values.tobytes() for trace in [*chains.traces, model.trace_]}) == 5
    assert (chains.traces[0].temperatures == 1.0).all()


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_any_number_of_threads_gives_the_same_bits(two, n_jobs):
    model = SGLBClassifier(n_jobs=n_jobs, **FAST).fit(*TWO)
    post = model.posterior(*TWO, kind="paper", n_draws=40, n_steps=400)
    assert (post.predict_raw(TWO[0]) == two[1].predict_raw(TWO[0])).all()
    assert (post._posterior.watched == two[1]._posterior.watched).all()


def test_draws_are_states_of_the_second_halves(two):
    _, post = two
    trace, columns = post._posterior.traces[1], TWO[0][:7]
    raw = trace.predict(columns, states=list(range(201, 401)))[:, 0]
    draws = post.predict_raw(columns).reshape(4, 10, 7)[1]
    for draw in draws:
        assert np.abs(raw - draw).max(axis=1).min() < 1e-9
    np.testing.assert_allclose(draws[-1], raw[-1])
    assert np.ptp(draws, axis=0).min() > 0.0


def test_all_methods_are_those_of_any_posterior(two):
    _, post = two
    X = TWO[0]
    assert post.predict_raw(X).shape == (40, 569)
    draws = post.predict(X)
    assert draws.shape == (40, 569, 2)
    np.testing.assert_allclose(post.mean(X), draws.mean(axis=0))
    np.testing.assert_allclose(post.std(X), draws.std(axis=0))
    assert post.interval(X, 0.5).shape == (569, 2, 2)
    assert (post.uncertainty(X).knowledge > 0.0).all()
    assert post.predict(X[:0]).shape == (40, 0, 2)
    assert "kind='paper'" in repr(post)
    assert (post.mean(X).argmax(axis=1) == TWO[1]).mean() > 0.9


def test_blocks_of_rows_give_the_same_draws(two, monkeypatch):
    expected = two[1].predict_raw(TWO[0])
    monkeypatch.setattr("sglb.estimators.drawn.BLOCK_BYTES", 1)
    assert (two[1].predict_raw(TWO[0]) == expected).all()


def test_arviz_gets_four_chains(two, monkeypatch):
    module = types.ModuleType("arviz")
    module.from_dict = lambda data, *, coords, dims: data["posterior"]
    monkeypatch.setitem(sys.modules, "arviz", module)
    variables = two[1].to_arviz(TWO[0][:5])
    assert variables["raw"].shape == (4, 10, 5)
    assert variables["prediction"].shape == (4, 10, 5, 2)
    draws = two[1].predict_raw(TWO[0][:5])
    np.testing.assert_array_equal(variables["raw"][2, 3], draws[23])


def test_several_classes_categories_and_rows_without_weight():
    model = SGLBClassifier(**FAST).fit(*THREE)
    post = model.posterior(*THREE, kind="paper", n_draws=8, n_steps=100)
    assert post.predict_raw(THREE[0]).shape == (8, 150, 3)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=600), "b": pd.Categorical(rng.integers(0, 90, 600))})
    y = (frame["a"] + 0.02 * frame["b"].astype(int) + rng.normal(size=600) > 1.0).astype(int)
    weight = rng.integers(0, 3, 600).astype(float)
    model = SGLBClassifier(**FAST).fit(frame, y, weight)
    post = model.posterior(frame, y, weight, kind="paper", n_draws=20, n_steps=300)
    kept = weight > 0.0
    other = model.posterior(
        frame[kept], y[kept], weight[kept], kind="paper", n_draws=20, n_steps=300
    )
    assert (post.predict(frame) == other.predict(frame)).all()
    mean = post.mean(frame)[:, 1]
    assert np.corrcoef(mean, model.predict_proba(frame)[:, 1])[0, 1] > 0.8


def test_an_encoding_knows_which_features_are_levels(monkeypatch):
    seen = []

    def spy(*arguments):
        seen.append(encode(*arguments))
        return seen[-1]

    encode = encoded.encode_rows
    monkeypatch.setattr("sglb.prepare.preparation.encode_rows", spy)
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "few": pd.Categorical(rng.integers(0, 5, 500)),
            "number": rng.normal(size=500),
            "many": pd.Categorical(rng.integers(0, 200, 500)),
        }
    )
    model = SGLBClassifier(n_estimators=2).fit(frame, rng.integers(0, 2, 500))
    encoding = model._model.recipe.encoding
    assert isinstance(encoding, Encoding)
    assert encoding.is_level.sum() == 1
    assert (encoding.is_level == seen[0].is_level).all()


def test_long_chains_of_a_tiny_problem_have_mixed_and_short_ones_have_not():
    X, y, _ = two_leaves()
    model = SGLBRegressor(n_estimators=5, max_depth=1, random_state=0).fit(X, y)
    enough = model.posterior(X, y, kind="paper", temperature=1.0)  # "auto"
    rate = enough._posterior.n_relaxations / enough.plan.n_steps
    assert enough.plan.n_steps == np.ceil(100 / rate)
    summary = enough.summary()
    assert summary.warnings == []
    assert summary.share_converged == 1.0
    assert summary.ess_bulk.min() > 80.0
    assert summary.ess_tail.min() > 80.0
    assert summary.change is None
    cost = 0.5 * summary.knowledge / 100.0
    assert cost <= summary.cost < 1.3 * cost


def test_the_summary_of_short_chains_says_what_to_do():
    model = SGLBClassifier(**FAST).fit(*TWO)
    summary = model.posterior(*TWO, kind="paper", n_steps=200).summary()
    assert summary.share_converged < 0.5
    assert np.median(summary.rhat) > 1.2
    assert np.median(summary.ess_bulk) < 30.0
    (text,) = summary.warnings
    assert "the chains have not mixed. They last 2.5 relaxation times" in text
    assert "use n_steps=8100 or more, a smaller prior_variance, or kind='laplace'" in text
    assert text in str(summary)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 6}, "n_draws=6 is not allowed with kind='paper'; use a multiple of 4"),
        ({"n_draws": 40, "n_steps": 19}, "n_steps=19 is not allowed .* use at least 20"),
        ({"n_draws": 4, "n_steps": 7}, "use at least 8"),
    ],
)
def test_wrong_numbers_are_rejected(two, options, message):
    with pytest.raises(ValueError, match=message):
        two[0].posterior(*TWO, kind="paper", **options)


def test_a_loss_without_bounded_curvature_is_rejected():
    X, y, _ = two_leaves()
    model = SGLBRegressor(loss="poisson", **FAST).fit(X, np.round(y**2))
    with pytest.raises(ValueError, match="'poisson' has none; use kind='laplace'"):
        model.posterior(X, np.round(y**2), kind="paper", temperature=1.0)
