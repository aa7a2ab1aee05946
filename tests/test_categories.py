"""Kernels of categorical columns against their twins: orders, sums, statistics, combinations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_categories
from problems import SMALL_SIZES, THREADS, generators, seeds, sizes
from sglb import _core
from sglb.bins import Bins
from sglb.categories.combinations import MOST_KEYS, choose_combinations
from sglb.categories.vocabulary import Vocabulary
from sglb.labels import LabelColumn
from sglb.weights import equal_weights

some_sizes = st.sampled_from(SMALL_SIZES[1:])


def make_levels(rng, n_columns, n_rows):
    n_levels = rng.integers(1, 12, n_columns)
    levels = [rng.integers(0, n, n_rows) for n in n_levels]
    return np.array(levels, dtype=np.int32), n_levels.astype(np.int64)


def make_targets(rng, n_targets, n_rows, weighted):
    weight = rng.choice([0.5, 1.0, 2.0], n_rows) if weighted else None
    return rng.normal(size=(n_targets, n_rows)), weight


def permutation(seed, copy, n):
    order = np.full(n, 99, dtype=np.uint32)
    _core.permutation(seed, copy, order)
    return order


@given(seeds, st.integers(0, 9), sizes)
def test_an_order_equals_its_twin_and_holds_every_row_once(seed, copy, n):
    order = permutation(seed, copy, n)
    assert np.array_equal(order, reference_categories.permutation(seed, copy, n))
    assert np.array_equal(np.sort(order), np.arange(n))


def test_all_orders_of_three_rows_are_equally_likely():
    # Six orders, 6,000 draws: chi-squared of 5 degrees exceeds 20.5 with probability .001.
    counts = {}
    for copy in range(6000):
        order = tuple(permutation(5, copy, 3).tolist())
        counts[order] = counts.get(order, 0) + 1
    observed = np.array(list(counts.values()))
    assert len(observed) == 6
    assert ((observed - 1000) ** 2 / 1000).sum() < 20.5


@given(generators, some_sizes, st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_sums_by_level_equal_their_twin_for_any_threads(rng, n, n_columns, n_targets, weighted):
    levels, n_levels = make_levels(rng, n_columns, n)
    targets, weight = make_targets(rng, n_targets, n, weighted)
    sums, counts = reference_categories.level_sums(levels, n_levels, targets, weight)
    for n_threads in THREADS:
        computed = np.full_like(sums, 9.0), np.full_like(counts, 9.0)
        _core.level_sums(
            _core.Levels(levels, n_levels),
            _core.LevelTargets(targets, weight),
            *computed,
            n_threads,
        )
        assert np.array_equal(computed[0], sums)
        assert np.array_equal(computed[1], counts)


@given(generators, some_sizes, st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_ordered_codes_equal_their_twin_for_any_threads(rng, n, n_columns, n_targets, weighted):
    levels, n_levels = make_levels(rng, n_columns, n)
    targets, weight = make_targets(rng, n_targets, n, weighted)
    means, unit = targets.mean(axis=1), 0.75
    orders = np.array([permutation(3, copy, n) for copy in range(2)])
    statistics = [
        reference_categories.ordered_statistics(levels, targets, weight, order, means, unit)
        for order in orders
    ]
    bins = Bins.fit(statistics[0].T, 5)
    expected = np.concatenate([bins.encode(statistic.T) for statistic in statistics], axis=1)
    for n_threads in THREADS:
        columns = np.full(expected.shape, 99, dtype=np.uint8)
        _core.ordered_codes(
            _core.Levels(levels, n_levels),
            _core.LevelTargets(targets, weight),
            orders,
            _core.Prior(means, unit),
            bins.thresholds,
            bins.n_thresholds,
            columns,
            n_threads,
        )
        assert np.array_equal(columns, expected)


def test_the_ordered_statistic_of_four_rows_by_hand():
    levels = np.array([[0, 0, 1, 0]])
    targets, order = np.array([[1.0, 0.0, 1.0, 1.0]]), np.array([3, 1, 0, 2])
    statistics = reference_categories.ordered_statistics(levels, targets, None, order, [0.75], 1.0)
    # Row 3 sees the mean alone, row 1 the 1 of row 3, row 0 rows 3 and 1; row 2 has its own level.
    assert statistics.tolist() == [[1.75 / 3, 1.75 / 2, 0.75, 0.75]]


MEMBERS = np.array([[0, 1, -1], [0, 1, 2], [2, 0, -1], [1, -1, -1]], dtype=np.int32)


@given(generators, sizes, st.booleans())
def test_combined_levels_and_gains_equal_their_twins(rng, n, weighted):
    levels, n_levels = make_levels(rng, 3, n)
    targets, weight = make_targets(rng, 2, n, weighted)
    for n_threads in THREADS:
        numbers = np.full((len(MEMBERS), n), 99, dtype=np.int32)
        n_numbers = np.empty(len(MEMBERS), dtype=np.int64)
        columns = _core.Levels(levels, n_levels)
        _core.combine(columns, MEMBERS, numbers, n_numbers, n_threads)
        gains, errors = np.empty((2, len(MEMBERS)))
        weighed = _core.LevelTargets(targets, weight)
        _core.combination_gains(columns, MEMBERS, weighed, 5.0, gains, errors, n_threads)
        for index, members in enumerate(MEMBERS):
            expected = reference_categories.combine(levels, members)
            assert np.array_equal(numbers[index], expected)
            assert n_numbers[index] == expected.max(initial=-1) + 1
            if n:
                gain, error = reference_categories.combination_gain(
                    levels, members, targets, weight, 5.0
                )
                np.testing.assert_allclose(gains[index], gain, rtol=1e-9, atol=1e-12)
                np.testing.assert_allclose(errors[index], error, rtol=1e-6, atol=1e-8)


def test_combinations_of_more_levels_than_a_table_can_hold_are_hashed():
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3000, (2, 20_000)).astype(np.int32)
    levels[:, 10_000:] = levels[:, :10_000]
    n_levels = np.array([3000, 3000])
    numbers, count = np.empty((1, 20_000), dtype=np.int32), np.empty(1, dtype=np.int64)
    pair = np.array([[0, 1]], dtype=np.int32)
    _core.combine(_core.Levels(levels, n_levels), pair, numbers, count, 1)
    assert np.array_equal(numbers[0], reference_categories.combine(levels, [0, 1]))
    assert np.array_equal(numbers[0, :10_000], numbers[0, 10_000:])


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.lists(st.integers(0, 9), max_size=50))
def test_keys_are_numbered_stored_and_looked_up(large, small):
    keys = np.array(large + small, dtype=np.uint64)
    numbers = np.full(len(keys), 99, dtype=np.int32)
    count = _core.number_keys(keys, numbers)
    order = list(dict.fromkeys(keys.tolist()))
    assert count == len(order)
    assert [order[number] for number in numbers] == keys.tolist()
    distinct = np.array(order, dtype=np.uint64)
    slots = np.full(2 << len(order).bit_length(), 99, dtype=np.int32)
    _core.place_keys(distinct, slots)
    queries = np.concatenate([keys, np.arange(20, dtype=np.uint64)])
    for n_threads in THREADS:
        entries = np.full(len(queries), 99, dtype=np.int32)
        _core.find_keys(queries, distinct, slots, entries, n_threads)
        assert entries.tolist() == [
            order.index(key) if key in order else -1 for key in queries.tolist()
        ]


def test_shapes_and_levels_that_do_not_fit_are_rejected():
    levels, n_levels = np.zeros((1, 3), dtype=np.int32), np.array([1])
    columns, targets = _core.Levels(levels, n_levels), _core.LevelTargets(np.zeros((1, 3)), None)
    sums, counts = np.zeros((1, 1)), np.zeros(1)
    for bad in (-1, 1):
        with pytest.raises(ValueError, match="level out of range"):
            _core.Levels(np.array([[0, bad, 0]], dtype=np.int32), n_levels)
    with pytest.raises(ValueError, match="n_levels must be"):
        _core.Levels(levels, np.array([1, 1]))
    with pytest.raises(ValueError, match="weight must be"):
        _core.LevelTargets(np.zeros((1, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="targets must be"):
        _core.level_sums(columns, _core.LevelTargets(np.zeros((1, 2)), None), sums, counts, 1)
    with pytest.raises(ValueError, match="sums must be"):
        _core.level_sums(columns, targets, np.zeros((2, 1)), counts, 1)
    numbers, count = np.zeros((1, 3), dtype=np.int32), np.zeros(1, dtype=np.int64)
    for member in (-2, 1):
        with pytest.raises(ValueError, match="member out of range"):
            _core.combine(columns, np.array([[member]], np.int32), numbers, count, 1)
    with pytest.raises(ValueError, match="power of two"):
        _core.place_keys(np.zeros(2, dtype=np.uint64), np.zeros(2, dtype=np.int32))
    with pytest.raises(ValueError, match="row of an order is out of range"):
        _core.ordered_codes(
            columns,
            targets,
            np.full((1, 3), 3, dtype=np.uint32),
            _core.Prior(np.zeros(1), 1.0),
            np.zeros((1, 1)),
            np.zeros(1, dtype=np.int32),
            np.zeros((1, 3), dtype=np.uint8),
            1,
        )


def test_kernels_accept_as_many_possible_levels_as_the_choice_of_combinations_does():
    levels, pair = np.zeros((2, 3), dtype=np.int32), np.array([[0, 1]], dtype=np.int32)
    numbers, count = np.zeros((1, 3), dtype=np.int32), np.zeros(1, dtype=np.int64)
    root = 1 << 30
    assert root * 2 * root == MOST_KEYS
    _core.combine(_core.Levels(levels, np.array([root, 2 * root - 1])), pair, numbers, count, 1)
    with pytest.raises(ValueError, match="too many possible levels"):
        _core.combine(_core.Levels(levels, np.array([root, 2 * root])), pair, numbers, count, 1)


def test_the_combination_that_explains_the_residuals_is_chosen_and_no_other():
    rng = np.random.default_rng(1)
    n_levels = np.array([100, 100, 5, 3])
    levels = np.array([rng.integers(0, n, 20_000) for n in n_levels], dtype=np.int32)
    effect = rng.normal(size=(100, 5))
    effect -= effect.mean(axis=1, keepdims=True)  # nothing that a single column explains
    effect -= effect.mean(axis=0)
    residuals = (effect[levels[1], levels[2]] + rng.normal(size=20_000))[None]
    weight = equal_weights(residuals.shape[1])
    chosen = choose_combinations(levels, n_levels, residuals, weight, many=64)
    # Nearly half of the squares belong to (1, 2); others come in only as extensions of it.
    assert chosen[0] == (1, 2)
    assert all({1, 2} <= set(members) for members in chosen)
    noise = rng.normal(size=(1, 20_000))
    assert choose_combinations(levels, n_levels, noise, weight, many=64) == []
    assert choose_combinations(levels, n_levels, residuals, weight, many=100) == []


def test_the_error_of_a_gain_is_its_standard_deviation_under_chance():
    # 400 draws of coin signs: the standard deviation of 400 is known to 3.5 %, 4 of that allowed.
    rng = np.random.default_rng(4)
    levels = rng.integers(0, 40, (2, 500)).astype(np.int32)
    size, results = rng.random((1, 500)), []
    for _ in range(400):
        gain, error = np.empty((2, 1))
        signs = rng.choice([-1.0, 1.0], (1, 500))
        pair = np.array([[0, 1]], dtype=np.int32)
        columns = _core.Levels(levels, np.array([40, 40]))
        targets = _core.LevelTargets(size * signs, None)
        _core.combination_gains(columns, pair, targets, 5.0, gain, error, 1)
        results.append((gain[0], error[0]))
    gains, errors = np.array(results).T
    assert np.allclose(errors, errors[0])
    assert abs(gains.std() / errors[0] - 1) < 0.14
    assert abs(gains.mean()) < 4 * errors[0] / 20


def test_a_combination_with_too_many_possible_levels_is_not_a_candidate():
    levels = np.zeros((2, 100), dtype=np.int32)
    huge = np.array([1 << 31, 1 << 31])
    assert choose_combinations(levels, huge, np.ones((1, 100)), equal_weights(100), many=64) == []


def test_a_label_that_a_column_lists_twice_is_one_level():
    column = LabelColumn(np.array([0, 1, 2, 3, -1], dtype=np.int32), ["b", "a", "b", None, "idle"])
    vocabulary, levels = Vocabulary.fit(column)
    assert vocabulary.labels == ("a", "b")
    assert vocabulary.has_missing
    assert levels.tolist() == [1, 0, 1, 2, 2]
    assert vocabulary.lookup(column)[column.index].tolist() == levels.tolist()
