"""The generator: known answers, an oracle from the definition, moments, tails, independence."""

import numpy as np
import pytest
from scipy.stats import binom, kstest, norm

from law import (
    FALSE_ALARM,
    LEAF,
    STRUCTURE,
    TEST,
    FixedStructure,
    Restart,
    assert_mean,
    assert_z,
    binary_set,
    bits_of,
    normals,
    run_chain,
    splits,
    words,
)
from problems import shard_without_codes
from reference_noise import KNOWN_ANSWERS, philox
from sglb import _core
from sglb.losses import Softmax, Squared
from sglb.noise import Role
from sglb.samplers import Langevin


def from_hex(text):
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_words_are_the_published_ones(counter, key, answer):
    counter, key, answer = from_hex(counter), from_hex(key), from_hex(answer)
    index, seed = counter[0] | counter[1] << 32, key[0] | key[1] << 32
    measured = words(seed, counter[2], counter[3] & 0xFF, counter[3] >> 8, index, 1)
    assert measured[0].tolist() == answer
    assert list(philox(counter, key)) == answer  # the oracle below is right too


def test_words_follow_the_definition_at_any_counter():
    rng = np.random.default_rng(0)
    for _ in range(300):
        seed, index = (int(x) for x in rng.integers(0, 2**64, size=2, dtype=np.uint64))
        step, output = int(rng.integers(2**32)), int(rng.integers(2**24))
        role = int(rng.integers(9))
        measured = words(seed, step, role, output, index, 1)[0].tolist()
        counter = [index & 0xFFFFFFFF, index >> 32, step, role | output << 8]
        assert measured == list(philox(counter, [seed & 0xFFFFFFFF, seed >> 32]))


def test_a_stream_can_be_entered_anywhere_also_across_32_bits():
    first = 2**32 - 5
    whole = words(7, 3, TEST, 2, first, 10)
    for i in range(10):
        assert (words(7, 3, TEST, 2, first + i, 1)[0] == whole[i]).all()


def test_normals_are_box_muller_of_the_first_two_words():
    n = 200_000
    w = words(11, 5, LEAF, 1, 0, n // 2).astype(np.float64)
    radius = np.sqrt(-2.0 * np.log((w[:, 0] + 0.5) / 2.0**32))
    angle = 2.0 * np.pi * (w[:, 1] / 2.0**32)
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()
    np.testing.assert_allclose(normals(11, 5, LEAF, 1, n), expected, rtol=0, atol=1e-12)


def single_normals(seed, step, n):
    out = np.empty(n, dtype=np.float32)
    _core.testing.normals_single(seed, step, STRUCTURE, 0, 0, out)
    return out.astype(np.float64)


def test_normals_in_single_precision_are_the_others_to_five_digits():
    n = 2_000_000
    error = np.abs(single_normals(3, 1, n) - normals(3, 1, STRUCTURE, 0, n))
    # A radius near 0 comes from a word near 2^32, of which a float has 24 bits: the radius then is
    # one of sqrt(2 k / 2^24). Errors above 3e-6 need one below 0.01, which one in 20,000 has.
    assert error.max() < np.sqrt(2.0 / 2**24)
    assert (error > 3e-6).mean() < 1e-4


def test_normals_in_single_precision_are_standard_normals():
    draws = single_normals(17, 4, 1_000_000)
    assert kstest(draws, norm.cdf).pvalue > FALSE_ALARM
    assert_mean(draws, 0.0)
    assert_mean(draws**2, 1.0)
    assert_mean(draws[::2] * draws[1::2], 0.0)
    for bound in (3.0, 4.0, 4.7):
        beyond = int((np.abs(draws) > bound).sum())
        chance = 2.0 * norm.sf(bound)
        assert binom.cdf(beyond, len(draws), chance) > FALSE_ALARM / 2
        assert binom.sf(beyond - 1, len(draws), chance) > FALSE_ALARM / 2


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_normals_are_the_same_on_any_number_of_threads(n_threads):
    out = np.empty(100_003)
    _core.testing.normals(11, 5, LEAF, 1, 9, out, n_threads)
    assert (out == normals(11, 5, LEAF, 1, len(out), first=9)).all()


@pytest.mark.parametrize("role", [STRUCTURE, LEAF])
def test_normals_have_the_moments_of_the_normal_law(role):
    x = normals(2, 1, role, n=1_000_000)
    powers = np.stack([x, x**2, x**3, x**4, x**5, x**6], axis=1)
    assert_mean(powers, [0.0, 1.0, 0.0, 3.0, 0.0, 15.0])


def test_normals_have_the_tails_of_the_normal_law():
    x = normals(3, 1, STRUCTURE, n=4_000_000)
    at = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 4.5, 5.0])
    beyond = np.array([[np.sum(x > a), np.sum(x < -a)] for a in at]).T
    less, more = binom.cdf(beyond, len(x), norm.sf(at)), binom.sf(beyond - 1, len(x), norm.sf(at))
    # Exact probabilities of so few or so many, two-sided, over all comparisons together.
    assert 2 * min(less.min(), more.min()) > FALSE_ALARM / beyond.size
    # Kolmogorov's statistic sees the body.
    assert kstest(x[:500_000], "norm").pvalue > FALSE_ALARM


