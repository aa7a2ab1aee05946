"""The first infinite value of a table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems import generators
from sglb import _core

LAYOUTS = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "some columns": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "first columns": lambda x: np.hstack([x, x])[:, : x.shape[1]],
    "upside down": lambda x: x[::-1].copy()[::-1],
    "backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "read only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}


def first(x):
    """The position by NumPy."""
    positions = np.flatnonzero(np.isinf(x))
    return positions[0] if positions.size else -1


@given(
    generators,
    st.integers(0, 5000),
    st.integers(1, 5),
    st.sampled_from(["f4", "f8"]),
    st.sampled_from(sorted(LAYOUTS)),
    st.integers(0, 3),
    st.integers(1, 3),
)
def test_the_first_infinite_value_is_found_wherever_it_lies(
    rng, n_rows, n_columns, dtype, layout, n_infinite, n_threads
):
    x = rng.normal(size=(n_rows, n_columns)).astype(dtype)
    limits = np.finfo(dtype)
    for values in ([np.nan, -np.nan, limits.max, limits.min, 0.0], [np.inf, -np.inf][:n_infinite]):
        for value in values if n_rows else []:
            x[rng.integers(n_rows), rng.integers(n_columns)] = value
    assert _core.first_infinity(LAYOUTS[layout](x), n_threads) == first(x)


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "u8"])
def test_whole_numbers_are_finite(dtype):
    x = np.full((10, 2), np.iinfo(dtype).max if dtype != "?" else True, dtype=dtype)
    assert _core.first_infinity(x, 2) == -1


def test_every_position_of_a_row_is_checked():
    for dtype in ("f4", "f8"):
        for n_columns in (1, 7, 33):
            for position in range(3 * n_columns):
                x = np.zeros((3, n_columns), dtype=dtype)
                x.flat[position] = np.inf
                assert _core.first_infinity(x, 1) == position
