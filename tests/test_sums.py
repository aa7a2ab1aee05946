"""Sums over rows: exact, so that neither order, shards nor threads change a bit."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglb import sums
from sglb.target import Target

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
# Far apart and of both signs, so that the sum of floats in row order is wrong in all of its digits.
LISTS = st.one_of(
    st.lists(FINITE, max_size=40),
    st.lists(st.floats(-1e3, 1e3), max_size=400),
    st.lists(st.floats(-1e-305, 1e-305), max_size=40),
    st.lists(st.sampled_from([1e308, -1e308, 1.0, -1.0, 5e-324, 2.0**-53, 2.0**53]), max_size=40),
)
LARGEST = float(np.finfo(np.float64).max)
POSITIVE = st.floats(1e-3, 1e3)


def rounded(exact):
    """The float nearest to a rational number."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def nearest(values):
    """The float nearest to the sum of floats, by rational arithmetic."""
    return rounded(sum((Fraction(value) for value in values), Fraction(0)))


def same_bits(a, b):
    return np.array_equal(np.array(a).view(np.uint64), np.array(b).view(np.uint64))


@given(LISTS)
def test_a_total_is_the_float_nearest_to_the_sum(values):
    assert same_bits(sums.total(np.array(values)), nearest(values))


@given(LISTS, st.randoms(use_true_random=False))
def test_a_total_does_not_depend_on_the_order(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert same_bits(sums.total(np.array(values)), sums.total(np.array(shuffled)))


@given(LISTS, st.lists(st.integers(0, 400), max_size=5), st.booleans())
def test_sums_of_shards_merge_into_that_of_all_rows(values, cuts, weighted):
    values = np.array(values, dtype=np.float64)
    weight = np.linspace(0.1, 3.0, len(values)) if weighted else None
    merged = sums.ExactSum()
    borders = np.sort(np.minimum(cuts, len(values))).astype(int)
    with np.errstate(over="ignore"):
        for rows in np.split(np.arange(len(values)), borders)[::-1]:
            shard = sums.ExactSum()
            shard.add(values[rows], None if weight is None else weight[rows])
            merged.merge(pickle.loads(pickle.dumps(shard)))
    assert same_bits(merged.value(), sums.total(values, weight))


@pytest.mark.parametrize("n", [1, 7, 8, 1023, 1024, 1025, 5000, 300_001])
@pytest.mark.parametrize("spread", [0.0, 3.0, 60.0])
def test_a_total_of_many_rows_is_that_of_fsum(n, spread):
    rng = np.random.default_rng(n)
    values = rng.normal(size=n) * np.exp(spread * rng.normal(size=n))
    weight = rng.uniform(size=n)
    assert same_bits(sums.total(values), math.fsum(values))
    assert same_bits(sums.total(values, weight), math.fsum(weight * values))


@pytest.mark.parametrize("exponent", [-1070, -1022, -960, -900, 1000, 1010, 1015])
def test_totals_are_exact_at_both_ends_of_the_range(exponent):
    rng = np.random.default_rng(0)
    values = np.ldexp(rng.normal(size=3000), exponent)
    assert same_bits(sums.total(values), math.fsum(values))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([], 0.0),
        ([-0.0], 0.0),
        ([1e308, 1e308, -1e308], 1e308),  # floats in row order overflow on the way
        ([1e308] * 2, math.inf),
        ([-1e308] * 2, -math.inf),
        ([math.inf, 1.0], math.inf),
        ([-math.inf, 1e308], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
        ([1.0, 2.0**-53], 1.0),  # a tie goes to the even neighbour
        ([1.0, 2.0**-53, 2.0**-1000], 1.0 + 2.0**-52),
        ([LARGEST, 2.0**970], math.inf),  # halfway to the next power of two
        ([LARGEST, 2.0**970, -(2.0**-1074)], LARGEST),
    ],
)
@pytest.mark.parametrize("padding", [0, 16, 2000])
def test_infinity_nan_ties_and_overflow_are_those_of_the_exact_sum(values, wanted, padding):
    actual = sums.total(np.array(values + [0.0] * padding))
    assert actual == pytest.approx(wanted, rel=0, abs=0, nan_ok=True)


def test_more_summands_than_a_limb_has_room_for_lose_no_carry():
    doubled, twice = sums.ExactSum(), sums.ExactSum()
    doubled.add(np.array([-1.0, 2.0**-1074]), None)
    for _ in range(70):  # 2^70 times
        twice.merge(doubled)
        doubled.merge(doubled)
    assert doubled.value() == -(2.0**70) + 2.0**-1004
    assert twice.value() == doubled.value() + 1.0


@given(st.lists(st.tuples(FINITE, POSITIVE), min_size=1, max_size=30))
def test_summands_of_weighted_totals_are_rounded_products(rows):
    values, weight = np.array(rows).T
    with np.errstate(over="ignore"):
        products = (values * weight).tolist()
    if all(map(math.isfinite, products)):
        assert same_bits(sums.total(values, weight), nearest(products))