def test_words_have_uniform_bits():
    w = words(4, 1, TEST, 0, 0, 500_000)
    bits = np.unpackbits(w.view(np.uint8), axis=1)  # (n, 128)
    n = len(bits)
    assert_z((bits.mean(axis=0) - 0.5) * 2 * np.sqrt(n), 128)
    signs = 2.0 * bits[:, ::4] - 1.0  # every fourth bit of the four words: 496 pairs
    pairs = (signs.T @ signs / np.sqrt(n))[np.triu_indices(32, 1)]
    assert_z(pairs, pairs.size)


def neighbours(n):
    """Pairs of streams or numbers that differ in one coordinate only."""
    a = normals(5, 1, STRUCTURE, 0, n)
    yield "rows", a[:-1], a[1:]
    yield "rows a block apart", a[:-1024], a[1024:]
    yield "steps", a, normals(5, 2, STRUCTURE, 0, n)
    yield "outputs", a, normals(5, 1, STRUCTURE, 1, n)
    yield "seeds", a, normals(6, 1, STRUCTURE, 0, n)
    yield "high half of seeds", a, normals(5 + 2**32, 1, STRUCTURE, 0, n)
    for role in range(1, 9):
        yield f"structure and role {role}", a, normals(5, 1, role, 0, n)
    yield "leaf and subsample", normals(5, 1, 1, 0, n), normals(5, 1, 2, 0, n)


def test_neighbouring_numbers_are_independent_in_value_size_and_sign():
    for subject, x, y in neighbours(400_000):
        pairs = np.stack([x * y, (x**2 - 1) * (y**2 - 1), x * (y**2 - 1), (x**2 - 1) * y], axis=1)
        try:
            assert_mean(pairs, 0.0)
        except AssertionError as error:
            raise AssertionError(f"{subject}: {error}") from error


def test_no_counter_is_shared_between_roles_outputs_or_steps():
    seen = set()
    for role in Role:
        for output in range(3):
            for step in range(3):
                seen.update(map(tuple, words(1, step, role, output, 0, 64).tolist()))
    assert len(seen) == len(Role) * 3 * 3 * 64


def test_the_structure_search_sees_the_gradient_plus_its_own_noise():
    rng = np.random.default_rng(1)
    n, sigma = 3000, 1.7
    gradient, weight = rng.normal(size=(3, n)), rng.uniform(0.0, 2.0, size=n)
    packed = np.empty((3, n), dtype=np.int64)
    scale, weight_scale = _core.testing.quantise(
        shard_without_codes(n, weight),
        _core.Slopes(gradient, None),
        None,
        (1.0, sigma),
        (float(np.abs(gradient).max()), 0.0),
        False,
        _core.Draws(8, 4),
        packed,
    )
    zeta = np.stack([normals(8, 4, STRUCTURE, k, n) for k in range(3)])
    exact = weight * gradient + sigma * np.sqrt(weight) * zeta
    assert np.abs((packed >> 32) / scale - exact).max() < 1.0 / scale
    assert np.abs((packed & 0xFFFFFFFF) / weight_scale - weight).max() < 1.0 / weight_scale
    # Rounding is random and unbiased, and fine against the noise.
    assert_mean(((packed >> 32) / scale - exact).ravel(), 0.0)
    assert 1.0 / scale < 1e-3 * sigma


@pytest.mark.parametrize("loss", [Squared(), Softmax(3)])
def test_a_leaf_gets_its_own_normal_over_the_root_of_its_size(loss):
    sizes = np.array([1, 2, 3, 7])
    leaf = np.repeat(np.arange(4), sizes)
    y = np.zeros(len(leaf))
    rows = binary_set(bits_of(leaf, 2), y)
    raw = np.zeros((loss.n_outputs, len(y)))
    runs = [
        run_chain(rows, loss, Langevin(0.2, t, 0.1), FixedStructure(splits(0, 1)), Restart(raw), 3)
        for t in (0.0, 0.5)
    ]
    noise = runs[1].values - runs[0].values
    sigma = np.sqrt(2.0 * 0.5 / 0.2)
    for step in range(3):
        for k in range(loss.n_outputs):
            xi = normals(1, step, LEAF, k, 4)
            np.testing.assert_allclose(
                noise[step, :, k], -0.2 * sigma * xi / np.sqrt(sizes), rtol=0, atol=1e-12
            )
