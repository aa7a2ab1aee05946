"""Numbers of rows near 2^31 and above 2^32, of tables that nobody has to hold: shards of their last
rows.
"""

import numpy as np
import pytest

import reference
import reference_noise
from searching import bounds_of
from sglb import _core
from sglb.code_layout import MOST_ROWS, CodeCounts, CodeLayout
from sglb.noise import Role
from sglb.row_numbers import RowNumbers

N_HERE = 1000
SEED, STEP = 5, 9


def shard_at(first, n_in_all, n_copies=1, n_threads=1):
    """Rows first, first + 1, ... of each copy of a table, whose codes do not matter."""
    n_rows = N_HERE * n_copies
    columns = np.zeros((1, n_rows), dtype=np.uint8)
    return _core.Shard(
        columns,
        reference.to_rows(columns),
        np.array([256], dtype=np.int32),
        np.zeros(1, dtype=np.uint8),
        _core.Weights(None, *reference.weight_facts(None, n_rows)),
        (first, n_in_all, n_copies),
        n_threads,
    )


def counts(n_rows):
    code = np.ones(1, dtype=np.uint8)
    return CodeCounts(n_rows, code, code, np.zeros(1, dtype=np.int64))


def test_as_many_rows_as_a_draw_can_number_are_allowed_and_no_more():
    n_codes = np.array([3], dtype=np.int32)

    def decide(n_rows):
        return CodeLayout.decide(n_codes, counts(n_rows), lambda features, counts: None)

    assert decide(2**31 - 1).stride == 8
    half = counts(2**30)
    with pytest.raises(ValueError, match="at most 2147483647 rows can be trained on, not 21474836"):
        decide(half.plus(half).n_rows)


@pytest.mark.parametrize(
    ("first", "n_in_all", "n_copies"),
    [
        (2**31 - 500, 2**31 + 500, 1),
        (2**32 - 500, 2**33, 2),
        (MOST_ROWS - N_HERE, MOST_ROWS, 4),
        (3 * 10**9, 10**10, 3),
    ],
)
def test_rows_have_numbers_that_32_bits_do_not_hold(first, n_in_all, n_copies):
    numbers = RowNumbers(first, n_in_all, n_copies).of(N_HERE * n_copies)
    expected = [c * n_in_all + first + i for c in range(n_copies) for i in range(N_HERE)]
    assert numbers.tolist() == expected


def noisy(shard, subsample, sigma):
    """What the search sees of gradients of 1: sampled, with noise, rounded."""
    gradient, packed = np.ones((1, N_HERE)), np.empty((1, N_HERE), dtype=np.int64)
    scale, _ = _core.testing.quantise(
        shard,
        _core.Slopes(gradient, None),
        None,
        (subsample, sigma),
        bounds_of(gradient, None),
        False,
        _core.Draws(SEED, STEP),
        packed,
    )
    return (packed[0] >> 32) / scale  # the lower half is the mass


@pytest.mark.parametrize("first", [2**30 - 501, MOST_ROWS - N_HERE, MOST_ROWS - N_HERE - 1])
def test_noise_of_the_last_rows_is_that_of_their_numbers(first):
    """Of an even and an odd first row, whose noise is made in two ways."""
    zeta = np.empty(N_HERE, dtype=np.float32)
    _core.testing.normals_single(SEED, STEP, Role.STRUCTURE, 0, first, zeta)
    values = noisy(shard_at(first, MOST_ROWS), 1.0, 3.0)
    assert np.allclose(values, 1.0 + 3.0 * zeta, rtol=0, atol=1e-4)
    assert zeta.std() > 0.9


@pytest.mark.parametrize("first", [2**31 - 500, 2**32 - 500, 3 * 10**9])
def test_rows_are_sampled_by_numbers_that_32_bits_do_not_hold(first):
    kept = noisy(shard_at(first, first + N_HERE), 0.5, 0.0)
    words = reference_noise.words(SEED, STEP, Role.SUBSAMPLE, 0, first, N_HERE)
    is_kept = words[:, 0] < 2**31
    assert 400 < is_kept.sum() < 600
    assert kept.tolist() == (2.0 * is_kept).tolist()


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n", [10**6, 2**29, 2**30 - 1])
@pytest.mark.parametrize("where", [0.0, 0.37, 1.0])
def test_rows_are_drawn_from_stretches_of_a_table_of_the_largest_size(where, n, n_threads):
    """No row of the pilot lies here, and so every candidate is drawn."""
    first = int(where * (MOST_ROWS - N_HERE))
    n_candidates = min(MOST_ROWS, 2 * n)
    length = (MOST_ROWS << 32) // n_candidates
    near = [row * n_candidates // MOST_ROWS for row in (first, first + N_HERE)]
    candidates = range(max(0, near[0] - 3), min(n_candidates, near[1] + 4))
    rows = []
    for k in candidates:
        words = reference_noise.words(SEED, STEP, Role.ROWS, 0, k // 2, 1)[0]
        row = (k * length + (length * int(words[2 * (k % 2)]) >> 32) >> 32) - first
        rows += [row] * (0 <= row < N_HERE)
    gradient = np.random.default_rng(0).normal(size=(1, N_HERE))
    shard = shard_at(first, MOST_ROWS, n_threads=n_threads)
    slopes, draws = _core.Slopes(gradient, None), _core.Draws(SEED, STEP)
    drawn, *_, share = _core.testing.draw_rows(shard, slopes, 1.0, 1.0, n, draws)
    assert share == n_candidates / MOST_ROWS
    if where == 0.0:  # the first pair is in the pilot: some are not drawn
        assert set(drawn.tolist()) <= set(rows)
    else:
        assert drawn.tolist() == rows
    assert len(rows) > 300 or n == 10**6
