"""exp, log and powers of the core: close to those of the C library, and the same bits anywhere."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglb import elementary

SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.3e-308, 1e308]
FUNCTIONS = {
    "exp": [-745.2, -745.1, -744.0, -720.0, -708.4, 709.7, 709.79, 1e-300, 30.0, -1e300],
    "log": [1.0 - 2.0**-53, 1.0 + 2.0**-52, 1e-310, 1e-320, 2.0, 0.5, 1e300],
    "log1p": [1e-20, -1e-20, 1e-8, -0.5, -1.0 + 2.0**-53, 0.3, 1e10, 1e300, -2.0],
    "expm1": [
        1e-20,
        -1e-20,
        1e-8,
        0.34,
        -0.34,
        0.35,
        -0.35,
        -50.0,
        -61.0,
        -1e4,
        650.0,
        705.0,
        710.0,
    ],
}
FLOATS = st.floats(allow_nan=True, allow_infinity=True)


def assert_close(actual, wanted, ulps):
    """Equal but for some units in the last place; infinity and NaN exactly."""
    assert np.isnan(actual).tolist() == np.isnan(wanted).tolist()
    known = np.isfinite(wanted)
    assert (
        actual[~known & ~np.isnan(wanted)].tolist() == wanted[~known & ~np.isnan(wanted)].tolist()
    )
    assert (np.abs(actual[known] - wanted[known]) <= ulps * np.spacing(np.abs(wanted[known]))).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_numpys_but_for_its_last_bits_at_special_numbers(name):
    x = np.array(SPECIAL + FUNCTIONS[name])
    with np.errstate(all="ignore"):
        assert_close(getattr(elementary, name)(x), getattr(np, name)(x), 3)


@given(st.lists(FLOATS, max_size=20), st.sampled_from(sorted(FUNCTIONS)), st.booleans())
def test_a_function_is_numpys_but_for_its_last_bits(values, name, small):
    x = np.array(values, dtype=np.float64)
    x = x % 4.0 - 1.0 if small and np.isfinite(x).all() else x
    with np.errstate(all="ignore"):
        assert_close(getattr(elementary, name)(x), getattr(np, name)(x), 3)


@given(st.lists(FLOATS, min_size=1, max_size=40), st.sampled_from(["exp", "log"]))
def test_a_number_alone_has_the_bits_that_it_has_among_others(values, name):
    function = getattr(elementary, name)
    together = function(np.array(values))
    alone = np.array([function(value) for value in values])
    assert np.array_equal(together, alone, equal_nan=True)
    assert isinstance(function(values[0]), float)


def test_arrays_of_any_layout_keep_their_shape():
    x = np.arange(1.0, 13.0).reshape(3, 4)
    np.testing.assert_allclose(elementary.log(x.T), np.log(x.T), rtol=1e-15)
    np.testing.assert_allclose(elementary.exp(x[:, ::2]), np.exp(x[:, ::2]), rtol=1e-15)


@given(st.floats(1e-6, 1e6), st.floats(-3.0, 3.0))
def test_a_power_is_that_of_the_c_library_to_fourteen_digits(base, exponent):
    assert elementary.power(base, exponent) == pytest.approx(base**exponent, rel=2e-14)


def test_powers_of_zero_and_one_are_exact():
    assert elementary.power(0.3, 1.0) == 0.3
    assert elementary.power(0.0, 0.0) == elementary.power(7.0, 0.0) == 1.0
    assert elementary.power(0.0, 0.5) == 0.0
    assert elementary.power(1.0, 0.451) == 1.0


@given(st.floats(1e-3, 1e6))
def test_the_logarithm_of_gamma_is_that_of_the_c_library_to_thirteen_digits(x):
    assert elementary.log_gamma(x) == pytest.approx(math.lgamma(x), rel=1e-13, abs=1e-13)


def test_the_logarithm_of_gamma_of_whole_numbers_is_that_of_factorials():
    for n in range(1, 15):
        expected = math.log(math.factorial(n))
        assert elementary.log_gamma(n + 1.0) == pytest.approx(expected, rel=1e-14, abs=1e-14)
