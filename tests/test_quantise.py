"""Noisy gradients as integers: the words that histograms add."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from problems import BLOCK_SIZES, THREADS, WEIGHTS, generators, make_weight, seeds, sizes, steps
from searching import bounds_of, quantise, sigmas, weightings
from sglb import _core


def make_draw(rng, kind, gradient, weight, sigma):
    """No draw, the rows of a range, or a draw that a search could be given."""
    n_rows = gradient.shape[1]
    if kind == "all" or n_rows < 3:
        return None
    if kind == "range":
        return reference.Draw(np.arange(n_rows // 3, n_rows, dtype=np.uint32), None, 1.0, 1.0, 1.0)
    return reference.draw_rows(gradient, weight, sigma, 0, n_rows, n_rows // 3, 5, 6)


@settings(max_examples=300)
@given(
    generators,
    sizes,
    st.integers(1, 3),
    weightings,
    st.sampled_from(["all", "range", "drawn"]),
    st.booleans(),
    sigmas,
    seeds,
    steps,
)
def test_words_of_noisy_gradients_equal_their_twin(
    rng, n_rows, n_outputs, weighting, kind, newton, sigma, seed, step
):
    gradient = rng.normal(size=(n_outputs, n_rows)) * 10.0 ** rng.integers(-9, 9)
    hessian = rng.uniform(0.0, 0.25, size=gradient.shape) ** 4 if newton else None
    weight = make_weight(rng, n_rows, weighting) if weighting else None
    draw = make_draw(rng, kind, gradient, weight, sigma)
    packed, scales = quantise(gradient, weight, draw, sigma, seed, step, hessian=hessian)
    bounds = bounds_of(gradient, hessian)
    expected = reference.quantise(gradient, hessian, weight, draw, sigma, bounds, seed, step)
    assert scales == expected[1]
    assert np.array_equal(packed, expected[0])
    q, w = reference.unpack(packed)
    assert np.abs(q).sum(axis=1).max(initial=0) < 2**31
    assert w.sum(axis=1).max(initial=0) < 2**31
    assert (
        w >= (0 if weight is None else weight[slice(None) if draw is None else draw.rows] > 0)
    ).all()


@pytest.mark.parametrize("sigma", [0.0, 1.0])
@pytest.mark.parametrize("weighting", [None, *WEIGHTS])
@pytest.mark.parametrize("kind", ["all", "range", "drawn"])
@pytest.mark.parametrize("newton", [False, True])
def test_words_of_many_rows_equal_their_twin(sigma, weighting, kind, newton):
    # So many that a row has fewer than 19 bits and is rounded at random.
    rng = np.random.default_rng(0)
    gradient = rng.normal(size=(1, 9000))
    hessian = rng.uniform(0.0, 1.0, size=gradient.shape) if newton else None
    weight = make_weight(rng, 9000, weighting) if weighting else None
    draw = make_draw(rng, kind, gradient, weight, sigma)
    packed, scales = quantise(gradient, weight, draw, sigma, hessian=hessian)
    bounds = bounds_of(gradient, hessian)
    expected = reference.quantise(gradient, hessian, weight, draw, sigma, bounds, 1, 2)
    assert scales == expected[1]
    assert np.array_equal(packed, expected[0])


@pytest.mark.parametrize("n", BLOCK_SIZES)
@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_words_do_not_depend_on_threads(n, sigma):
    rng = np.random.default_rng(0)
    gradient, weight = rng.normal(size=(2, n)), make_weight(rng, n)
    expected, _ = quantise(gradient, weight, None, sigma)
    for n_threads in THREADS:
        result, _ = quantise(gradient, weight, None, sigma, n_threads=n_threads)
        assert np.array_equal(result, expected)


def test_a_rows_word_does_not_depend_on_which_rows_are_with_it():
    gradient = np.random.default_rng(1).normal(size=(1, 40))
    whole, _ = quantise(gradient, None, None, 1.0)
    subset = np.array([3, 17, 39], dtype=np.uint32)
    draw = reference.Draw(subset, None, 1.0, 1.0, 1.0)
    part, _ = quantise(gradient, None, draw, 1.0)  # the same scale: 2^20 steps either way
    assert np.array_equal(part[0], whole[0, subset])


@pytest.mark.parametrize("n", [1, 1000, 2047, 2049, 100_000])
def test_sums_of_words_never_leave_their_half(n):
    gradient = np.full((1, n), -3.0)
    weight = np.full(n, 0.1)
    packed, scales = quantise(gradient, weight, None, 0.0)
    total = packed.sum()
    assert total >> 32 == packed[0].astype(object).sum() >> 32
    q, w = reference.unpack(packed)
    assert np.abs(q).sum() < 2**31
    assert w.sum() < 2**31
    assert q.sum() / scales[0] == pytest.approx((weight * gradient).sum(), rel=1e-3)
    assert w.sum() / scales[1] == pytest.approx(weight.sum(), rel=1e-3)


def test_a_sum_at_the_end_of_its_half_is_not_rounded_over_it():
    # 4,000 times 536,870.9 is below 2^31, but not if it is rounded before it is multiplied.
    packed, _ = quantise(np.array([[536870.9]]), np.array([4000.0]), None, 0.0)
    q, w = reference.unpack(packed)
    assert 0 < q.item() < 2**31
    assert 0 < w.item() < 2**31


def test_rounding_is_unbiased():
    # The mean of 20,000 Bernoulli roundings of 2^-21-th steps: five standard errors.
    n = 20_000
    gradient = np.full((1, n), 0.3)
    bounds = (30.0, 0.0)  # so few steps that rounding shows: 30 stands for 2^31 / n
    packed, (scale, _) = quantise(gradient, None, None, 0.0, 5, 6, bounds=bounds)
    exact = 0.3 * scale
    q = packed[0] >> 32
    assert set(np.unique(q)) == {math.floor(exact), math.ceil(exact)}
    share = exact - math.floor(exact)
    assert abs(q.mean() - exact) < 5 * math.sqrt(share * (1 - share) / n)


@pytest.mark.parametrize("newton", [False, True])
def test_a_row_of_weight_three_has_the_word_of_three_rows(newton):
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, 50).astype(np.float64)
    gradient, hessian = rng.normal(size=(2, 50)), rng.uniform(size=(2, 50)) if newton else None
    times = np.repeat(np.arange(50), weight.astype(int))
    repeated = np.ascontiguousarray(hessian[:, times]) if newton else None
    whole, scales = quantise(gradient, weight, None, 0.0, hessian=hessian)
    single, single_scales = quantise(
        np.ascontiguousarray(gradient[:, times]), None, None, 0.0, hessian=repeated
    )
    assert scales[0] == single_scales[0]
    q, w = reference.unpack(whole)
    q_single, w_single = reference.unpack(single)
    for k in range(2):
        assert np.array_equal(q[k], np.bincount(times, weights=q_single[k], minlength=50))
        mass = np.bincount(times, weights=w_single[k] / single_scales[1], minlength=50)
        assert np.array_equal(w[k] / scales[1], mass)


@given(generators, sizes, st.integers(1, 3), st.sampled_from([0.0, math.nan, math.inf, -1e300]))
def test_the_largest_value_equals_its_twin(rng, n, n_outputs, special):
    values = rng.normal(size=(n_outputs, n))
    assert _core.largest(values, 1) == reference.largest(values)
    if values.size:
        values.flat[rng.integers(values.size)] = special
        assert _core.largest(values, 1) == reference.largest(values)


@pytest.mark.parametrize("n", BLOCK_SIZES)
def test_the_largest_value_does_not_depend_on_threads(n):
    values = np.random.default_rng(10).normal(size=n)
    for n_threads in THREADS:
        assert _core.largest(values, n_threads) == np.abs(values).max()
