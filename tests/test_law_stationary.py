"""The law the chain settles in, squared loss: exact for every learning rate, Gibbs in the limit.

One structure: each leaf is an autoregression of its own. Several, drawn without a look at f: mean
and covariance have formulas. A law is tested twice: the chain stays in it and comes to it.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from law import (
    FixedStructure,
    RandomStructure,
    Record,
    Restart,
    assert_mean,
    assert_z,
    binary_set,
    bits_of,
    expected_moments,
    gibbs_covariance,
    leaf_of,
    leaf_variance,
    moments,
    projector,
    run_chain,
    splits,
    stationary_covariance,
    stationary_mean,
    z_of_mean,
)
from sglb.errors import ChainDiverged
from sglb.leaves import LeafRule
from sglb.losses import Squared
from sglb.samplers import Langevin

# One structure with 1,024 leaves of 1 to 4 rows: as many independent chains.

DEPTH = 10
LEAF = np.repeat(np.arange(1 << DEPTH), np.arange(1 << DEPTH) % 4 + 1)
FIRST = np.flatnonzero(np.diff(LEAF, prepend=-1))  # a row of each leaf
RULE = FixedStructure(splits(*range(DEPTH)))
EPS, GAMMA, TEMPERATURE = 0.3, 0.5, 1.7
SAMPLER = Langevin(EPS, TEMPERATURE, GAMMA)


class Autoregression:
    """f' = a f + ... of every leaf, with a = 1 - eps (gamma + W / C), C = W + l2, so that

    mean = sum of w y / (W + gamma C),    variance = (2 eps T / C) / (1 - a^2)
    """

    def __init__(self, weighted, l2):
        rng = np.random.default_rng(1)
        y = rng.normal(size=len(LEAF)) * 2.0
        weight = rng.uniform(0.2, 3.0, size=len(LEAF)) if weighted else None
        w = np.ones(len(LEAF)) if weight is None else weight
        self.rows = binary_set(bits_of(LEAF, DEPTH), y, weight)
        self.leaves = LeafRule("gradient", l2)
        self.size = np.bincount(LEAF, w)
        curvature = self.size + l2
        self.a = 1.0 - EPS * (GAMMA + self.size / curvature)
        self.mean = np.bincount(LEAF, w * y) / (self.size + GAMMA * curvature)
        self.deviation = np.sqrt(2.0 * EPS * TEMPERATURE / curvature / (1.0 - self.a**2))

    def standardise(self, raw):
        """(..., n_rows) to (..., n_leaves)."""
        return (raw[..., FIRST] - self.mean) / self.deviation


CASES = [(False, 0.0), (True, 0.0), (True, 1.5)]


@pytest.fixture(scope="module", params=CASES, ids=["plain", "weighted", "regularised"])
def chains(request):
    return Autoregression(*request.param)


def test_the_formula_for_one_structure_is_a_case_of_the_general_one():
    leaf = np.array([0, 0, 0, 1, 1])
    y = np.array([1.0, 4.0, -2.0, 0.5, 3.0])
    P = projector(leaf)
    covariance = stationary_covariance([P], y, EPS, GAMMA, TEMPERATURE)
    for i, size in enumerate((3, 3, 3, 2, 2)):
        assert covariance[i, i] == pytest.approx(leaf_variance(size, EPS, GAMMA, TEMPERATURE))
    np.testing.assert_allclose(stationary_mean([P], y, GAMMA), P @ y / (1 + GAMMA), rtol=1e-12)
    chain = Autoregression(False, 0.0)
    np.testing.assert_allclose(
        chain.deviation**2, leaf_variance(chain.size, EPS, GAMMA, TEMPERATURE), rtol=1e-12
    )


def test_a_step_from_the_stationary_law_of_one_structure_stays_in_it(chains):
    rng = np.random.default_rng(2)
    n_steps = 1000
    x = rng.normal(size=(n_steps + 1, len(chains.size)))
    states = ((chains.mean + chains.deviation * row)[LEAF][None] for row in x)
    callback = Restart(states)
    run_chain(chains.rows, Squared(), SAMPLER, RULE, callback, n_steps, leaves=chains.leaves)
    after = chains.standardise(callback.raw[:, 0])
    before = x[:-1]
    assert_mean(np.stack([after, after**2 - 1, after**3, after**4 - 3], axis=-1).mean(axis=1), 0.0)
    # The step forgets by the factor a, and leaves know nothing of one another.
    assert_mean((after * before - chains.a).mean(axis=1), 0.0)
    assert_mean((after[:, :-1] * after[:, 1:]).mean(axis=1), 0.0)


def test_the_chain_comes_to_the_law_of_one_structure_with_its_autocorrelation(chains):
    # From f = 0; after 100 steps at most a^100 < 1e-15 of the start is left. Time averages of the
    # leaves are the independent samples.
    callback = Record(rows=FIRST, burn_in=100)
    run_chain(chains.rows, Squared(), SAMPLER, RULE, callback, 1600, leaves=chains.leaves, seed=3)
    x = (callback.raw[:, 0] - chains.mean) / chains.deviation
    assert_mean(np.stack([x, x**2 - 1, x**4 - 3], axis=-1).mean(axis=0), 0.0)
    for lag in (1, 2, 3, 6):
        assert_mean((x[lag:] * x[:-lag]).mean(axis=0) - chains.a**lag, 0.0)


@pytest.mark.parametrize("learning_rate", [0.8, 0.4, 0.1])
def test_the_variance_exceeds_gibbs_by_the_formula_at_any_learning_rate(learning_rate):
    rng = np.random.default_rng(4)
    rows = binary_set(bits_of(LEAF, DEPTH), rng.normal(size=len(LEAF)))
    size = np.bincount(LEAF)
    mean = np.bincount(LEAF, rows.target.values) / size / (1 + GAMMA)
    callback = Record(rows=FIRST, burn_in=300)
    sampler = Langevin(learning_rate, TEMPERATURE, GAMMA)
    run_chain(rows, Squared(), sampler, RULE, callback, 2300, seed=5)
    square = ((callback.raw[:, 0] - mean) ** 2).mean(axis=0)
    assert_mean(square / leaf_variance(size, learning_rate, GAMMA, TEMPERATURE), 1.0)
    # And the test can tell this from the limit: Gibbs is far off.
    gibbs = leaf_variance(size, 0.0, GAMMA, TEMPERATURE)
    assert abs(z_of_mean(square / gibbs, 1.0)[0]) > 15.0


@pytest.mark.parametrize("shrink_rate", [0.0, 0.5])
def test_one_structure_is_stable_below_the_bound_and_diverges_above(shrink_rate):
    # Stable if and only if eps (1 + gamma) < 2.
    rows = binary_set([[0, 1]], np.array([1.0, -1.0]))
    for factor, stable in ((0.99, True), (1.01, False)):
        eps = 2.0 * factor / (1.0 + shrink_rate)
        callback = Record(burn_in=1999)
        sampler = Langevin(eps, 0.01, shrink_rate)
        with nullcontext() if stable else pytest.raises(ChainDiverged, match="loss has grown"):
            run_chain(rows, Squared(), sampler, FixedStructure(splits(0)), callback, 2000)
        assert not stable or np.abs(callback.raw).max() < 10.0


# Several structures on six rows, 32 independent copies of them side by side.

COPIES = 32
SIX = np.array([[0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]])
Y = np.array([1.0, -2.0, 0.5, 3.0, 0.0, -1.0])
COPY_BITS = range(5)  # features that tell the copies apart
CUTS = [(), (5,), (6,), (7,), (5, 7)]  # what each structure splits a copy by, none to two features
STRUCTURES = [splits(*COPY_BITS, *cut) for cut in CUTS]
PROJECTORS = [projector(leaf_of(splits(*(f - 5 for f in cut)), SIX + 1)) for cut in CUTS]
MEAN = stationary_mean(PROJECTORS, Y, GAMMA)


def copies():
    bits = np.vstack([bits_of(np.repeat(np.arange(COPIES), 6), 5), np.tile(SIX, COPIES)])
    return binary_set(bits, np.tile(Y, COPIES))


def averaged_moments(raw):
    """Moments of each state (n, 6 COPIES), averaged over the copies: (n, 6 + 21)."""
    return moments(raw.reshape(-1, COPIES, 6), MEAN).mean(axis=1)


def test_a_step_from_the_stationary_moments_of_several_structures_keeps_them():
    rng = np.random.default_rng(6)
    covariance = stationary_covariance(PROJECTORS, Y, EPS, GAMMA, TEMPERATURE)
    n_steps = 20_000
    root = np.linalg.cholesky(covariance + 1e-12 * np.eye(6))
    states = (
        (MEAN + rng.normal(size=(COPIES, 6)) @ root.T).reshape(1, -1) for _ in range(n_steps + 1)
    )
    callback = Restart(states)
    run_chain(copies(), Squared(), SAMPLER, RandomStructure(STRUCTURES), callback, n_steps, seed=7)
    assert_mean(averaged_moments(callback.raw[:, 0]), expected_moments(covariance))


@pytest.mark.parametrize("learning_rate", [0.4, 0.2])
def test_the_chain_comes_to_the_mean_and_covariance_of_several_structures(learning_rate):
    # States are noted so far apart that e^-6 of a deviation is left: independent for a z-test.
    pull = GAMMA + np.linalg.eigvalsh(np.mean(PROJECTORS, axis=0)).clip(0.0)
    pull = pull[pull > GAMMA + 1e-9].min()  # of the slowest direction that trees can move
    every = int(np.ceil(6.0 / (learning_rate * pull)))
    callback = EveryFew(every)
    sampler = Langevin(learning_rate, TEMPERATURE, GAMMA)
    run_chain(
        copies(), Squared(), sampler, RandomStructure(STRUCTURES), callback, 4010 * every, seed=8
    )
    measured = averaged_moments(callback.raw[10:, 0])
    covariance = stationary_covariance(PROJECTORS, Y, learning_rate, GAMMA, TEMPERATURE)
    assert_mean(measured, expected_moments(covariance))
    # The limit of small learning rates is told apart.
    gibbs = expected_moments(gibbs_covariance(PROJECTORS, GAMMA, TEMPERATURE))
    assert np.abs(z_of_mean(measured, gibbs)).max() > 15.0


class EveryFew(Record):
    """Records one state in `every`."""

    def __init__(self, every):
        super().__init__()
        self.every = every

    def step(self, info):
        if info.step % self.every == 0:
            super().step(info)


def test_the_distance_to_the_gibbs_law_is_linear_in_the_learning_rate():
    gibbs = gibbs_covariance(PROJECTORS, GAMMA, TEMPERATURE)
    slopes = [
        (stationary_covariance(PROJECTORS, Y, eps, GAMMA, TEMPERATURE) - gibbs) / eps
        for eps in (1e-3, 5e-4, 2.5e-4)
    ]
    # The slope settles, and its own error halves: what is left is of second order.
    assert np.abs(slopes[2]).max() > 0.1
    assert np.abs(slopes[1] - slopes[2]).max() < 1e-3 * np.abs(slopes[2]).max()
    ratio = np.abs(slopes[0] - slopes[1]).max() / np.abs(slopes[1] - slopes[2]).max()
    assert ratio == pytest.approx(2.0, abs=0.05)


def test_at_temperature_one_the_limit_is_gaussian_process_regression():
    # Kernel K = Pbar / gamma, noise of variance 1: posterior mean K (K + I)^-1 y, posterior
    # covariance K - K (K + I)^-1 K.
    kernel = np.mean(PROJECTORS, axis=0) / GAMMA
    gain = kernel @ np.linalg.inv(kernel + np.eye(6))
    np.testing.assert_allclose(MEAN, gain @ Y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        gibbs_covariance(PROJECTORS, GAMMA, 1.0), kernel - gain @ kernel, rtol=0, atol=1e-12
    )


def test_the_rule_of_these_tests_draws_each_structure_equally_often():
    rule = RandomStructure(list(range(len(CUTS))))
    draws = (SimpleNamespace(seed=8, step=step) for step in range(50_000))
    drawn = np.array([rule.search(sample) for sample in draws])
    share = 1.0 / len(CUTS)
    measured = np.bincount(drawn, minlength=len(CUTS)) / len(drawn)
    assert_z((measured - share) / np.sqrt(share * (1 - share) / len(drawn)), len(CUTS))
