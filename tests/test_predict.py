"""The sum of many trees, from raw feature values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_bins
import reference_leaves
from problems import BLOCK_SIZES, THREADS, core_predictor, generators, make_table, make_trees
from sglb import _core
from sglb.bins import Bins

# One by one, around a vector of 128 rows and around a tile of 256.
sizes = st.sampled_from([0, 1, 2, 3, 8, 9, 31, 127, 129, 255, 256, 257])
# Up to where sums nearly overflow, down to where doubles have few bits left.
scales = st.sampled_from([1.0, 1e-30, 1e30, 1e-310, 1e305])


def states_of(trees, out, ends=None):
    """All trees as one state, or as several, that start at the first column of out (K, N)."""
    offset = out[:, 0].copy() if out.size else np.zeros(len(out))
    ends = np.array([len(trees[0])] if ends is None else ends, dtype=np.int64)
    return ends, np.linspace(1.0, 0.5, len(ends)), offset


def make_predictor(bins, trees, out, ends=None):
    states = states_of(trees, out, ends)
    return core_predictor(bins.thresholds, bins.n_thresholds, trees, *states)


def predict(x, bins, trees, out, n_threads=1):
    result = np.full_like(out, np.nan)
    _core.predict(make_predictor(bins, trees, out), x, result, n_threads)
    return result


def twin(x, bins, trees, out, ends=None):
    states = states_of(trees, out, ends)
    result = reference_leaves.predict(x, bins.thresholds, bins.n_thresholds, *trees, *states)
    return result.reshape(len(result) * len(out), out.shape[1])


def make_case(rng, n_rows, n_features, n_trees, max_depth, n_outputs, max_bins=16):
    bins = Bins.fit(make_table(rng, 100, n_features), max_bins)
    trees = make_trees(rng, bins.n_codes, n_trees, max_depth, n_outputs)
    start = np.repeat(rng.normal(size=(n_outputs, 1)), n_rows, axis=1)
    return make_table(rng, n_rows, n_features), bins, trees, start


@given(
    generators,
    sizes,
    st.integers(1, 7),
    st.sampled_from([0, 1, 5, 100, 150]),
    st.integers(0, 10),
    st.integers(1, 3),
    scales,
)
def test_predictions_equal_their_twin_bit_for_bit(
    rng, n_rows, n_features, n_trees, max_depth, n_outputs, scale
):
    x, bins, trees, out = make_case(rng, n_rows, n_features, n_trees, max_depth, n_outputs)
    trees[4][:] *= scale
    expected = twin(x, bins, trees, out)
    assert np.array_equal(predict(x, bins, trees, out), expected)


@given(generators, sizes, st.integers(0, 9), st.lists(st.integers(0, 60), max_size=5))
def test_states_equal_their_twin_bit_for_bit(rng, n_rows, max_depth, ends):
    x, bins, trees, out = make_case(rng, n_rows, 4, 60, max_depth, 2)
    # Units differ by stretch and output, and a stretch of zeros has one, too.
    trees[4][:] *= np.exp(5.0 * rng.normal(size=(60, 1, 2)))
    trees[4][20:40] = 0.0
    ends = sorted(ends)
    result = np.full((2 * len(ends), n_rows), np.nan)
    _core.predict(make_predictor(bins, trees, out, ends), x, result, 1)
    assert np.array_equal(result, twin(x, bins, trees, out, ends))


@pytest.mark.parametrize("max_depth", [3, 6, 7, 8, 9])
def test_a_row_does_not_depend_on_those_beside_it(max_depth):
    x, bins, trees, out = make_case(np.random.default_rng(0), 600, 6, 200, max_depth, 2)
    whole = predict(x, bins, trees, out)
    for begin in (0, 5, 300):
        for n in (1, 2, 3, 8, 9, 16, 64, 65, 128, 129, 255, 257):
            part = slice(begin, begin + n)
            assert np.array_equal(predict(x[part], bins, trees, out[:, part]), whole[:, part])


def constant_trees(values, depth):
    """Trees whose leaves all have the same value: every row gets the sum of them."""
    n = len(values)
    return (
        np.zeros((n, depth), np.int32),
        np.zeros((n, depth), np.uint8),
        np.arange(n * depth, dtype=np.uint8).reshape(n, depth) % 3,
        np.full(n, depth, np.int32),
        np.repeat(np.array(values, dtype=float)[:, None, None], 1 << depth, axis=1),
    )


# With a tree of 46 bits the unit is 1, so that these are the digits of base 4096 as they are looked
# up: the lowest that there are, the highest, and a borrow through all of them.
DIGITS = {
    "lowest": -(2**11) * (1 + 2**12 + 2**24),
    "highest": (2**11 - 1) * (1 + 2**12 + 2**24),
    "borrowed": 2**36 - 1,
}


@pytest.mark.parametrize("n_trees", [15, 16, 17, 127, 128, 129, 1000])
@pytest.mark.parametrize("depth", [1, 6, 7, 8, 9])
@pytest.mark.parametrize("digits", DIGITS)
def test_sums_of_extreme_digits_are_exact(digits, depth, n_trees):
    bins = Bins.fit(np.arange(5.0)[:, None], 8)
    values = [2**46 - 1, *[DIGITS[digits]] * n_trees]
    x = np.random.default_rng(1).integers(0, 5, (130, 1)).astype(float)
    for sign in (1, -1):
        trees = constant_trees([sign * value for value in values], depth)
        result = predict(x, bins, trees, np.zeros((1, 130)))
        assert (result == sign * sum(values)).all()


@pytest.mark.parametrize("n_rows", [1, 100])
def test_sums_are_finite_where_their_parts_would_not_be(n_rows):
    bins = Bins.fit(np.arange(5.0)[:, None], 8)
    most = 2.0**1023
    trees = constant_trees([most, most, most, -most, -most, -most, 1.5 * most], 2)
    assert (predict(np.zeros((n_rows, 1)), bins, trees, np.zeros((1, n_rows))) == 1.5 * most).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_leaf_values_that_are_no_numbers_are_refused_by_their_tree(bad):
    _, bins, trees, out = make_case(np.random.default_rng(3), 10, 3, 4, 2, 2)
    trees[3][2] = 1
    trees[4][2, 2, 1] = bad  # a leaf that tree 2 does not have
    make_predictor(bins, trees, out)
    trees[4][2, 1, 1] = bad
    with pytest.raises(ValueError, match="leaf values of tree 2 must be finite"):
        make_predictor(bins, trees, out)


def test_the_deepest_trees_equal_their_twin():
    x, bins, trees, out = make_case(np.random.default_rng(0), 300, 5, 3, 16, 2, max_bins=255)
    assert np.array_equal(predict(x, bins, trees, out), twin(x, bins, trees, out))


def test_many_shallow_trees_of_many_outputs_equal_their_twin():
    x, bins, trees, out = make_case(np.random.default_rng(0), 300, 5, 170, 2, 100)
    assert np.array_equal(predict(x, bins, trees, out), twin(x, bins, trees, out))


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
    expected = twin(x, bins, trees, out)
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
    result = predict(x, bins, trees, np.zeros((1, 5)))
    assert result.tolist() == [[11.0, 11.0, 22.0, 22.0, 21.0]]


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
    refused("weights must be", *trees, out=np.zeros((2, 10)))
    refused("out must be", *trees, out=np.zeros((1, 9)))
    refused("depth out of range", features, lows, highs, depths + 3, values)
    refused("depth out of range", features, lows, highs, depths - 3, values)
    used = np.full_like(depths, 2)
    refused("feature out of range", features + 3, lows, highs, used, values)
    refused("feature out of range", features - 3, lows, highs, used, values)
    refused("x must be", *trees, table=np.zeros((10, 2)))
