"""Kernels of frozen chains against their twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_posterior as reference
from law import leaf_of
from problems import generators, make_splits, make_trace, seeds, steps
from sglb import _core
from sglb.posterior import (
    TreePartitions,
)
from sglb.posterior.energies import rounding_magic
from sglb.structure import Structure
from test_frozen import THREADS


def random_state(rng, n_rows, n_outputs, n_draws):
    """A state with rows of very different size, and the leaves of its rows."""
    size = 10.0 ** rng.integers(-8, 8, (1, n_rows, 1))
    state = rng.normal(size=(n_outputs, n_rows, n_draws)) * size
    return state, rng.integers(0, 5, n_rows).astype(np.int32)


shapes = st.tuples(st.sampled_from([0, 1, 7, 100]), st.integers(1, 3), st.sampled_from([1, 5, 16]))


@given(generators, shapes, st.booleans())
def test_sums_of_curvature_equal_their_twin(rng, shape, block):
    state, leaf = random_state(rng, *shape)
    diagonal = rng.random(state.shape[:2])
    factor = rng.random(state.shape[:2]) if block else None
    magic = rounding_magic(1e11, np.ones(state.shape[2]))
    sums = np.empty((6, len(state), state.shape[2]))
    _core.sum_curvature(state, diagonal, factor, leaf, magic, sums, 1)
    expected = reference.sum_curvature(state, diagonal, factor, leaf, magic, 6)
    assert np.array_equal(sums, expected)


@given(generators, shapes, st.booleans())
def test_sums_of_gradients_equal_their_twin(rng, shape, weighted):
    gradient, leaf = random_state(rng, *shape)
    weight = rng.random(len(leaf)) if weighted else None
    magic = rounding_magic(1e11, np.ones(gradient.shape[2]))
    sums = np.empty((6, len(gradient), gradient.shape[2]))
    _core.sum_gradient(gradient, weight, leaf, magic, sums, 1)
    assert np.array_equal(sums, reference.sum_gradient(gradient, weight, leaf, magic, 6))


@given(generators, shapes)
def test_a_step_of_the_state_equals_its_twin(rng, shape):
    state, leaf = random_state(rng, *shape)
    values = rng.normal(size=(6, len(state), state.shape[2]))
    expected, bounds = reference.advance_draws(leaf, values, 0.9, state)
    largest = np.empty(state.shape[2])
    _core.advance_draws(leaf, values, 0.9, state, largest, 1)
    assert np.array_equal(state, expected)
    assert np.array_equal(largest, bounds)


@given(generators, shapes, st.integers(1, 20), st.integers(1, 3))
def test_values_of_all_partitions_equal_their_twin(rng, shape, n_partitions, n_threads):
    state, _ = random_state(rng, *shape)
    n_leaves = rng.integers(1, 7, n_partitions)
    first = np.cumsum(n_leaves) - n_leaves
    values = rng.normal(size=(n_leaves.sum(), len(state), state.shape[2]))
    begin, end = sorted(rng.integers(0, state.shape[1], 2, endpoint=True).tolist())
    leaves = rng.integers(0, n_leaves[:, None], (n_partitions, end - begin)).astype(np.int32)
    expected = state.copy()
    expected[:, begin:end] = reference.add_partitions(leaves, first, values, state[:, begin:end])
    _core.add_partitions(leaves, first, values, begin, state, n_threads)
    assert np.array_equal(state, expected)


def test_values_of_partitions_reject_rows_and_leaves_out_of_range():
    state, values = np.zeros((1, 4, 2)), np.zeros((3, 1, 2))
    first, leaves = np.array([0, 2]), np.zeros((2, 3), dtype=np.int32)
    with pytest.raises(ValueError, match="first_row"):
        _core.add_partitions(leaves, first, values, 2, state, 1)
    leaves[1, 2] = 1  # the second partition has a single leaf
    with pytest.raises(ValueError, match="leaf out of range"):
        _core.add_partitions(leaves, first, values, 0, state, 1)


@given(seeds, steps, st.integers(0, 1000), st.integers(1, 5), st.integers(1, 3), st.integers(1, 17))
def test_normals_of_leaves_and_draws_equal_their_twin(seed, step, first, n_leaves, n_outputs, n):
    out = np.empty((n_leaves, n_outputs, n))
    _core.draw_normals(_core.Draws(seed, step), reference.DRAW, first, out)
    expected = reference.draw_normals(seed, step, reference.DRAW, first, out.shape)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_no_two_leaves_outputs_draws_or_steps_share_a_normal():
    drawn = np.empty((2, 2, 7, 3, 64))
    for role in (0, 1):
        for step in (0, 1):
            draws = _core.Draws(5, step)
            _core.draw_normals(draws, reference.PRIOR + role, 0, drawn[role, step])
    assert len(np.unique(drawn)) == drawn.size


@pytest.mark.parametrize("n_draws", [1, 3, 4, 16, 20, 63, 64, 100])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_predictions_equal_their_twin_for_any_number_of_threads(n_draws, n_outputs):
    rng = np.random.default_rng(n_draws)
    n_leaves = rng.integers(1, 9, 37)
    first = np.cumsum(n_leaves) - n_leaves
    leaves = (rng.random((37, 5000 if n_draws == 20 else 300)) * n_leaves[:, None]).astype(np.int32)
    values = rng.normal(size=(n_leaves.sum(), n_outputs, n_draws)).astype(np.float32)
    expected = reference.add_leaf_draws(leaves, first, values)
    for n_threads in THREADS:
        out = np.empty(expected.shape)
        _core.add_leaf_draws(leaves, first, values, out, n_threads)
        assert np.array_equal(out, expected)


def test_the_leaves_of_trees_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    trace = make_trace(rng, 20)
    columns = rng.integers(0, trace.bins.n_codes[:, None], (6, 3000)).astype(np.uint8)
    for n_threads in THREADS:
        trees = TreePartitions(trace, columns, n_threads)
        whole = trees.leaves(0, 3000)
        assert trees.n_leaves.tolist() == [1 << depth for depth in trace.depths]
        for t in range(20):
            expected = leaf_of(trace.structure(t), columns)
            assert np.array_equal(whole[t], expected)
            assert np.array_equal(trees.leaf(t), expected)
        assert np.array_equal(trees.leaves(700, 1900), whole[:, 700:1900])


@pytest.mark.parametrize("depth", [0, 1, 8, 9, 16])
def test_the_leaves_of_deep_trees_are_those_of_the_definition(depth):
    rng = np.random.default_rng(depth)
    structure = Structure(*make_splits(rng, [7, 7, 7], depth))
    columns = rng.integers(0, 7, (3, 1300)).astype(np.uint8)
    result = np.empty((2, 1300), dtype=np.int32)
    _core.tree_leaves(columns, [structure, structure], 0, result, 1)
    assert (result == leaf_of(structure, columns)).all()


def test_arguments_that_make_no_sense_are_rejected():
    state, leaf = np.zeros((1, 3, 2)), np.array([0, 1, 2], dtype=np.int32)
    largest, magic = np.empty(2), np.ones(2)
    with pytest.raises(ValueError, match="leaf out of range"):
        _core.advance_draws(leaf, np.zeros((2, 1, 2)), 1.0, state, largest, 1)
    with pytest.raises(ValueError, match="leaf out of range"):
        _core.advance_draws(-leaf, np.zeros((3, 1, 2)), 1.0, state, largest, 1)
    with pytest.raises(ValueError, match=r"must be \(K, N, M\)"):
        _core.sum_gradient(state, None, leaf[:2], magic, np.zeros((3, 1, 2)), 1)
    with pytest.raises(ValueError, match=r"magic \(M,\)"):
        _core.sum_curvature(state, np.ones((1, 3)), None, leaf, magic[:1], np.zeros((3, 1, 2)), 1)
    with pytest.raises(ValueError, match="leaf out of range"):
        _core.add_leaf_draws(
            leaf[None], np.zeros(1, np.int64), np.zeros((2, 1, 2), np.float32), state, 1
        )
