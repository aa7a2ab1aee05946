"""Rows for a structure: drawn by importance, the same for any number of threads."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from problems import THREADS, generators, make_weight, seeds, steps
from test_search import draw_rows, sigmas, weightings


@settings(max_examples=200)
@given(
    generators,
    st.sampled_from([2, 33, 100, 257, 3000]),
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
    begin = int(rng.integers(0, n_rows - 1))
    n = max(1, int(share * (n_rows - begin - 1)))
    found = draw_rows(gradient, weight, sigma, n, *where, begin=begin)
    expected = reference.draw_rows(gradient, weight, sigma, begin, n_rows, n, *where)
    for name, a, b in zip(found._fields, found, expected, strict=True):
        assert np.array_equal(a, b), name


def test_the_rows_drawn_do_not_depend_on_threads():
    rng = np.random.default_rng(1)
    gradient, weight = rng.normal(size=(1, 40_000)), make_weight(rng, 40_000)
    for n in (100, 10_000, 39_999):
        expected = draw_rows(gradient, weight, 0.1, n)
        for n_threads in THREADS:
            found = draw_rows(gradient, weight, 0.1, n, n_threads=n_threads)
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("n", [500, 5000, 20_000])
def test_about_as_many_rows_are_drawn_as_are_wanted(n):
    gradient = np.random.default_rng(2).standard_t(3, size=(1, 40_000))
    drawn = len(draw_rows(gradient, None, 0.0, n).rows)
    # mu is known from 1,024 rows; the number of rows varies no more than a Poisson number.
    assert abs(drawn - n) < 5 * (math.sqrt(n) + 0.03 * n)


def test_rows_without_weight_are_never_drawn():
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 2, 1000).astype(np.float64)
    draw = draw_rows(rng.normal(size=(1, 1000)), weight, 1.0, 400)
    assert (weight[draw.rows] > 0).all()


@pytest.mark.parametrize("sigma", [0.0, 2.0])
def test_where_no_row_has_a_gradient_all_are_alike(sigma):
    draw = draw_rows(np.zeros((1, 1000)), None, sigma, 250)
    assert np.allclose(draw.lift, 2.0)  # of 500 candidates
    assert draw.share == 0.5