def test_the_mean_of_equal_values_is_the_value_with_any_weights():
    assert sums.mean(np.full(1000, 0.1)) == 0.1
    assert sums.mean([[1.0, 2.0], [3.0, 6.0]]) == 3.0
    assert sums.mean([1.0, 4.0], [2.0, 1.0]) == 2.0
    with pytest.raises(ZeroDivisionError):
        sums.mean([1.0], [0.0])


@given(st.lists(POSITIVE, max_size=200))
def test_running_sums_are_the_totals_of_the_first_values(values):
    actual = sums.running(np.array(values, dtype=np.float64))
    assert actual.tolist() == [math.fsum(values[: n + 1]) for n in range(len(values))]


@given(st.lists(st.tuples(st.integers(0, 4), FINITE), max_size=60), st.randoms())
def test_sums_by_group_are_integers_in_units_of_the_largest_value(rows, random):
    group, values = (np.array(column) for column in (zip(*rows, strict=True) if rows else ([], [])))
    largest = max((abs(value) for _, value in rows), default=0.0)
    # The largest has 53 + 42 bits.
    unit = Fraction(2) ** (max(math.frexp(largest)[1], -1021) - 95)
    wanted = [0] * 6
    for at, value in rows:
        wanted[at] += math.trunc(Fraction(value) / unit)
    actual = sums.by_group(group.astype(np.int32), values.astype(np.float64), 6)
    assert actual.tolist() == [rounded(n * unit) for n in wanted]
    order = list(range(len(rows)))
    random.shuffle(order)
    again = sums.by_group(group[order].astype(np.int32), values[order].astype(np.float64), 6)
    assert same_bits(actual, again)


def test_a_group_with_an_infinite_value_has_an_infinite_sum_and_no_other_has():
    actual = sums.by_group(np.array([0, 1, 0]), np.array([1.0, math.inf, 2.0]), 2)
    assert actual.tolist() == [3.0, math.inf]


def test_weights_of_none_are_weights_of_one():
    group, values = np.array([0, 2, 0, 2]), np.array([0.1, 0.2, 0.3, 7.0])
    assert (
        Target.of(np.zeros(4)).total_weight
        == Target.of(np.zeros(4), np.ones(4)).total_weight
        == 4.0
    )
    by_weight = sums.by_group(group, values, 3, np.ones(4))
    assert same_bits(by_weight, sums.by_group(group, values, 3))
    assert sums.by_group(group, values > 0.15, 3, [1.0, 0.5, 2.0, 4.0]).tolist() == [2.0, 0.0, 4.5]


def test_a_weight_of_another_length_is_rejected():
    with pytest.raises(ValueError, match="as long as values"):
        sums.total(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="as long as values"):
        sums.ExactSum().add(np.ones(3), np.ones(2))


def test_groups_beside_one_that_overflows_are_summed_exactly():
    rng = np.random.default_rng(0)
    values = rng.normal(size=300) * 10.0 ** rng.uniform(-8, 8, 300)
    group = np.arange(300) % 3
    values[[0, 31]] = 1e308
    weight = np.where(np.isin(np.arange(300), [0, 31]), 10.0, 1.0)  # inf in groups 0 and 1
    values[61] = -1e308
    weight[61] = 10.0  # -inf: group 1 is NaN
    order = rng.permutation(300)
    with np.errstate(over="ignore"):
        first = sums.by_group(group, values, 3, weight)
        second = sums.by_group(group[order], values[order], 3, weight[order])
    assert first[0] == np.inf
    assert np.isnan(first[1])
    assert first[2] == pytest.approx(math.fsum(values[2::3]), rel=1e-14)
    assert same_bits(first[[0, 2]], second[[0, 2]])


def test_sums_over_an_axis_go_from_its_first_entry_to_its_last():
    values = np.random.default_rng(1).normal(size=(5, 20, 3))
    expected = values[:, 0] * 0.0
    for k in range(20):
        expected = expected + values[:, k]
    assert same_bits(sums.over_axis(values, 1), expected)
    assert same_bits(sums.over_axis(values), values[..., 0] + values[..., 1] + values[..., 2])


def test_products_and_variances_are_those_of_numpy():
    rng = np.random.default_rng(2)
    a, b, c = rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), rng.normal(size=3)
    np.testing.assert_allclose(sums.product(a, b), a @ b, rtol=1e-13)
    np.testing.assert_allclose(sums.product(a, c), a @ c, rtol=1e-13)
    np.testing.assert_allclose(sums.variance(b, 0), b.var(axis=0, ddof=1), rtol=1e-13)
    np.testing.assert_allclose(sums.variance(b, 1, n_lost=0), b.var(axis=1), rtol=1e-13)
