"""Growing a structure: rows, words and search in one call, and what the kernels refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from problems import (
    THREADS,
    generators,
    make_codes,
    make_weight,
    seeds,
    shard_without_codes,
    steps,
)
from searching import (
    Search,
    assert_same,
    bounds_of,
    draw_rows,
    make_kinds,
    quantise,
    sigmas,
    weightings,
)
from sglb import _core


@settings(max_examples=300)
@given(
    generators,
    st.sampled_from([0, 4, 32, 36, 100]),
    st.integers(1, 3),
    st.booleans(),
    weightings,
    sigmas,
    st.sampled_from([0.0, 5.0, 50.0]),
    st.tuples(st.sampled_from([None, 0, 1, 20, 10**9]), st.sampled_from([None, 1, 2, 10**9])),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([1, 2, 4]),
    st.tuples(seeds, steps),
)
def test_growing_equals_its_twin(
    rng, n_rows, n_outputs, newton, weighting, sigma, l2, sample, strength, n_copies, where
):
    structure_rows, structure_outputs = sample
    n_codes = [5, 2, 9, 3, 1, 4, 4, 2, 6]
    columns, kinds = make_kinds(rng, n_rows, n_codes)
    gradient = rng.normal(size=(n_outputs, n_rows))
    hessian = rng.uniform(size=gradient.shape) if newton else None
    weight = make_weight(rng, n_rows, weighting) if weighting else None
    growth = reference.Growth(3, l2, structure_rows, strength, n_copies, structure_outputs)
    result = Search(3).grow(
        columns, n_codes, kinds, (gradient, hessian), weight, sigma, growth, *where
    )
    bounds = bounds_of(gradient, hessian)
    expected = reference.grow(
        columns, n_codes, kinds, gradient, hessian, weight, bounds, sigma, growth, *where
    )
    assert_same(result, expected)


@pytest.mark.parametrize("structure_rows", [1000, 3000, 5999])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_growing_on_a_sample_of_many_rows_equals_its_twin(structure_rows, n_outputs):
    # Enough rows for sums to limit the scales, and for outputs to be drawn by some of the rows.
    rng = np.random.default_rng(structure_rows + n_outputs)
    n_codes = [5, 2, 9, 33, 7]
    columns, kinds = make_kinds(rng, 6000, n_codes)
    gradient = rng.standard_t(3, size=(n_outputs, 6000))
    hessian = rng.uniform(size=gradient.shape)
    growth = reference.Growth(4, 1.0, structure_rows, 0.5, 1, 2)
    for n_threads in THREADS:
        for step in range(5):
            result = Search(4, n_threads).grow(
                columns, n_codes, kinds, (gradient, hessian), None, 0.3, growth, 1, step
            )
            bounds = bounds_of(gradient, hessian)
            expected = reference.grow(
                columns, n_codes, kinds, gradient, hessian, None, bounds, 0.3, growth, 1, step
            )
            assert_same(result, expected)


def test_newton_scores_prefer_flat_rows():
    # Both features part the gradient alike; the second gathers the rows of little curvature.
    columns = np.array([[1, 2, 1, 2], [1, 1, 2, 2]], dtype=np.uint8)
    gradient = np.array([[3.0, -1.0, 1.0, -3.0]])
    hessian = np.array([[0.1, 0.1, 1.0, 1.0]])
    growth = reference.Growth(1)
    by_weight = Search(1).grow(columns, [3, 3], [0, 0], gradient, None, 0.0, growth)
    assert by_weight.features.tolist() == [0]  # (4^2 + 4^2) / 2 against (2^2 + 2^2) / 2
    gradient = np.array([[3.0, 1.0, -1.0, 1.0]])
    by_weight = Search(1).grow(columns, [3, 3], [0, 0], gradient, None, 0.0, growth)
    by_curvature = Search(1).grow(columns, [3, 3], [0, 0], (gradient, hessian), None, 0.0, growth)
    # By weight 2^2 / 2 + 2^2 / 2 against 4^2 / 2; by curvature 2^2 / 1.1 twice against 4^2 / .2.
    assert by_weight.features.tolist() == [1]
    assert by_curvature.features.tolist() == [1]
    hessian = np.array([[0.1, 1.0, 0.1, 1.0]])
    # By curvature the first feature has 2^2 / .2 + 2^2 / 2, the second 4^2 / 1.1.
    by_curvature = Search(1).grow(columns, [3, 3], [0, 0], (gradient, hessian), None, 0.0, growth)
    assert by_curvature.features.tolist() == [0]


def test_a_feature_of_levels_is_split_by_one_level_against_the_rest():
    columns = np.array([[1, 2, 3, 1, 2, 3]], dtype=np.uint8)
    packed = (np.array([[-3, 6, -3, -3, 6, -3]]) << 32) + 1
    result = Search(1).search(columns, [4], [reference.LEVELS], packed)
    assert (result.lows[0], result.highs[0]) == (2, 2)
    last = (np.array([[-3, -3, 6, -3, -3, 6]]) << 32) + 1
    result = Search(1).search(columns, [4], [reference.LEVELS], last)
    assert (result.lows[0], result.highs[0]) == (3, 3)


@pytest.mark.parametrize("structure_outputs", [None, 1])
@pytest.mark.parametrize("structure_rows", [None, 9000])
def test_growing_does_not_depend_on_threads(structure_rows, structure_outputs):
    rng = np.random.default_rng(6)
    n_codes = [33, 65, 2, 17, 9]
    columns, kinds = make_kinds(rng, 30_000, n_codes)
    gradient, weight = rng.normal(size=(2, 30_000)), make_weight(rng, 30_000)
    growth = reference.Growth(6, structure_rows=structure_rows, structure_outputs=structure_outputs)
    problem = columns, n_codes, kinds, gradient, weight, 0.5, growth
    expected = Search(6).grow(*problem)
    for n_threads in THREADS:
        assert_same(Search(6, n_threads).grow(*problem), expected)


@pytest.mark.parametrize("structure_outputs", [None, 1])
@pytest.mark.parametrize("factor", [2.0**-20, 2.0, 2.0**40])
def test_the_structure_does_not_depend_on_the_scale_of_the_gradient(factor, structure_outputs):
    rng = np.random.default_rng(8)
    columns, has_missing = make_codes(rng, 500, [9, 5, 5])
    gradient = rng.normal(size=(2, 500))
    growth = reference.Growth(4, random_strength=1.0, structure_outputs=structure_outputs)
    problem = columns, [9, 5, 5], has_missing
    expected = Search(4).grow(*problem, gradient, None, 1.5, growth)
    result = Search(4).grow(*problem, factor * gradient, None, factor * 1.5, growth)
    assert_same(result, expected)


def test_rows_without_weight_do_not_matter():
    rng = np.random.default_rng(9)
    columns, _ = make_codes(rng, 400, [9, 5])
    has_missing = np.array([True, True])
    gradient, weight = rng.normal(size=(1, 400)), make_weight(rng, 400)
    growth = reference.Growth(3)
    expected = Search(3).grow(columns, [9, 5], has_missing, gradient, weight, 1.0, growth)
    columns[:, weight == 0] = 0
    gradient[:, weight == 0] = reference.largest(gradient)
    result = Search(3).grow(columns, [9, 5], has_missing, gradient, weight, 1.0, growth)
    assert_same(result, expected)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 1e308])
def test_gradients_of_any_size_give_a_structure(size):
    rng = np.random.default_rng(2)
    columns, has_missing = make_codes(rng, 100, [5, 5])
    gradient = np.where(columns[:1] > 2, size, -size)
    result = Search(1).grow(
        columns, [5, 5], has_missing, gradient, None, 0.0, reference.Growth(max_depth=1)
    )
    assert len(result.features) == 1
    if 1e-300 < size < 1e300:
        assert (result.features[0], result.highs[0]) == (0, 2)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
def test_equal_weights_of_any_size_are_as_good_as_none(size):
    rng = np.random.default_rng(2)
    columns, has_missing = make_codes(rng, 100, [5, 9])
    gradient = rng.normal(size=(1, 100))
    problem = columns, [5, 9], has_missing, gradient
    growth = reference.Growth(max_depth=2)
    plain = Search(2).grow(*problem, None, 0.0, growth)
    result = Search(2).grow(*problem, np.full(100, size), 0.0, growth)
    assert len(result.features) == 2
    if 1e-300 < size < 1e300:
        assert result.features.tolist() == plain.features.tolist()
        assert result.highs.tolist() == plain.highs.tolist()


# Refusals.


def test_shapes_and_numbers_that_do_not_fit_are_refused():
    columns = np.ones((2, 3), dtype=np.uint8)
    no_missing = np.zeros(2, bool)
    packed = np.ones((1, 3), dtype=np.int64)
    search = Search(2).search
    with pytest.raises(ValueError, match="n_codes and kinds"):
        search(columns, [3], no_missing, packed)
    for n_codes in ([3, 0], [257, 3], [-1, 3]):
        with pytest.raises(ValueError, match=r"n_codes must lie in 1\.\.256"):
            search(columns, n_codes, no_missing, packed)
    with pytest.raises(ValueError, match="one word per structure row"):
        search(columns, [3, 3], no_missing, packed[:, :2].copy())
    with pytest.raises(ValueError, match="a structure row is out of range"):
        search(columns, [3, 3], no_missing, packed, np.array([0, 1, 3], dtype=np.uint32))
    with pytest.raises(TypeError, match="incompatible"):
        search(columns, [3, 3], no_missing, packed, np.array([0, 1, 2]))
    for max_depth in (0, 17):
        with pytest.raises(ValueError, match=r"max_depth must lie in 1\.\.16"):
            Search(max_depth).search(columns, [3, 3], no_missing, packed)
    draw = reference.Draw(np.array([3], dtype=np.uint32), None, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="a structure row is out of range"):
        quantise(np.ones((1, 3)), None, draw, 0.0)
    with pytest.raises(ValueError, match="packed must be"):
        _core.testing.quantise(
            shard_without_codes(3),
            _core.Slopes(np.ones((1, 3)), None),
            None,
            (1.0, 0.0),
            (1.0, 0.0),
            False,
            _core.Draws(0, 0),
            packed[:, :2].copy(),
        )
    draw = reference.Draw(np.array([0], dtype=np.uint32), np.ones(2), 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="inverse_probability must be"):
        quantise(np.ones((1, 3)), None, draw, 0.0)
    for n in (0, 3, 4):
        with pytest.raises(ValueError, match=r"n must lie in 1\.\.rows - 1"):
            draw_rows(np.ones((1, 3)), None, 0.0, n)
    growth = reference.Growth(2, structure_rows=-1)
    with pytest.raises(ValueError, match="a plan wants no rows or more"):
        Search(2).grow(columns, [3, 3], no_missing, np.ones((1, 3)), None, 0.0, growth)
    growth = reference.Growth(2, structure_outputs=0)
    with pytest.raises(ValueError, match="and an output"):
        Search(2).grow(columns, [3, 3], no_missing, np.ones((1, 3)), None, 0.0, growth)
    with pytest.raises(ValueError, match="slopes must be"):
        Search(2).grow(columns, [3, 3], no_missing, np.ones((1, 4)), None, 0.0, reference.Growth(2))
