"""Rows for a structure: drawn by importance, the same for any number of threads."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import reference
from problems import THREADS, generators, make_weight, seeds, steps
from searching import Search, draw_rows, sigmas, weightings


@settings(max_examples=200)
@given(
    generators,
    st.sampled_from([5, 33, 100, 257, 3000]),
    st.sampled_from([0.01, 0.3, 0.5, 0.9]),
    st.integers(1, 3),
    weightings,
    sigmas,
    st.tuples(seeds, steps),
)
def test_drawn_rows_equal_their_twin(rng, n_rows, share, n_outputs, weighting, sigma, where):
    gradient = rng.normal(size=(n_outputs, n_rows)) ** 3 * 10.0 ** rng.integers(-9, 9)
    gradient[:, : n_rows // 4] = 0.0
    weight = make_weight(rng, n_rows, weighting) if weighting else None
    n_copies = int(rng.choice([d for d in (1, 2, 3, 4) if n_rows % d == 0 and n_rows > 2 * d]))
    size = n_rows // n_copies
    begin = where[1] % n_copies * size
    n = max(1, int(share * (size - 1)))
    result = draw_rows(gradient, weight, sigma, n, *where, n_copies=n_copies)
    expected = reference.draw_rows(gradient, weight, sigma, begin, begin + size, n, *where)
    for name, a, b in zip(result._fields, result, expected, strict=True):
        assert np.array_equal(a, b), name


def test_the_rows_drawn_do_not_depend_on_threads():
    rng = np.random.default_rng(1)
    gradient, weight = rng.normal(size=(1, 40_000)), make_weight(rng, 40_000)
    for n in (100, 10_000, 39_999):
        expected = draw_rows(gradient, weight, 0.1, n)
        for n_threads in THREADS:
            result = draw_rows(gradient, weight, 0.1, n, n_threads=n_threads)
            assert all(np.array_equal(a, b) for a, b in zip(result, expected, strict=True))


@pytest.mark.parametrize("n", [500, 5000, 20_000])
def test_about_as_many_rows_are_drawn_as_are_wanted(n):
    gradient = np.random.default_rng(2).standard_t(3, size=(1, 40_000))
    drawn = len(draw_rows(gradient, None, 0.0, n).rows)
    # mu is known from 1,024 rows; the number of rows varies no more than a Poisson number.
    assert abs(drawn - n) < 5 * (math.sqrt(n) + 0.03 * n)


@pytest.mark.parametrize("sigma", [0.0, 0.01])
@pytest.mark.parametrize("n", [15_000, 20_000])
def test_few_rows_with_weight_are_all_drawn(n, sigma):
    """Though the rows that mu is found on show none of them."""
    gradient, weight = np.full((1, 20_001), 0.05), np.zeros(20_001)
    weight[[3, 7_001, 15_003]] = 1.0, 2.0, 1.0
    result = draw_rows(gradient, weight, sigma, n)
    assert np.array_equal(result.rows, [3, 7_001, 15_003])
    assert np.array_equal(result.inverse_probability, np.ones(3))


@pytest.mark.parametrize("sigma", [0.0, 2.0])
def test_an_output_leads_in_proportion_to_the_square_of_its_noisy_gradient(sigma):
    # Output k is told by feature k alone, so the split says which output led.
    sizes, n_rows, n_draws = np.array([1.0, 2.0, 4.0]), 200, 3000
    columns = np.array([np.arange(n_rows) >> k & 1 for k in range(3)], dtype=np.uint8)
    gradient = sizes[:, None] * np.where(columns > 0, 10.0, -10.0)
    growth = reference.Growth(1, structure_outputs=1)
    search = Search(1)
    led = [
        search.grow(columns, [2] * 3, [0] * 3, gradient, None, sigma, growth, step=step).features[0]
        for step in range(n_draws)
    ]
    chances = (10.0 * sizes) ** 2 + sigma**2
    expected = n_draws * chances / chances.sum()
    # Wrong once in 10,000 runs of other seeds.
    assert stats.chisquare(np.bincount(led, minlength=3), expected).pvalue > 1e-4


def test_several_outputs_are_drawn_without_replacement():
    rng = np.random.default_rng(4)
    packed = rng.integers(-1000, 1000, size=(5, 3000)) << 32
    drawn = np.array([reference.draw_outputs(packed, 2, 1, step) for step in range(2000)])
    assert (drawn[:, 0] < drawn[:, 1]).all()
    # Ten pairs of outputs that are alike; the error rate is that of the test above.
    pairs = np.bincount(5 * drawn[:, 0] + drawn[:, 1], minlength=25)
    places = np.arange(1024) * 3000 // 1024
    squares = ((packed[:, places] >> 32).astype(float) ** 2).sum(axis=1)
    p = squares / squares.sum()
    expected = np.zeros((5, 5))
    for a in range(5):
        for b in range(a + 1, 5):
            expected[a, b] = p[a] * p[b] * (1 / (1 - p[a]) + 1 / (1 - p[b]))
    seen = expected.ravel() > 0.0
    assert stats.chisquare(pairs[seen], 2000 * expected.ravel()[seen]).pvalue > 1e-4


def test_rows_without_weight_are_never_drawn():
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 2, 1000).astype(np.float64)
    draw = draw_rows(rng.normal(size=(1, 1000)), weight, 1.0, 400)
    assert (weight[draw.rows] > 0).all()


@pytest.mark.parametrize("sigma", [0.0, 2.0])
def test_where_no_row_has_a_gradient_all_are_alike(sigma):
    draw = draw_rows(np.zeros((1, 1000)), None, sigma, 250)
    assert np.allclose(draw.inverse_probability, 2.0)  # of 500 candidates
    assert draw.share == 0.5
