"""The sum of many trees, from raw feature values and from codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from problems import BLOCK_SIZES, THREADS, generators, make_table, make_trees
from sglb import _core
from sglb.bins import Bins

# Around a tile of 256 rows, too.
sizes = st.sampled_from([0, 1, 31, 33, 255, 256, 257])


def one_state(trees, out):
    """All trees as one state that starts at the first column of out (K, N)."""
    offset = out[:, 0].copy() if out.size else np.zeros(len(out))
    return np.array([len(trees[0])]), np.ones(1), offset


def predict(x, bins, trees, out, n_threads=1):
    found = np.full_like(out, np.nan)
    tables = bins.thresholds, bins.n_thresholds
    _core.predict(x, *tables, *trees, *one_state(trees, out), found, n_threads)
    return found


def predict_codes(columns, trees, out, n_threads=1):
    found = np.full_like(out, np.nan)
    _core.predict_codes(columns, *trees, *one_state(trees, out), found, n_threads)
    return found


def make_case(rng, n_rows, n_features, n_trees, max_depth, n_outputs, max_bins=16):
    bins = Bins.fit(make_table(rng, 100, n_features), max_bins)
    trees = make_trees(rng, bins.n_codes, n_trees, max_depth, n_outputs)
    start = np.repeat(rng.normal(size=(n_outputs, 1)), n_rows, axis=1)
    return make_table(rng, n_rows, n_features), bins, trees, start


@given(
    generators,
    sizes,
    st.integers(1, 7),
    st.sampled_from([0, 1, 5, 100]),
    st.integers(0, 10),
    st.integers(1, 3),
)
def test_predictions_equal_their_twin_bit_for_bit(
    rng, n_rows, n_features, n_trees, max_depth, n_outputs
):
    x, bins, trees, out = make_case(rng, n_rows, n_features, n_trees, max_depth, n_outputs)
    expected = reference.predict(x, bins.thresholds, bins.n_thresholds, *trees, out)
    assert np.array_equal(predict(x, bins, trees, out), expected)
    assert np.array_equal(predict_codes(bins.encode(x), trees, out), expected)


def test_the_deepest_trees_equal_their_twin():
    x, bins, trees, out = make_case(np.random.default_rng(0), 300, 5, 3, 16, 2, max_bins=255)
    expected = reference.predict(x, bins.thresholds, bins.n_thresholds, *trees, out)
    assert np.array_equal(predict(x, bins, trees, out), expected)


@pytest.mark.parametrize("n_rows", [257, *BLOCK_SIZES])
def test_predictions_do_not_depend_on_threads(n_rows):
    x, bins, trees, out = make_case(np.random.default_rng(1), n_rows, 6, 90, 6, 3)
    expected = predict(x, bins, trees, out)
    for n_threads in THREADS:
        assert np.array_equal(predict(x, bins, trees, out, n_threads), expected)
        assert np.array_equal(predict_codes(bins.encode(x), trees, out, n_threads), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.bool_])
def test_the_layout_of_a_table_does_not_matter(dtype):
    rng = np.random.default_rng(2)
    table = np.nan_to_num(make_table(rng, 600, 5), nan=0.0, posinf=9.0, neginf=-9.0)
    x = np.clip(table * 10, 0, 99).astype(dtype)
    bins = Bins.fit(x, 16)
    trees = make_trees(rng, bins.n_codes, 20, 4, 2)
    out = np.zeros((2, 600))
    expected = predict_codes(bins.encode(x), trees, out)
    for view in (x, np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], x[::-1].copy()[::-1]):
        assert np.array_equal(predict(view, bins, trees, out), expected)


def test_values_never_seen_in_training_follow_the_thresholds():
    bins = Bins.fit(np.array([[1.0], [2.0]]), 4)
    trees = (
        np.array([[0], [0]], np.int32),
        np.array([[0], [1]], np.uint8),  # a missing value goes left, then right
        np.array([[1], [1]], np.uint8),
        np.array([1, 1], np.int32),
        np.array([[[1.0], [2.0]], [[10.0], [20.0]]]),
    )
    x = np.array([[-np.inf], [1.5], [1.6], [np.inf], [np.nan]])
    found = predict(x, bins, trees, np.zeros((1, 5)))
    assert found.tolist() == [[11.0, 11.0, 22.0, 22.0, 21.0]]


def test_shapes_and_trees_that_do_not_fit_are_refused():
    x, bins, trees, out = make_case(np.random.default_rng(3), 10, 3, 4, 2, 1)
    features, lows, highs, depths, values = trees

    def refused(message, *trees, table=x, out=out):
        with pytest.raises(ValueError, match=message):
            predict(table, bins, trees, out)
        if table is x:
            with pytest.raises(ValueError, match=message):
                predict_codes(bins.encode(x), trees, out)

    refused("tree arrays must be", features[:3], lows, highs, depths, values)
    refused("tree arrays must be", features, lows, highs, depths[:3], values)
    refused("tree arrays must be", features, lows, highs, depths, values[:, :2].copy())
    refused("ends and factors must be", *trees, out=np.zeros((2, 10)))
    refused("out must be", *trees, out=np.zeros((1, 9)))
    refused("depth out of range", features, lows, highs, depths + 3, values)
    refused("depth out of range", features, lows, highs, depths - 3, values)
    used = np.full_like(depths, 2)
    refused("feature out of range", features + 3, lows, highs, used, values)
    refused("feature out of range", features - 3, lows, highs, used, values)
    refused("thresholds must be", *trees, table=np.zeros((10, 2)))
