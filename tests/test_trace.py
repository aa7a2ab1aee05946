"""The chain as plain arrays: any of its states is a weight vector."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_leaves
from problems import THREADS, generators, make_table, make_trace
from sglb.bins import Bins
from sglb.samplers import Move
from sglb.structure import Structure
from sglb.trace import Trace
from sglb.transition import spectral_radius


def state(trace, X, k):
    """The offset plus weighted trees, straight from the definition."""
    trees = trace.arrays()
    weights = reference_leaves.weights(trees["C"][:k], trees["b"][:k])
    values = trees["values"][:k] * weights[:, None, None]
    structure = [trees[name][:k] for name in ("features", "lows", "highs", "depths")]
    return trace.offset[:, None] + reference_leaves.sum_trees(
        trace.bins.encode(X), *structure, values
    )


parts = st.integers(1, 3)  # of a state


@given(generators, st.sampled_from([0, 1, 2, 17, 40]), st.integers(1, 3), st.integers(0, 40), parts)
def test_every_state_is_the_sum_of_its_weighted_trees(rng, n_trees, n_outputs, k, size):
    trace = make_trace(rng, n_trees, n_outputs, size=size)
    X = make_table(rng, 33, 6)
    k = min(k, n_trees)
    expected = state(trace, X, k)
    np.testing.assert_allclose(trace.at(k).predict(X), expected, rtol=0, atol=1e-12)
    codes = trace.bins.encode(X)
    np.testing.assert_allclose(trace.at(k).replay(codes)[0], expected, rtol=0, atol=1e-12)


@given(generators, st.integers(0, 12), parts)
def test_weights_are_products_of_later_transitions(rng, n_trees, size):
    trace = make_trace(rng, n_trees, size=size)
    trees = trace.arrays()
    for k in range(n_trees + 1):
        expected = reference_leaves.weights(trees["C"][:k], trees["b"][:k])
        np.testing.assert_allclose(trace.weights(k)[:, 0], expected, rtol=1e-12, atol=1e-14)
    assert np.array_equal(trace.weights(), trace.weights(n_trees))


def test_weights_of_three_steps_by_hand():
    trace = make_trace(np.random.default_rng(1), 3)
    trace.C[:, 0, 0] = [0.5, 0.25, 0.125]
    assert trace.weights()[:, 0].tolist() == [0.03125, 0.125, 1.0]
    assert trace.weights(2)[:, 0].tolist() == [0.25, 1.0]
    assert trace.weights(1)[:, 0].tolist() == [1.0]
    assert trace.weights(0)[:, 0].tolist() == []


def test_momentum_of_two_steps_by_hand():
    # v <- v / 2 + tree, f <- f + v / 2 + tree: C = [[1, 1/2], [0, 1/2]], b = [1, 1].
    trace = make_trace(np.random.default_rng(1), 2, size=2)
    trace.C[:] = [[1.0, 0.5], [0.0, 0.5]]
    trace.b[:] = 1.0
    assert trace.weights(1).tolist() == [[1.0, 1.0]]
    assert trace.weights(2).tolist() == [[1.5, 0.5], [1.0, 1.0]]


@given(generators, st.integers(1, 3), st.lists(st.integers(0, 20), max_size=6), parts)
def test_several_states_in_one_traversal_equal_one_at_a_time(rng, n_outputs, states, size):
    trace = make_trace(rng, 20, n_outputs, size=size)
    X = make_table(rng, 31, 6)
    result = trace.predict(X, states=states)
    assert result.shape == (len(states), n_outputs, 31)
    for raw, k in zip(result, states, strict=True):
        np.testing.assert_allclose(raw, trace.at(k).predict(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("size", [1, 2])
def test_stages_are_the_replays_of_the_states(n_outputs, size):
    rng = np.random.default_rng(2)
    trace = make_trace(rng, 20, n_outputs, size=size)
    X = make_table(rng, 100, 6)
    codes = trace.bins.encode(X)
    stages = list(trace.staged(X))
    assert len(stages) == 20
    for k, stage in enumerate(stages, start=1):
        assert np.array_equal(stage, trace.at(k).replay(codes)[0])


def test_stages_are_arrays_of_their_own():
    rng = np.random.default_rng(3)
    trace = make_trace(rng, 5)
    first, *_, last = trace.staged(make_table(rng, 10, 6))
    assert not np.shares_memory(first, last)


def bound_of(trace, k=0):
    """What `ensemble.h` allows between the prediction of output k and the chain's own score."""
    trees, n = trace.arrays(), len(trace)
    values = trees["values"][:, :, k]
    weighted = values * reference_leaves.weights(trees["C"], trees["b"])[:, None]
    unit = math.ldexp(1.0, reference_leaves.leaf_unit(trees["depths"], weighted))
    reach = most = 0.0
    for shrink, value in zip(trees["C"][:, 0, 0], np.abs(values).max(axis=1), strict=True):
        reach = shrink * reach + value
        most = max(most, reach)
    return n / 2 * unit + 8 * (n + 1) * 2.0**-53 * (most + abs(trace.offset[k]))


