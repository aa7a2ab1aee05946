"""Leaf indices, leaf values and the step they make."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import reference_leaves
import reference_noise
from problems import (
    BLOCK_SIZES,
    N_CODES,
    THREADS,
    core_shard,
    generators,
    make_codes,
    make_splits,
    make_weight,
    seeds,
    sizes,
    steps,
)
from sglb import _core
from sglb.transition import KEEP, Transition

depths = st.integers(0, 10)


def leaf_indices(columns, splits, n_threads=1):
    out = np.full(columns.shape[1], 999, dtype=np.uint16)
    _core.testing.leaf_indices(columns, _core.Structure(*splits), out, n_threads)
    return out


class Leaves:
    """A problem of leaf fitting; `fit` gives leaf values and the new raw scores."""

    def __init__(self, rng, n_rows, depth, n_outputs=1, *, weighted=False, newton=False):
        self.columns, _ = make_codes(rng, n_rows, N_CODES)
        self.splits = make_splits(rng, N_CODES, depth)
        self.gradient = rng.normal(size=(n_outputs, n_rows))
        self.hessian = rng.uniform(0.05, 1.0, (n_outputs, n_rows)) if newton else None
        self.weight = make_weight(rng, n_rows) if weighted else None
        self.offset = rng.normal(size=n_outputs)
        self.raw = rng.normal(size=(n_outputs, n_rows))
        self.depth = depth

    def fit(
        self,
        learning_rate=0.1,
        sigma=0.0,
        shrink=1.0,
        l2=0.0,
        seed=1,
        step=2,
        n_threads=1,
        reach=np.inf,
    ):
        state = self.raw[None].copy()
        values = np.full((1 << self.depth, len(self.raw)), np.nan)
        self.gains = np.full(self.depth, np.nan)
        shard = core_shard(self.columns, N_CODES, self.weight, n_threads=n_threads)
        slopes, draws = _core.Slopes(self.gradient, self.hessian), _core.Draws(seed, step)
        sums = _core.LeafSums()
        sums.sum(shard, self.structure, slopes, 1.0, self.bounds, draws, None)
        rule = _core.LeafRule(l2, reach)
        _core.leaf_values(sums, rule, learning_rate, sigma, draws, None, values)
        _core.testing.split_gains(sums, l2, self.gains)
        by = Transition.shrink(shrink).core
        _core.advance(shard, self.structure, values, by, self.offset, state)
        return values, state[0]

    @property
    def bounds(self):
        hessian = 0.0 if self.hessian is None else reference.largest(self.hessian)
        return reference.largest(self.gradient), hessian

    def add(self, values, shrink, n_threads=1):
        state, by = self.raw[None].copy(), Transition.shrink(shrink).core
        offset = self.offset
        _core.add_tree(self.columns, self.structure, values, by, offset, state, n_threads)
        return state[0]

    @property
    def structure(self):
        return _core.Structure(*self.splits)

    @property
    def leaf(self):
        return reference_leaves.leaf_indices(self.columns, *self.splits)

    def expected(self, learning_rate, sigma, shrink, l2, seed, step):
        leaf = self.leaf
        values = reference_leaves.leaf_values(
            leaf,
            1 << self.depth,
            self.gradient,
            self.hessian,
            self.weight,
            learning_rate,
            sigma,
            l2,
            seed,
            step,
        )
        return values, reference_leaves.add_tree(self.raw, leaf, values, shrink, self.offset)


@given(generators, sizes, st.integers(0, 16))
def test_leaf_indices_equal_their_twin(rng, n_rows, depth):
    columns, _ = make_codes(rng, n_rows, N_CODES)
    splits = make_splits(rng, N_CODES, depth)
    assert np.array_equal(
        leaf_indices(columns, splits), reference_leaves.leaf_indices(columns, *splits)
    )


@pytest.mark.parametrize("n_rows", BLOCK_SIZES)
def test_leaf_indices_do_not_depend_on_threads(n_rows):
    rng = np.random.default_rng(0)
    columns, _ = make_codes(rng, n_rows, N_CODES)
    splits = make_splits(rng, N_CODES, 9)
    for n_threads in THREADS:
        result = leaf_indices(columns, splits, n_threads)
        assert np.array_equal(result, reference_leaves.leaf_indices(columns, *splits))


def test_codes_of_an_interval_go_left_and_the_first_split_is_the_lowest_bit():
    columns = np.array([[0, 1, 2, 3], [1, 1, 0, 0]], dtype=np.uint8)
    splits = (
        np.array([0, 1], dtype=np.int32),
        np.array([1, 0], dtype=np.uint8),
        np.array([2, 0], dtype=np.uint8),
    )
    assert leaf_indices(columns, splits).tolist() == [0b11, 0b10, 0b00, 0b01]


@given(
    generators,
    sizes,
    depths,
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 20.0]),
    st.sampled_from([1.0, 0.9, 0.0, -0.5]),
    st.sampled_from([0.0, 2.5]),
    st.tuples(seeds, steps),
)
def test_leaf_values_and_the_step_equal_their_twin(
    rng, n_rows, depth, n_outputs, weighted, newton, sigma, shrink, l2, where
):
    leaves = Leaves(rng, n_rows, depth, n_outputs, weighted=weighted, newton=newton)
    result = leaves.fit(0.3, sigma, shrink, l2, *where)
    expected = leaves.expected(0.3, sigma, shrink, l2, *where)
    for ours, theirs in zip(result, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@given(generators, sizes, depths, st.integers(1, 3), st.booleans(), st.sampled_from([0.0, 2.5]))
def test_gains_are_those_of_all_rows_without_noise(rng, n_rows, depth, n_outputs, weighted, l2):
    leaves = Leaves(rng, n_rows, depth, n_outputs, weighted=weighted, newton=True)
    leaves.fit(0.3, sigma=20.0, l2=l2)
    expected = reference_leaves.gains(leaves.leaf, depth, leaves.gradient, leaves.weight, l2)
    np.testing.assert_allclose(leaves.gains, expected, rtol=1e-9, atol=1e-9)


def test_the_gain_of_a_step_is_what_hand_calculation_says():
    leaves = Leaves(np.random.default_rng(0), 6, 1)
    leaves.columns[:] = 1 + np.array([0, 0, 0, 0, 1, 1], dtype=np.uint8)
    leaves.splits = (np.zeros(1, np.int32), np.zeros(1, np.uint8), np.ones(1, np.uint8))
    leaves.gradient = np.array([[6.0, 6.0, 6.0, 6.0, -3.0, -3.0]])
    leaves.fit(sigma=5.0)
    # 24^2 / 4 + 6^2 / 2 - 18^2 / 6
    assert leaves.gains.tolist() == [144 + 18 - 54]


@pytest.mark.parametrize("n_rows", BLOCK_SIZES)
@pytest.mark.parametrize("depth", [3, 9, 16])
@pytest.mark.parametrize("newton", [False, True])
def test_leaf_values_and_the_step_do_not_depend_on_threads(n_rows, depth, newton):
    rng = np.random.default_rng(1)
    leaves = Leaves(rng, n_rows, depth, 2, weighted=True, newton=newton)
    expected = leaves.fit(0.3, 1.0, 0.9)
    np.testing.assert_allclose(
        expected[0], leaves.expected(0.3, 1.0, 0.9, 0.0, 1, 2)[0], rtol=1e-12, atol=1e-12
    )
    for n_threads in THREADS:
        result = leaves.fit(0.3, 1.0, 0.9, n_threads=n_threads)
        assert np.array_equal(result[0], expected[0])
        assert np.array_equal(result[1], expected[1])


@given(generators, sizes, st.integers(0, 16), st.integers(1, 3), st.sampled_from([1.0, 0.7]))
def test_adding_a_tree_again_gives_the_bits_of_training(rng, n_rows, depth, n_outputs, shrink):
    leaves = Leaves(rng, n_rows, depth, n_outputs, weighted=True)
    values, raw = leaves.fit(0.3, 1.0, shrink)
    assert np.array_equal(leaves.add(values, shrink), raw)
    expected = reference_leaves.add_tree(leaves.raw, leaves.leaf, values, shrink, leaves.offset)
    assert np.array_equal(raw, expected)


@pytest.mark.parametrize("n_rows", BLOCK_SIZES)
def test_adding_a_tree_does_not_depend_on_threads(n_rows):
    leaves = Leaves(np.random.default_rng(2), n_rows, 5, 3)
    values, raw = leaves.fit(0.3, 1.0, 0.9)
    for n_threads in THREADS:
        assert np.array_equal(leaves.add(values, 0.9, n_threads), raw)


def test_a_leaf_is_minus_rate_times_mean_gradient():
    leaves = Leaves(np.random.default_rng(3), 4, 1)
    leaves.columns = np.array([[1, 1, 1, 2]] * 5, dtype=np.uint8)
    leaves.splits = tuple(np.array([n], t) for n, t in ((0, "i4"), (0, "u1"), (1, "u1")))
    leaves.gradient[:] = [1.0, 2.0, 6.0, 8.0]
    leaves.raw[:] = 10.0
    leaves.offset[:] = 4.0
    values, raw = leaves.fit(learning_rate=0.5, shrink=0.5)
    assert values.tolist() == [[-1.5], [-4.0]]
    assert raw.tolist() == [[5.5, 5.5, 5.5, 3.0]]  # 4 + (10 - 4) / 2 + leaf
    values, _ = leaves.fit(learning_rate=1.0, l2=3.0)
    assert values.tolist() == [[-1.5], [-2.0]]
    leaves.weight = np.array([1.0, 2.0, 0.0, 0.5])
    values, _ = leaves.fit(learning_rate=1.0)
    np.testing.assert_allclose(values, [[-5.0 / 3.0], [-8.0]], rtol=1e-12)
    leaves.hessian = np.array([[1.0, 0.5, 9.0, 4.0]])
    values, _ = leaves.fit(learning_rate=1.0)
    np.testing.assert_allclose(values, [[-5.0 / 2.0], [-2.0]], rtol=1e-12)


def test_an_empty_leaf_is_exactly_zero_with_noise_too():
    leaves = Leaves(np.random.default_rng(4), 300, 10, 2, weighted=True)
    values, _ = leaves.fit(sigma=1.0, l2=1.0)
    weight = np.bincount(leaves.leaf, weights=leaves.weight, minlength=1024)
    assert (values[weight == 0] == 0).all()
    assert (values[weight > 0] != 0).all()


def test_rows_without_weight_do_not_matter():
    leaves = Leaves(np.random.default_rng(5), 300, 4, weighted=True, newton=True)
    expected, _ = leaves.fit(sigma=1.0)
    without = leaves.weight == 0
    leaves.gradient[:, without] = reference.largest(leaves.gradient)
    leaves.hessian[:, without] = reference.largest(leaves.hessian)
    leaves.columns[:, without] = 0
    assert np.array_equal(leaves.fit(sigma=1.0)[0], expected)


def test_a_whole_weight_is_a_repetition():
    rng = np.random.default_rng(6)
    leaves = Leaves(rng, 100, 3)
    leaves.weight = rng.integers(0, 4, 100).astype(float)
    weighted, _ = leaves.fit(sigma=0.5)
    repeats = leaves.weight.astype(int)
    leaves.columns = np.repeat(leaves.columns, repeats, axis=1)
    leaves.gradient = np.repeat(leaves.gradient, repeats, axis=1)
    leaves.raw = np.repeat(leaves.raw, repeats, axis=1)
    leaves.weight = None
    np.testing.assert_allclose(leaves.fit(sigma=0.5)[0], weighted, rtol=1e-12, atol=1e-13)


def test_a_newton_leaf_of_saturated_rows_takes_a_bounded_step():
    leaves = Leaves(np.random.default_rng(7), 100, 1, newton=True)
    leaves.hessian[:] = 1.0
    in_leaf = leaves.leaf == 0
    assert 0 < in_leaf.sum() < 100
    leaves.hessian[:, in_leaf] = 1e-30
    values, _ = leaves.fit(learning_rate=1.0)
    mean_hessian = leaves.hessian.mean()
    bound = 1e3 * np.abs(leaves.gradient[:, in_leaf].mean()) / mean_hessian
    assert abs(values[0, 0]) == pytest.approx(bound, rel=1e-12)


def test_noise_has_the_variance_of_a_mean():
    leaves = Leaves(np.random.default_rng(8), 400, 2, weighted=True)
    quiet, _ = leaves.fit(learning_rate=0.3, l2=1.5)
    loud, _ = leaves.fit(learning_rate=0.3, l2=1.5, sigma=2.0, seed=11, step=5)
    weight = np.bincount(leaves.leaf, weights=leaves.weight, minlength=4)
    xi = reference_noise.core_normals(11, 5, reference_noise.LEAF, 0, 4)
    expected = np.where(weight > 0, -0.3 * 2.0 / np.sqrt(weight + 1.5) * xi, 0.0)
    np.testing.assert_allclose((loud - quiet)[:, 0], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [1e-280, 1e-100, 1e100, 1e300])
def test_gradients_of_any_size_have_exact_means(size):
    leaves = Leaves(np.random.default_rng(9), 1000, 2)
    leaves.gradient[:] = size
    values, _ = leaves.fit(learning_rate=1.0)
    occupied = np.bincount(leaves.leaf, minlength=4) > 0
    np.testing.assert_allclose(values[occupied], -size, rtol=1e-14)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300])
def test_gradients_at_the_end_of_the_range_do_no_harm(size):
    leaves = Leaves(np.random.default_rng(9), 1000, 2)
    leaves.gradient[:] = size
    values, _ = leaves.fit(learning_rate=1.0)
    assert (np.abs(values) <= 2 * size).all()


def test_gradients_of_zero_leave_raw_where_it_was():
    leaves = Leaves(np.random.default_rng(10), 33, 3)
    leaves.gradient[:] = 0.0
    values, raw = leaves.fit()
    assert (values == 0).all()
    assert np.array_equal(raw, leaves.raw)


def test_shapes_and_splits_that_do_not_fit_are_refused():
    leaves = Leaves(np.random.default_rng(11), 10, 2)
    values, _ = leaves.fit()
    good = dict(vars(leaves))

    def refused(message, **wrong):
        vars(leaves).update(good, **wrong)
        with pytest.raises(ValueError, match=message):
            leaves.fit()

    features, lows, highs = leaves.splits
    refused("slopes must be", gradient=np.ones((1, 9)))
    refused("gradient and hessian", hessian=np.ones((2, 10)))
    refused("weight must be", weight=np.ones(11))
    refused("offset", offset=np.ones(2))
    refused("values must be", depth=3)
    refused("feature out of range", splits=(features + 5, lows, highs))
    refused("feature out of range", splits=(features - 9, lows, highs))
    refused("one length", splits=(features, lows[:1], highs))
    vars(leaves).update(good)
    with pytest.raises(ValueError, match="values"):
        leaves.add(values[:2].copy(), 1.0)
    with pytest.raises(ValueError, match="out must be"):
        _core.testing.leaf_indices(leaves.columns, leaves.structure, np.empty(9, np.uint16), 1)
    deep = tuple(np.zeros(17, t) for t in ("i4", "u1", "u1"))
    with pytest.raises(ValueError, match="at most 16"):
        leaf_indices(leaves.columns, deep)


def test_arrays_of_another_type_or_order_are_refused_not_copied():
    leaves = Leaves(np.random.default_rng(12), 10, 2, 2)
    values, raw = leaves.fit()
    raw = raw[None].copy()
    arguments = [leaves.columns, leaves.structure, values, KEEP.core, leaves.offset, raw, 1]
    _core.add_tree(*arguments)
    wrong = {
        0: [leaves.columns.astype(np.int8), np.asfortranarray(leaves.columns), leaves.columns[0]],
        1: [leaves.splits, None],
        2: [values.astype(np.float32), np.asfortranarray(values), values.ravel()],
        3: ["a", None],
        4: [leaves.offset.astype(np.float32), leaves.offset.tolist()],
        5: [raw.astype(np.float32), np.asfortranarray(raw), raw[..., ::-1], math.pi],
    }
    for position, replacements in wrong.items():
        for replacement in replacements:
            before = raw.copy()
            changed = [*arguments[:position], replacement, *arguments[position + 1 :]]
            with pytest.raises(TypeError, match="incompatible function arguments"):
                _core.add_tree(*changed)
            assert np.array_equal(raw, before)
    read_only = raw.copy()
    read_only.flags.writeable = False
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.add_tree(*arguments[:5], read_only, 1)


def test_shards_that_do_not_make_sense_are_refused():
    columns = np.zeros((2, 5), dtype=np.uint8)
    codes = reference.to_rows(columns)
    counts, kinds = np.ones(2, dtype=np.int32), np.zeros(2, dtype=np.uint8)
    good = [columns, codes, counts, kinds, _core.Weights(None, 1.0, 1.0, 5.0, 1.0), (0, 5, 1), 1]
    _core.Shard(*good)
    wrong = [
        ("code_columns must be", 0, columns[:, :4].copy()),
        ("code_columns must be", 0, columns[:1].copy()),
        ("n_codes must lie", 2, 0 * counts),
        ("weight must be", 4, _core.Weights(np.ones(4), 1.0, 1.0, 4.0, 1.0)),
        ("rows of the table", 5, (1, 5, 1)),
        ("rows of the table", 5, (-1, 9, 1)),
        ("multiple of the copies", 5, (0, 5, 2)),
    ]
    for message, index, value in wrong:
        with pytest.raises(ValueError, match=message):
            _core.Shard(*good[:index], value, *good[index + 1 :])
    with pytest.raises(ValueError, match="must be positive"):
        _core.Weights(np.ones(5), 0.0, 1.0, 5.0, 1.0)
