"""A state of two parts, by an invented transition, through everything a model does."""

import numpy as np
import pytest

import reference_leaves
import sglb
from sglb import SGLBClassifier, SGLBRegressor
from sglb.samplers import Move
from sglb.transition import Transition

# Heavy ball: v <- .7 v + tree, f <- .98 f + .7 v + tree.
C, B = np.array([[0.98, 0.7], [0.0, 0.7]]), np.array([1.0, 1.0])


class HeavyBall:
    """A sampler whose state is the model and its velocity."""

    def move(self, step):
        return Move(0.05, noise=0.1, transition=Transition(C, B))


RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.2 * RNG.normal(size=300)
Z = RNG.normal(size=(50, 4))
MODELS = {
    "numbers": SGLBRegressor(
        sampler=HeavyBall(), n_estimators=30, max_depth=3, leaf_method="gradient", random_state=1
    ),
    "classes": SGLBClassifier(
        sampler=HeavyBall(), n_estimators=30, max_depth=3, leaf_method="gradient", random_state=1
    ),
}
TARGETS = {"numbers": Y, "classes": np.digitize(Y, [-0.5, 0.5])}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(X, TARGETS[request.param])


def by_hand(model, rows):
    """Raw scores (n_steps, n_outputs, n_rows) after each step, straight from the recursion."""
    trees = model.trace_.arrays()
    codes = model.trace_.bins.encode(rows)
    state = np.zeros((2, len(model.trace_.offset), len(rows)))
    raws = []
    for t, depth in enumerate(trees["depths"]):
        splits = (trees[name][t, :depth] for name in ("features", "lows", "highs"))
        tree = trees["values"][t][reference_leaves.leaf_indices(codes, *splits)].T
        state = np.einsum("ij,jkn->ikn", C, state) + B[:, None, None] * tree
        raws.append(model.trace_.offset[:, None] + state[0])
    return np.array(raws)


def test_predictions_are_those_of_the_recursion(model):
    expected = by_hand(model, Z)
    raw = model.predict_raw(Z)
    np.testing.assert_allclose(raw if raw.ndim > 1 else raw[:, None], expected[-1].T, atol=1e-10)
    trace = model.trace_
    np.testing.assert_allclose(trace.replay(trace.bins.encode(Z))[0], expected[-1], atol=1e-12)
    for k, stage in enumerate(trace.staged(Z)):
        np.testing.assert_allclose(stage, expected[k], atol=1e-12)


def test_any_state_and_several_at_once_are_those_of_the_recursion(model):
    expected = by_hand(model, Z)
    trace = model.trace_
    for k in (1, 2, 17, 30):
        np.testing.assert_allclose(trace.at(k).predict(Z), expected[k - 1], atol=1e-10)
    several = trace.predict(Z, states=[3, 11, 30])
    np.testing.assert_allclose(several, expected[[2, 10, 29]], atol=1e-10)


def test_a_saved_model_comes_back_with_its_transitions(model, tmp_path):
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    assert np.array_equal(again.trace_.C, np.broadcast_to(C, (30, 2, 2)))
    assert np.array_equal(again.trace_.b, np.broadcast_to(B, (30, 2)))
    assert np.array_equal(again.predict_raw(Z), model.predict_raw(Z))
    stages = zip(again.staged_predict_raw(Z), model.staged_predict_raw(Z), strict=True)
    assert all(np.array_equal(ours, theirs) for ours, theirs in stages)


def test_early_stopping_returns_to_the_state_of_that_step():
    y = TARGETS["numbers"]
    model = SGLBRegressor(
        sampler=HeavyBall(),
        n_estimators=200,
        max_depth=6,
        leaf_method="gradient",
        early_stopping_rounds=10,
        random_state=1,
    ).fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])])
    k = model.best_iteration_
    assert len(model.trace_) == k < 200
    np.testing.assert_allclose(model.predict(Z), by_hand(model, Z)[k - 1, 0], atol=1e-10)


def test_momentum_moves_faster_than_a_chain_without():
    # The velocity sums up 1 / (1 - .7) trees, so that the same rate comes further in a few steps.
    plain = SGLBRegressor(
        sampler="plain", learning_rate=0.05, n_estimators=15, leaf_method="gradient"
    ).fit(X, Y)
    heavy = SGLBRegressor(sampler=HeavyBall(), n_estimators=15, leaf_method="gradient").fit(X, Y)
    assert heavy.score(X, Y) > plain.score(X, Y) + 0.2
