"""Noise as a function of (seed, step, role, output, index), and the samples drawn with it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference_bins
import reference_noise
from problems import BLOCK_SIZES, THREADS, generators, seeds, sizes, steps
from sglb import _core
from sglb.noise import chain_seed

roles = st.integers(0, 17)
outputs = st.integers(0, 2**24 - 1)
firsts = st.one_of(st.integers(0, 2**64 - 1000), st.integers(2**32 - 40, 2**32))


def words(seed, step, role, output, first, n):
    out = np.empty((n, 4), dtype=np.uint32)
    _core.words(seed, step, role, output, first, out)
    return out


def normals(seed, step, role, output, first, n, n_threads=1):
    out = np.empty(n)
    _core.testing.normals(seed, step, role, output, first, out, n_threads)
    return out


@pytest.mark.parametrize(("counter", "key", "answer"), reference_noise.KNOWN_ANSWERS)
def test_words_are_the_known_answers_of_philox(counter, key, answer):
    c, k, expected = ([int(word, 16) for word in text.split()] for text in (counter, key, answer))
    assert reference_noise.philox(c, k) == tuple(expected)
    result = words(k[0] | k[1] << 32, c[2], c[3] & 255, c[3] >> 8, c[0] | c[1] << 32, 1)
    assert result[0].tolist() == expected


@given(st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
def test_the_twin_with_wider_words_is_numpys_philox(numbers):
    *counter, k0, k1 = numbers
    counter[0] %= 2**64 - 1  # NumPy counts one up before it draws
    theirs = np.random.Philox(
        counter=np.array(counter, dtype=np.uint64), key=np.array([k0, k1], dtype=np.uint64)
    ).random_raw(4)
    ours = reference_noise.philox([counter[0] + 1, *counter[1:]], [k0, k1], bits=64)
    assert list(ours) == theirs.tolist()


@given(seeds, steps, roles, outputs, firsts, sizes)
def test_words_equal_their_twin(seed, step, role, output, first, n):
    expected = reference_noise.words(seed, step, role, output, first, n)
    assert np.array_equal(words(seed, step, role, output, first, n), expected)


@given(seeds, steps, roles, outputs, firsts, sizes)
def test_normals_equal_their_twin(seed, step, role, output, first, n):
    expected = reference_noise.normals(seed, step, role, output, first, n)
    result = normals(seed, step, role, output, first, n)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@given(seeds, st.integers(0, 300), st.integers(0, 300))
def test_any_stretch_of_normals_can_be_had_at_once(seed, first, n):
    whole = normals(seed, 5, 7, 0, 0, first + n)
    assert np.array_equal(normals(seed, 5, 7, 0, first, n), whole[first:])


@pytest.mark.parametrize("n", BLOCK_SIZES)
def test_normals_do_not_depend_on_threads(n):
    expected = normals(3, 1, 0, 2, 11, n)
    for n_threads in THREADS:
        assert np.array_equal(normals(3, 1, 0, 2, 11, n, n_threads), expected)


def test_no_two_streams_share_a_number():
    streams = [
        (seed, step, role, output)
        for seed in (0, 1, 2**32, 2**63)
        for step in (0, 1, 2**31)
        for role in range(14)
        for output in (0, 1, 2**23)
    ]
    drawn = np.concatenate([words(*stream, 0, 50) for stream in streams])
    assert len(np.unique(drawn, axis=0)) == len(drawn)


def test_the_largest_normal_is_the_bound_that_quantising_uses():
    assert math.sqrt(-2.0 * math.log(2.0**-33)) < 6.7638


@given(st.floats(2.0**-1022, 1.7e308))
def test_the_logarithm_of_the_twin_is_a_logarithm(x):
    assert reference_bins.logarithm(x) == pytest.approx(math.log(x), rel=4e-16, abs=4e-16)


@given(seeds, steps, sizes, st.integers(1, 3), st.sampled_from([0.001, 0.1, 0.5, 1.0]), generators)
def test_subsample_equals_its_twin(seed, step, n, n_outputs, rate, rng):
    gradient, hessian = rng.normal(size=(2, n_outputs, n))
    result, curvature = np.empty_like(gradient), np.empty_like(gradient)
    slopes = _core.Slopes(gradient, hessian)
    _core.testing.evaluate(slopes, rate, _core.Draws(seed, step), result, curvature)
    assert np.array_equal(result, reference_noise.subsample(gradient, rate, seed, step))
    assert np.array_equal(curvature, hessian)


def test_a_subsample_keeps_a_row_for_all_outputs_or_for_none():
    gradient = np.empty((3, 500))
    slopes = _core.Slopes(np.ones((3, 500)), None)
    _core.testing.evaluate(slopes, 0.5, _core.Draws(1, 2), gradient, None)
    assert (gradient == gradient[0]).all()
    assert set(np.unique(gradient)) == {0.0, 2.0}


def test_arguments_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="4 columns"):
        _core.words(1, 0, 0, 0, 0, np.empty((2, 3), dtype=np.uint32))
    for seed, step in ((-1, 0), (2**64, 0), (0, -1), (0, 2**32), (0.5, 0), ("a", 0)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _core.testing.normals(seed, step, 0, 0, 0, np.empty(3), 1)


def test_every_chain_has_a_seed_of_its_own():
    seeds_of_chains = {chain_seed(seed, chain) for seed in range(50) for chain in range(50)}
    assert len(seeds_of_chains) == 2500  # equal by chance with probability 2e-13
