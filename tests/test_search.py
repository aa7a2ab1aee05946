"""The structure of a tree: the greedy search on sums of words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from problems import THREADS, generators, make_codes, sizes
from searching import (
    Search,
    assert_same,
    code_counts,
    l2s,
    make_kinds,
    make_words,
)


@settings(max_examples=300)
@given(generators, sizes, code_counts, st.integers(1, 3), st.integers(1, 5), l2s, st.booleans())
def test_the_structure_equals_that_of_trying_all_candidates(
    rng, n_rows, n_codes, n_outputs, max_depth, l2, sampled
):
    columns, kinds = make_kinds(rng, n_rows, n_codes)
    rows = None
    if sampled:
        rows = np.sort(rng.choice(n_rows, n_rows // 2, replace=False)).astype(np.uint32)
    n = n_rows if rows is None else len(rows)
    packed = make_words(rng, n_outputs, n, largest=rng.choice([1, 50, 2**19]))
    result = Search(max_depth).search(columns, n_codes, kinds, packed, rows, l2)
    codes = reference.to_rows(columns)[slice(None) if rows is None else rows]
    expected = reference.search(codes, n_codes, kinds, packed, max_depth, l2, 0.0, 1, 2)
    assert_same(result, expected)


@settings(max_examples=15)
@given(generators, st.sampled_from([33, 100, 257]), st.sampled_from([0.1, 1.0, 10.0]))
def test_noise_on_the_scores_equals_its_twin(rng, n_rows, strength):
    n_codes = [5, 9, 2, 3, 7]
    columns, kinds = make_kinds(rng, n_rows, n_codes)
    packed = make_words(rng, 2, n_rows)
    result = Search(3).search(columns, n_codes, kinds, packed, strength=strength)
    codes = reference.to_rows(columns)
    expected = reference.search(codes, n_codes, kinds, packed, 3, 0.0, strength, 1, 2)
    assert_same(result, expected)


@pytest.mark.parametrize("max_depth", range(1, 11))
def test_structures_of_every_depth_equal_their_twin(max_depth):
    rng = np.random.default_rng(max_depth)
    n_codes = [9, 5, 3, 9, 4]
    columns, kinds = make_kinds(rng, 600, n_codes)
    packed = make_words(rng, 1, 600)
    result = Search(max_depth).search(columns, n_codes, kinds, packed)
    codes = reference.to_rows(columns)
    expected = reference.search(codes, n_codes, kinds, packed, max_depth, 0.0, 0.0, 1, 2)
    assert len(result.features) == max_depth
    assert_same(result, expected)


@pytest.mark.parametrize("l2", [0.0, 0.5, 300.0, 1e30])
@pytest.mark.parametrize("n_features", [1, 3, 4, 5, 8, 9, 12, 13])
def test_structures_of_plain_numbers_equal_their_twin(n_features, l2):
    # Sums as large as 31 bits allow: products of four of them need care in single precision.
    rng = np.random.default_rng(n_features)
    n_rows, n_codes, kinds = 400, [9] * n_features, np.zeros(n_features, np.uint8)
    columns = rng.integers(1, 9, (n_features, n_rows)).astype(np.uint8)
    most = 2**31 // n_rows
    gradient, weight = rng.integers(-most, most, n_rows), rng.integers(most // 2, most, n_rows)
    packed = (gradient[None] << 32) + weight
    result = Search(5).search(columns, n_codes, kinds, packed, l2=l2)
    codes = reference.to_rows(columns)
    expected = reference.search(codes, n_codes, kinds, packed, 5, l2, 0.0, 1, 2)
    assert len(result.features) == 5
    assert_same(result, expected)


def test_the_deepest_structure_equals_its_twin():
    # So wide and deep that the last level's histograms are not kept but built anew.
    rng = np.random.default_rng(3)
    n_codes = [256] + [3] * 8
    columns, kinds = make_kinds(rng, 2000, n_codes)
    packed = make_words(rng, 1, 2000)
    result = Search(16).search(columns, n_codes, kinds, packed)
    codes = reference.to_rows(columns)
    expected = reference.search(codes, n_codes, kinds, packed, 16, 0.0, 0.0, 1, 2)
    assert len(result.features) == 16
    assert_same(result, expected)


@pytest.mark.parametrize("n", [8191, 8193, 40_000])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_structure_does_not_depend_on_threads(n, n_outputs):
    rng = np.random.default_rng(4)
    n_codes = [33, 65, 2, 17, 9]
    columns, kinds = make_kinds(rng, n, n_codes)
    packed = make_words(rng, n_outputs, n)
    expected = Search(6).search(columns, n_codes, kinds, packed)
    for n_threads in THREADS:
        assert_same(Search(6, n_threads).search(columns, n_codes, kinds, packed), expected)


def test_a_workspace_holds_no_state_between_calls():
    rng = np.random.default_rng(5)
    used = Search(4)
    for n, n_codes in ((300, [9, 3, 5]), (40, [2]), (0, [3]), (500, [17] * 6), (31, [5, 5])):
        columns, has_missing = make_codes(rng, n, n_codes)
        packed = make_words(rng, 2, n)
        for rows in (None, np.arange(n, dtype=np.uint32)):
            result = used.search(columns, n_codes, has_missing, packed, rows)
            assert_same(result, Search(4).search(columns, n_codes, has_missing, packed, rows))


def test_the_best_split_of_a_step_function_is_its_step():
    columns = np.array([[1, 1, 2, 2, 3, 3], [1, 2, 1, 2, 1, 2]], dtype=np.uint8)
    packed = (np.array([[6, 6, 6, 6, -3, -3]]) << 32) + 1
    result = Search(1).search(columns, [4, 3], np.array([False, False]), packed)
    assert (result.features[0], result.lows[0], result.highs[0]) == (0, 0, 2)


def test_equal_scores_go_to_the_first_feature():
    columns = np.array([[1, 1], [1, 2], [1, 2]], dtype=np.uint8)
    packed = (np.array([[1, -1]]) << 32) + 1
    result = Search(1).search(columns, [3, 3, 3], np.zeros(3, bool), packed)
    assert result.features.tolist() == [1]


def test_equal_scores_of_a_feature_go_to_the_first_last_code():
    columns = np.array([[1, 4]], dtype=np.uint8)  # codes 1, 2 and 3 part them alike
    packed = (np.array([[1, -1]]) << 32) + 1
    result = Search(1).search(columns, [6], np.array([False]), packed)
    assert (result.lows[0], result.highs[0]) == (0, 1)


def test_of_equal_scores_missing_left_comes_before_missing_right():
    # Missing rows have no gradient: either side is as good for them.
    columns = np.array([[0, 1, 2]], dtype=np.uint8)
    packed = np.array([[0, (1 << 32) + 1, (-1 << 32) + 1]])
    result = Search(1).search(columns, [3], np.array([True]), packed)
    assert (result.lows[0], result.highs[0]) == (0, 1)


def test_missing_values_go_to_the_side_they_are_like():
    columns = np.array([[0, 0, 1, 2]], dtype=np.uint8)
    has_missing = np.array([True])
    like_high = (np.array([[-4, -4, 4, -4]]) << 32) + 1
    result = Search(1).search(columns, [3], has_missing, like_high)
    assert (result.lows[0], result.highs[0]) == (1, 1)
    like_low = (np.array([[4, 4, 4, -4]]) << 32) + 1
    result = Search(1).search(columns, [3], has_missing, like_low)
    assert (result.lows[0], result.highs[0]) == (0, 1)
    like_none = (np.array([[4, 4, -4, -4]]) << 32) + 1
    result = Search(1).search(columns, [3], has_missing, like_none)
    assert (result.lows[0], result.highs[0]) == (0, 0)


@pytest.mark.parametrize(
    ("columns", "weight"),
    [
        ([[1, 1, 1], [2, 2, 2]], [1, 1, 1]),  # constant columns
        ([[0, 0, 0]], [1, 1, 1]),  # all missing
        ([[1, 2, 2]], [0, 1, 1]),  # the only row on one side has no weight
        ([[1, 2, 3]], [0, 0, 0]),
        ([[], []], []),
    ],
)
def test_where_nothing_can_be_parted_the_tree_is_a_constant(columns, weight):
    columns = np.array(columns, dtype=np.uint8)
    weight = np.array(weight, dtype=np.int64)
    packed = ((5 * weight << 32) + weight).reshape(1, -1)
    n_codes = [4] * len(columns)
    result = Search(3).search(columns, n_codes, (columns == 0).any(axis=1), packed)
    assert len(result.features) == 0


def test_the_tree_ends_where_no_row_can_be_parted_further():
    columns = np.array([[1, 1, 2, 2], [1, 2, 1, 2]], dtype=np.uint8)
    packed = (np.array([[1, 2, 3, 5]]) << 32) + 1
    result = Search(5).search(columns, [3, 3], np.zeros(2, bool), packed)
    assert sorted(result.features.tolist()) == [0, 1]


def test_a_split_without_gain_is_still_taken():
    columns = np.array([[1, 2]], dtype=np.uint8)
    packed = np.array([[1, 1]])  # no gradient at all
    result = Search(1).search(columns, [3], np.array([False]), packed)
    assert result.features.tolist() == [0]
