"""Every sampler by its name: what any chain can do, of all estimators and losses of rankings."""

import numpy as np
import pytest

import sglb
from interrupted import killed_after
from sglb import Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor, archive
from sglb.samplers import SAMPLERS

RNG = np.random.default_rng(3)
X = RNG.normal(size=(240, 3))
NUMBERS = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=240)
TWO, THREE = NUMBERS > 0.0, np.digitize(NUMBERS, [-0.5, 0.5])
RELEVANCE, QUERIES = THREE.astype(float), np.repeat(np.arange(24), 10)
SMALL = {"n_estimators": 40, "max_depth": 3, "random_state": 0, "n_jobs": 1}
OWN = {"stochastic": {"subsample": 0.5}}
TARGETS = {
    "numbers": (SGLBRegressor, {}, NUMBERS, {}),
    "a loss with valleys": (SGLBRegressor, {"loss": "welsch"}, NUMBERS, {}),
    "two classes": (SGLBClassifier, {}, TWO, {}),
    "smoothed 0-1 loss": (SGLBClassifier, {"loss": "sla"}, TWO, {}),
    "three classes": (SGLBClassifier, {}, THREE, {}),
    "rankings": (SGLBRanker, {}, RELEVANCE, {"group": QUERIES}),
    "a metric of rankings": (
        SGLBRanker,
        {"loss": "stochastic_rank"},
        RELEVANCE,
        {"group": QUERIES},
    ),
}
PAIRS = [
    (name, target)
    for name in SAMPLERS
    for target in TARGETS
    # Exchanges need the sum of a loss that steps follow (`test_dynamics`).
    if (name, target) != ("tempering", "a metric of rankings")
]


def unfitted(name, target, **more):
    kind, parameters, y, groups = TARGETS[target]
    return kind(sampler=name, **SMALL | parameters | OWN.get(name, {}) | more), y, groups


def scores(model, rows=X, **stage):
    raw = model.predict_raw if hasattr(model, "predict_raw") else model.predict
    return np.asarray(raw(rows, **stage))


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_a_model_learns_and_its_file_predicts_and_ends_its_stages_alike(name, target, tmp_path):
    model, y, groups = unfitted(name, target)
    model.fit(X, y, **groups)
    raw = scores(model)
    assert np.ptp(raw) > 0.0
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    assert np.array_equal(scores(again), raw)
    assert archive.dumps(again._model) == archive.dumps(model._model)
    *_, last = model.staged_predict(X)
    prediction = model.predict(X)
    same = np.array_equal if prediction.dtype.kind in "bUOi" else np.allclose
    assert same(last, prediction)
    np.testing.assert_allclose(scores(model[:15]), scores(again[:15]))
    assert not np.allclose(scores(model[:15]), raw)


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_early_stopping_ends_with_the_state_of_the_best_step(name, target):
    model, y, groups = unfitted(name, target, early_stopping_rounds=5, learning_rate=0.3)
    sets = {"eval_set": [(X[:120], y[:120])]}
    if groups:
        sets["eval_group"] = [QUERIES[:120]]
    model.fit(X, y, **groups, **sets)
    ((metric, recorded),) = next(iter(model.evals_result_.values())).items()
    higher = bool(groups) and metric != "loss"
    best = int(np.argmax(recorded) if higher else np.argmin(recorded))
    assert model.best_iteration_ == len(model.trace_) == best + 1


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("target", ["numbers", "rankings"])
def test_a_killed_fit_is_resumed_to_the_same_bytes(name, target, tmp_path):
    model, y, groups = unfitted(name, target)
    whole = archive.dumps(model.fit(X, y, **groups)._model)
    kept = {"callbacks": Checkpoint(tmp_path / "fit", 3), "resume_from": tmp_path / "fit"}
    for n_steps in (7, 19):
        with killed_after(n_steps) as ends:
            model.fit(X, y, **groups, **kept)
        assert ends
    assert archive.dumps(model.fit(X, y, **groups, **kept)._model) == whole


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("target", ["numbers", "two classes"])
def test_a_posterior_is_drawn_about_its_model(name, target):
    model, y, _ = unfitted(name, target)
    draws = model.fit(X, y).posterior(X, y, n_draws=10)
    assert draws.n_draws == 10
    assert (draws.std(X[:20]) > 0.0).all()


@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"tempering"}))
def test_several_chains_share_a_model(name):
    model, y, _ = unfitted(name, "numbers", n_chains=2)
    if name == "plain":
        with pytest.warns(UserWarning, match="the chains are equal"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    by_chain = model.predict_raw_chains(X)
    np.testing.assert_allclose(by_chain.mean(axis=0), model.predict(X))
    alone, y, _ = unfitted(name, "numbers")
    assert np.array_equal(by_chain[0], alone.fit(X, y).predict(X))
