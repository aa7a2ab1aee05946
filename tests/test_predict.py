"""The sum of many trees, from raw feature values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_bins
import reference_leaves
from problems import BLOCK_SIZES, THREADS, generators, make_table, make_trees
from sglb import _core
from sglb.bins import Bins

# Around a tile of 256 rows, too.
sizes = st.sampled_from([0, 1, 31, 33, 255, 256, 257])


def one_state(bins, trees, out):
    """All trees as one state that starts at the first column of out (K, N)."""
    offset = out[:, 0].copy() if out.size else np.zeros(len(out))
    state = np.array([len(trees[0])]), np.ones(1), offset
    return _core.Predictor(bins.thresholds, bins.n_thresholds, *trees, *state)


def predict(x, bins, trees, out, n_threads=1):
    found = np.full_like(out, np.nan)
    _core.predict(one_state(bins, trees, out), x, found, n_threads)
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
    expected = reference_leaves.predict(x, bins.thresholds, bins.n_thresholds, *trees, out)
    assert np.array_equal(predict(x, bins, trees, out), expected)


def test_the_deepest_trees_equal_their_twin():
    x, bins, trees, out = make_case(np.random.default_rng(0), 300, 5, 3, 16, 2, max_bins=255)
    expected = reference_leaves.predict(x, bins.thresholds, bins.n_thresholds, *trees, out)
    assert np.array_equal(predict(x, bins, trees, out), expected)


@pytest.mark.parametrize("n_rows", [257, *BLOCK_SIZES])
def test_predictions_do_not_depend_on_threads(n_rows):
    x, bins, trees, out = make_case(np.random.default_rng(1), n_rows, 6, 90, 6, 3)
    expected = predict(x, bins, trees, out)
    for n_threads in THREADS:
        assert np.array_equal(predict(x, bins, trees, out, n_threads), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.bool_])
def test_the_layout_of_a_table_does_not_matter(dtype):
    rng = np.random.default_rng(2)
    table = np.nan_to_num(make_table(rng, 600, 5), nan=0.0, posinf=9.0, neginf=-9.0)
    x = np.clip(table * 10, 0, 99).astype(dtype)
    bins = Bins.fit(x, 16)
    trees = make_trees(rng, bins.n_codes, 20, 4, 2)
    out = np.zeros((2, 600))
    expected = reference_leaves.predict_codes(bins.encode(x), *trees, out)
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


def leaf_of_code(bins, feature=0):
    """One tree a code of a feature, 1 for greater codes and 0 for the rest: the sum is the code."""
    codes = np.arange(bins.n_codes[feature], dtype=np.uint8)[:, None]
    return (
        np.full_like(codes, feature, dtype=np.int32),
        codes * 0,
        codes,  # left of split c are the codes 0 .. c
        np.ones(len(codes), np.int32),
        np.tile([[0.0], [1.0]], (len(codes), 1, 1)),
    )


def codes_by_prediction(x, bins):
    """The codes of x (N, 1) that prediction sees."""
    return predict(x, bins, leaf_of_code(bins), np.zeros((1, len(x))))[0]


@pytest.mark.parametrize("n_rows", [1, 8, 9, 16, 17, 300])
@pytest.mark.parametrize("n_distinct", [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 255])
def test_prediction_finds_the_codes_of_any_number_of_thresholds(n_distinct, n_rows):
    rng = np.random.default_rng(n_distinct)
    bins = Bins.fit(np.sort(rng.normal(size=(n_distinct, 1)), axis=0), 255)
    x = rng.normal(size=(n_rows, 1))
    x[1::5] = np.nan
    assert np.array_equal(codes_by_prediction(x, bins), bins.encode(x)[0])
    at = bins.thresholds[0, : bins.n_thresholds[0]]
    x[::3] = np.resize(at, x[::3].shape) if len(at) else 0.0
    assert np.array_equal(codes_by_prediction(x, bins), bins.encode(x)[0])


NEIGHBOURS = np.float32(1.0) + np.arange(40, dtype=np.float32) * np.finfo(np.float32).eps
AWKWARD = {
    "equal in single precision": 1.0 + np.arange(40) * 1e-12,
    "whole numbers past single precision": 2**60 + np.arange(40, dtype=np.int64) * 4096,
    "neighbours in single precision": NEIGHBOURS,
    "beyond single precision": np.array([-1e300, -1e39, -1.0, 0.0, 1.0, 1e39, 1e300]),
    "below single precision": np.array([-1e-300, -0.0, 0.0, 1e-300, 1e-46, 1e-45]),
    "infinite": np.array([-np.inf, -1.0, 1.0, np.inf]),
}


@pytest.mark.parametrize("n_rows", [7, 500])
@pytest.mark.parametrize("kind", AWKWARD)
def test_values_that_single_precision_cannot_tell_apart_get_their_codes(kind, n_rows):
    values = AWKWARD[kind][:, None]
    bins = Bins.fit(values, 255)
    x = np.random.default_rng(0).choice(values, n_rows)
    assert np.array_equal(codes_by_prediction(x, bins), bins.encode(x)[0])
    assert np.array_equal(
        bins.encode(x), reference_bins.encode(x, bins.thresholds, bins.n_thresholds)
    )


def test_shapes_and_trees_that_do_not_fit_are_refused():
    x, bins, trees, out = make_case(np.random.default_rng(3), 10, 3, 4, 2, 1)
    features, lows, highs, depths, values = trees

    def refused(message, *trees, table=x, out=out):
        with pytest.raises(ValueError, match=message):
            predict(table, bins, trees, out)

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
    refused("x must be", *trees, table=np.zeros((10, 2)))