@pytest.mark.parametrize("n_rows", [0, 1, 33, 8193])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("n_trees", [1, 20, 300])
def test_prediction_is_as_close_to_replay_as_stated(n_trees, scale, n_rows):
    rng = np.random.default_rng(4)
    trace = make_trace(rng, n_trees, 2)
    trace.values[:] *= scale
    trace.offset *= scale
    X = make_table(rng, n_rows, 6)
    replayed = trace.replay(trace.bins.encode(X))[0]
    for k, difference in enumerate(np.abs(trace.predict(X) - replayed)):
        assert difference.max(initial=0.0) <= bound_of(trace, k) < 2e-11 * scale
    for n_threads in THREADS:
        assert np.array_equal(trace.predict(X, n_threads), trace.predict(X))
        assert np.array_equal(trace.replay(trace.bins.encode(X, n_threads), n_threads)[0], replayed)


def test_the_offset_is_never_shrunk():
    trace = make_trace(np.random.default_rng(5), 30, 2)
    trace.values[:] = 0.0
    X = make_table(np.random.default_rng(6), 20, 6)
    expected = np.repeat(trace.offset[:, None], 20, axis=1)
    assert np.array_equal(trace.predict(X), expected)
    replayed = trace.replay(trace.bins.encode(X))[0]
    np.testing.assert_allclose(replayed, expected, rtol=1e-14)


def test_an_empty_chain_is_its_offset():
    trace = make_trace(np.random.default_rng(7), 0, 2)
    X = make_table(np.random.default_rng(8), 3, 6)
    assert len(trace) == 0
    expected = np.repeat(trace.offset[:, None], 3, axis=1)
    assert np.array_equal(trace.predict(X), expected)
    assert list(trace.staged(X)) == []
    assert (trace.feature_gains() == 0).all()


@given(generators, st.integers(0, 40))
def test_a_chain_built_from_its_arrays_is_the_same_chain(rng, n_trees):
    trace = make_trace(rng, n_trees, 2)
    copy = Trace.from_arrays(trace.bins, trace.offset, trace.arrays())
    for name, array in trace.arrays().items():
        assert np.array_equal(copy.arrays()[name], array)
        assert copy.arrays()[name].dtype == array.dtype
    for t in range(n_trees):
        for ours, theirs in zip(copy.structure(t), trace.structure(t), strict=True):
            assert np.array_equal(ours, theirs)


def test_a_state_can_be_continued_without_touching_the_chain_it_came_from():
    rng = np.random.default_rng(9)
    trace = make_trace(rng, 10)
    before = {name: array.copy() for name, array in trace.arrays().items()}
    part = trace.at(4)
    depth = trace.depths[5]
    part.append(trace.structure(5), np.zeros((1 << depth, 1)), Move(0.1))
    part.values[:] = 0.0
    assert len(part) == 5
    for name, array in trace.arrays().items():
        assert np.array_equal(array, before[name])


def test_gains_are_summed_by_feature_and_never_negative():
    bins = Bins.fit(make_table(np.random.default_rng(10), 50, 3), 8)
    trace = Trace(bins, 2, np.zeros(1))
    for features, gains in (([0, 2], [1.0, 2.0]), ([2], [4.0]), ([2, 0], [-3.0, 0.5])):
        depth = len(features)
        structure = Structure(
            np.array(features, np.int32),
            np.zeros(depth, np.uint8),
            np.ones(depth, np.uint8),
        )
        trace.append(structure, np.zeros((1 << depth, 1)), Move(0.1))
        trace.arrays()["gains"][-1, :depth] = gains
    assert trace.feature_gains().tolist() == [1.5, 0.0, 6.0]


@pytest.mark.parametrize("k", [-1, 4])
def test_a_state_the_chain_never_was_in_is_refused(k):
    trace = make_trace(np.random.default_rng(11), 3)
    X = make_table(np.random.default_rng(12), 2, 6)
    for ask in (trace.at, trace.weights, lambda k: trace.predict(X, states=[k])):
        with pytest.raises(ValueError, match=f"state {k} does not exist: the chain has 3 steps"):
            ask(k)


def test_the_temperature_of_each_step_is_kept():
    trace = make_trace(np.random.default_rng(0), 0)
    for noise in (0.0, 1.0, 2.0):
        structure = Structure(*(np.empty(0, dtype) for dtype in (np.int32, np.uint8, np.uint8)))
        trace.append(structure, np.ones((1, 1)), Move(0.1, noise=noise))
    expected = [0.0, 0.05, 0.2]  # noise^2 * learning rate / 2
    for same in (trace, trace.at(3), Trace.from_arrays(trace.bins, trace.offset, trace.arrays())):
        assert same.temperatures == pytest.approx(expected)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_spectral_radius_is_the_largest_eigenvalue(size):
    matrices = np.random.default_rng(size).normal(size=(200, size, size))
    expected = np.abs(np.linalg.eigvals(matrices)).max(axis=1)
    np.testing.assert_allclose(spectral_radius(matrices), expected, rtol=1e-7)
    assert spectral_radius(matrices[7]) == pytest.approx(expected[7], rel=1e-7)
