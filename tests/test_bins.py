"""Thresholds and codes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_bins
from problems import BLOCK_SIZES, THREADS, generators, make_table, sizes
from sglb import _core
from sglb.bins import Bins
from sglb.code_layout import SplitKind
from sglb.target import Target
from sglb.totals import Totals
from sglb.training_set import TrainingSet

TYPES = [np.float32, np.float64, np.bool_] + [
    np.dtype(f"{sign}int{bits}").type for sign in ("", "u") for bits in (8, 16, 32, 64)
]

# Values where something may go wrong: zeros of both signs, neighbours, ends of the range.
AWKWARD = [
    0.0, -0.0, 1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0), -1.0,
    5e-324, 1e-323, -5e-324, 2.2e-308, 1.7e308, -1.7e308, math.inf, -math.inf, math.nan,
]  # fmt: skip
values = st.one_of(st.sampled_from(AWKWARD), st.integers(-5, 5).map(float), st.floats())
columns = st.lists(values, max_size=60)


def find_thresholds(x, max_bins, sample_rows=200_000, seed=0, n_threads=1):
    thresholds = np.empty((x.shape[1], max_bins - 1))
    n_thresholds = np.empty(x.shape[1], dtype=np.int32)
    _core.find_thresholds(x, max_bins, sample_rows, seed, thresholds, n_thresholds, n_threads)
    return thresholds, n_thresholds


def encode(x, thresholds, n_thresholds, n_threads=1):
    codes = np.empty(x.shape[::-1], dtype=np.uint8)
    _core.encode(x, thresholds, n_thresholds, codes, n_threads)
    return codes


def assert_equals_twin(x, max_bins, sample_rows=200_000, seed=0):
    thresholds, n_thresholds = find_thresholds(x, max_bins, sample_rows, seed)
    expected, n_expected = reference_bins.find_thresholds(x, max_bins, sample_rows, seed)
    assert np.array_equal(n_thresholds, n_expected)
    assert np.array_equal(thresholds, expected)
    codes = encode(x, thresholds, n_thresholds)
    assert np.array_equal(codes, reference_bins.encode(x, thresholds, n_thresholds))
    return thresholds, n_thresholds, codes


@given(columns, st.integers(2, 255))
def test_thresholds_and_codes_of_any_floats_equal_their_twins(column, max_bins):
    x = np.array(column, dtype=float).reshape(-1, 1)
    thresholds, (n,), (codes,) = assert_equals_twin(x, max_bins)
    used = thresholds[0, :n]
    assert (used[1:] > used[:-1]).all()
    assert (used < np.inf).all()
    assert (codes <= n + 1).all()
    assert np.array_equal(codes == 0, np.isnan(x[:, 0]))
    distinct = np.unique(x[~np.isnan(x)])
    if len(distinct) <= max_bins:  # every value has a code of its own
        assert n == max(len(distinct) - 1, 0)
        assert np.array_equal(np.searchsorted(distinct, x[codes > 0, 0]) + 1, codes[codes > 0])
    else:
        assert n == max_bins - 1


@given(generators, sizes, st.integers(1, 7), st.sampled_from([2, 3, 16, 64, 255]))
def test_thresholds_and_codes_of_tables_equal_their_twins(rng, n_rows, n_features, max_bins):
    assert_equals_twin(make_table(rng, n_rows, n_features), max_bins)


@pytest.mark.parametrize("max_bins", [2, 5, 64, 255])
def test_thresholds_of_long_columns_equal_their_twins(max_bins):
    rng = np.random.default_rng(0)
    n = 1001  # long enough for the radix sort
    x = np.stack(
        [
            rng.normal(size=n),
            -rng.lognormal(sigma=5.0, size=n),
            rng.poisson(30.0, n),
            np.repeat(np.arange(n), 2)[:n],
            np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
        ],
        axis=1,
    )
    assert_equals_twin(x, max_bins)


@given(generators, st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**64 - 1))
def test_thresholds_of_a_sample_of_rows_equal_their_twin(rng, n_rows, sample_rows, seed):
    assert_equals_twin(rng.normal(size=(n_rows, 2)), 9, sample_rows, seed)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_any_number_type_gives_the_codes_of_its_values_as_doubles(dtype):
    rng = np.random.default_rng(1)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, (700, 3), dtype=dtype, endpoint=True)
        x[:2, 0] = info.min, info.max
    else:
        x = (rng.normal(size=(700, 3)) * 3).astype(dtype)
    thresholds, n_thresholds, codes = assert_equals_twin(x, 16)
    doubles = x.astype(np.float64)
    assert np.array_equal(find_thresholds(doubles, 16)[0], thresholds)
    assert np.array_equal(encode(doubles, thresholds, n_thresholds), codes)


def layouts(x):
    wide = np.zeros((2 * len(x) + 1, 3 * x.shape[1] + 1), dtype=x.dtype)
    wide[1::2, 1::3] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    return {
        "fortran order": np.asfortranarray(x),
        "every other row, every third column": wide[1::2, 1::3],
        "reversed": np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        "read-only": read_only,
        "columns of a larger table": np.hstack([x, x])[:, : x.shape[1]],
    }


@pytest.mark.parametrize("n_rows", [0, 1, 33, 513, 8193])
@pytest.mark.parametrize("layout", layouts(np.zeros((1, 1))))
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_the_layout_of_a_table_does_not_matter(n_rows, layout, dtype):
    x = (np.random.default_rng(2).normal(size=(n_rows, 5)) * 10).astype(dtype)
    view = layouts(x)[layout]
    thresholds, n_thresholds = find_thresholds(x, 8)
    assert np.array_equal(find_thresholds(view, 8)[0], thresholds)
    assert np.array_equal(
        encode(view, thresholds, n_thresholds), encode(x, thresholds, n_thresholds)
    )


@pytest.mark.parametrize("n_rows", BLOCK_SIZES)
def test_thresholds_and_codes_do_not_depend_on_threads(n_rows):
    x = make_table(np.random.default_rng(3), n_rows, 7)
    thresholds, n_thresholds = find_thresholds(x, 32, sample_rows=5000)
    codes = encode(x, thresholds, n_thresholds)
    for n_threads in THREADS:
        again = find_thresholds(x, 32, sample_rows=5000, n_threads=n_threads)
        assert np.array_equal(again[0], thresholds)
        assert np.array_equal(encode(x, thresholds, n_thresholds, n_threads), codes)


def test_thresholds_lie_halfway_and_a_value_on_one_goes_left():
    x = np.array([[1.0], [2.0], [4.0]])
    thresholds, n_thresholds = find_thresholds(x, 255)
    assert thresholds[0, :3].tolist() == [1.5, 3.0, math.inf]
    on = np.array([[1.5], [math.nextafter(1.5, 2)], [3.0], [-math.inf], [math.inf], [math.nan]])
    assert encode(on, thresholds, n_thresholds).tolist() == [[1, 2, 2, 1, 3, 0]]


def test_evenly_spread_values_are_cut_into_equal_bins():
    thresholds, _ = find_thresholds(np.arange(1024.0).reshape(-1, 1), 4)
    assert thresholds.tolist() == [[255.5, 511.5, 767.5]]


def test_a_frequent_value_leaves_the_thresholds_to_the_rare_ones():
    # All of 15 equal-mass quantiles are zero.
    rare = np.linspace(1.0, 2.0, 50)
    x = np.concatenate([np.zeros(950), rare]).reshape(-1, 1)
    assert (np.quantile(x, np.arange(1, 16) / 16) == 0).all()
    thresholds, n_thresholds = find_thresholds(x, 16)
    codes = encode(rare.reshape(-1, 1), thresholds, n_thresholds)[0]
    assert codes.min() > 1
    assert np.bincount(codes).max() <= 6


def test_a_constant_column_has_one_bin_and_a_missing_one_none():
    x = np.array([[7.0, np.nan]] * 5)
    thresholds, n_thresholds = find_thresholds(x, 16)
    assert n_thresholds.tolist() == [0, 0]
    assert np.isinf(thresholds).all()
    assert encode(x, thresholds, n_thresholds).tolist() == [[1] * 5, [0] * 5]


def test_a_missing_value_has_the_code_zero_even_where_none_was_seen():
    bins = Bins.fit(np.array([[1.0], [2.0]]), 16)
    assert bins.encode(np.array([[np.nan], [1.0], [9.0]])).tolist() == [[0, 1, 2]]
    assert bins.n_codes.tolist() == [3]
    assert bins.n_features == 1


def test_zeros_of_both_signs_are_one_value():
    thresholds, n_thresholds = find_thresholds(np.array([[0.0], [-0.0], [1.0]]), 16)
    assert n_thresholds.tolist() == [1]
    assert encode(np.array([[0.0], [-0.0]]), thresholds, n_thresholds).tolist() == [[1, 1]]


@given(generators, sizes, st.integers(0, 9))
def test_rows_of_codes_equal_their_twin(rng, n_rows, n_features):
    columns = rng.integers(0, 256, (n_features, n_rows)).astype(np.uint8)
    expected = reference_bins.to_rows(columns)
    rows = np.full_like(expected, 99)
    _core.to_rows(columns, rows, 1)
    assert np.array_equal(rows, expected)


@pytest.mark.parametrize("n_rows", BLOCK_SIZES)
def test_rows_of_codes_do_not_depend_on_threads(n_rows):
    columns = np.random.default_rng(4).integers(0, 256, (5, n_rows)).astype(np.uint8)
    for n_threads in THREADS:
        rows = np.full((n_rows, 8), 99, dtype=np.uint8)
        _core.to_rows(columns, rows, n_threads)
        assert np.array_equal(rows, reference_bins.to_rows(columns))


def test_a_training_set_knows_missing_values_and_weights():
    columns = np.array([[0, 1, 2], [1, 1, 2]], dtype=np.uint8)
    training_set = TrainingSet.build(columns, np.array([3, 3]), Target.of(np.zeros(3)))
    assert training_set.kinds.tolist() == [SplitKind.NUMBERS_OR_MISSING, SplitKind.NUMBERS]
    assert (training_set.n_rows, training_set.n_features) == (3, 2)
    assert Totals.of([training_set]) == Totals(3, weight=3.0, total_weight=3.0)
    weighted = TrainingSet.build(
        columns, np.array([3, 3]), Target.of(np.zeros(3), np.array([0.0, 2.0, 0.5]))
    )
    assert Totals.of([weighted]) == Totals(3, 1, 2.5 / 3, 2.4, 3.0, 4.25 / 2.5, 2.5, True)


def test_a_training_set_rejects_codes_that_its_features_do_not_have():
    with pytest.raises(ValueError, match="feature 1 has a code above 2"):
        TrainingSet.build(
            np.array([[2], [3]], dtype=np.uint8), np.array([3, 3]), Target.of(np.zeros(1))
        )


def test_tables_that_are_not_numbers_are_rejected():
    bins = Bins.fit(np.array([[1.0], [2.0]]), 4)
    for x in (np.array([["a"]]), np.array([[None]]), np.array([[1.0]], dtype=">f8"), [[1.0]]):
        with pytest.raises((TypeError, AttributeError)):
            bins.encode(x)
    for dtype in (np.complex128, np.float16):
        with pytest.raises(ValueError, match="floats or integers"):
            bins.encode(np.zeros((1, 1), dtype=dtype))


def test_shapes_that_do_not_fit_are_rejected():
    x = np.zeros((4, 2))
    thresholds, n_thresholds = find_thresholds(x, 4)
    codes = np.empty((2, 4), dtype=np.uint8)
    for max_bins in (-1, 0, 1, 256):
        with pytest.raises(ValueError, match=r"2\.\.255"):
            _core.find_thresholds(x, max_bins, 9, 0, np.empty((2, 3)), n_thresholds, 1)
    with pytest.raises(ValueError, match="thresholds must be"):
        _core.find_thresholds(x, 4, 9, 0, np.empty((2, 4)), n_thresholds, 1)
    with pytest.raises(ValueError, match="columns must be"):
        _core.encode(x, thresholds, n_thresholds, codes[:, :3].copy(), 1)
    with pytest.raises(ValueError, match="thresholds must be"):
        _core.encode(x[:, :1], thresholds, n_thresholds, codes[:1], 1)
    with pytest.raises(ValueError, match="n_thresholds out of range"):
        _core.encode(x, thresholds, np.array([0, 4], dtype=np.int32), codes, 1)
    with pytest.raises(ValueError, match="rows must be"):
        _core.to_rows(codes, np.empty((4, 3), dtype=np.uint8), 1)
    with pytest.raises(TypeError, match="incompatible"):
        _core.encode(np.zeros(4), thresholds, n_thresholds, codes, 1)


def test_bins_look_at_a_thousand_rows_for_each():
    x = np.random.default_rng(0).normal(size=(9000, 2))
    bins = Bins.fit(x, 4, seed=5)
    expected, n_expected = find_thresholds(x, 4, sample_rows=4000, seed=5)
    np.testing.assert_array_equal(bins.thresholds, expected)
    np.testing.assert_array_equal(bins.n_thresholds, n_expected)
    assert not np.array_equal(expected, find_thresholds(x, 4, sample_rows=1000, seed=5)[0])
