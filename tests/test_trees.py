"""Structures, and the arrays that trees are kept in, as native objects."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems import N_CODES, generators, make_splits, make_trace
from sglb import _core
from sglb.samplers import Move
from sglb.transition import KEEP, Transition


@given(generators, st.integers(0, 16))
def test_a_structure_gives_back_what_it_was_made_of(rng, depth):
    splits = make_splits(rng, N_CODES, depth)
    structure = _core.Structure(*splits)
    assert (structure.depth, structure.n_leaves) == (depth, 1 << depth)
    named = structure.features, structure.lows, structure.highs
    for again in (named, tuple(structure), tuple(pickle.loads(pickle.dumps(structure)))):
        for expected, result in zip(splits, again, strict=True):
            assert result.dtype == expected.dtype
            assert np.array_equal(result, expected)


def test_a_structure_does_not_change_with_its_arrays():
    splits = make_splits(np.random.default_rng(0), N_CODES, 3)
    structure = _core.Structure(*splits)
    before = [array.copy() for array in splits]
    for given_array, read in zip(splits, structure, strict=True):
        given_array[:] = 0
        read[:] = 1
    assert all(np.array_equal(a, b) for a, b in zip(before, structure, strict=True))


def test_a_structure_refuses_other_types_and_lengths():
    features, lows, highs = make_splits(np.random.default_rng(1), N_CODES, 3)
    for wrong in [
        (features.astype(np.int64), lows, highs),
        (features.tolist(), lows, highs),
        (features, lows.astype(np.int32), highs),
        (features, lows, None),
        (features[::2], lows[::2], highs[::2]),
    ]:
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _core.Structure(*wrong)
    with pytest.raises(ValueError, match="one length, at most 16"):
        _core.Structure(features, lows[:2].copy(), highs)


class Store:
    """Room for three trees of at most two splits and two outputs."""

    def __init__(self):
        places = 3, 2
        self.arrays = {
            "features": np.zeros(places, np.int32),
            "lows": np.zeros(places, np.uint8),
            "highs": np.zeros(places, np.uint8),
            "depths": np.zeros(3, np.int32),
            "gains": np.zeros(places),
            "values": np.zeros((3, 4, 2)),
            "cover": np.zeros((3, 4)),
            "moves": np.zeros((3, 3)),
        }

    def trees(self, **changed):
        return _core.Trees(*(self.arrays | changed).values())


def structure_of(depth):
    return _core.Structure(*make_splits(np.random.default_rng(depth), N_CODES, depth))


def test_a_tree_is_written_to_its_row_alone():
    store = Store()
    trees = store.trees()
    structure = structure_of(1)
    values, by = np.array([[1.0, 2.0], [3.0, 4.0]]), Transition([[0.75]], [2.0])
    trees.write(1, structure, values, None, None, 0.0, by.core, 0.5)
    for name, expected in zip(("features", "lows", "highs"), structure, strict=True):
        assert store.arrays[name].tolist() == [[0, 0], [expected[0], 0], [0, 0]]
    assert store.arrays["depths"].tolist() == [0, 1, 0]
    assert store.arrays["moves"].tolist() == [[0, 0, 0], [0.75, 2, 0.5], [0, 0, 0]]
    assert store.arrays["values"].tolist() == [
        [[0, 0]] * 4,
        [[1, 2], [3, 4], [0, 0], [0, 0]],
        [[0, 0]] * 4,
    ]
    assert all(np.array_equal(a, b) for a, b in zip(trees.structure(1), structure, strict=True))
    assert trees.structure(0).depth == 0


def test_trees_refuse_what_does_not_fit():
    store = Store()
    trees = store.trees()
    good = 0, structure_of(2), np.zeros((4, 2)), None, None, 0.0, KEEP.core, 1.0
    trees.write(*good)
    for position, wrong, message in [
        (0, 3, "tree out of range"),
        (0, -1, "tree out of range"),
        (1, structure_of(3), "at most D"),
        (1, structure_of(1), "values must be"),
        (2, np.zeros((3, 2)), "values must be"),
        (2, np.zeros((4, 1)), "values must be"),
        (6, Transition(np.eye(2), np.ones(2)).core, "of this chain"),
    ]:
        with pytest.raises(ValueError, match=message):
            trees.write(*good[:position], wrong, *good[position + 1 :])
    for t in (-1, 3):
        with pytest.raises(ValueError, match="tree out of range"):
            trees.structure(t)
    store.arrays["depths"][0] = 3
    with pytest.raises(ValueError, match="depth out of range"):
        trees.structure(0)
    store = Store()
    for name in ("lows", "highs", "gains", "depths", "cover", "moves", "values"):
        with pytest.raises(ValueError, match="must be"):
            store.trees(**{name: store.arrays[name][:2].copy()})


@pytest.mark.parametrize(
    "clone", [copy.deepcopy, lambda single: pickle.loads(pickle.dumps(single))]
)
def test_a_copied_ensemble_is_the_same_chain_and_goes_on_by_itself(clone):
    rng = np.random.default_rng(3)
    trace = make_trace(rng, n_trees=5)
    again = clone(trace)
    X = rng.normal(size=(40, trace.n_features))
    assert np.array_equal(again.predict(X), trace.predict(X))
    last = trace.structure(4)
    for single, value in ((again, 1.0), (trace, 2.0)):
        values = np.full((last.n_leaves, trace.n_outputs), value)
        single.append(last, values, Move(0.1, transition=Transition.shrink(0.5)))
    predictions = [single.predict(X) for single in (again, trace)]
    assert np.allclose(predictions[1] - predictions[0], 1.0)
