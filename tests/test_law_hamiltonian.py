"""The law of Langevin boosting with momentum, squared loss.

One structure: each leaf is a linear chain of two numbers, (F, V). With k = 1 + gamma and friction a

    V' = (1 - a) V - eps (k F - ybar) - eps sigma xi / sqrt(n_j),     F' = F + V'

has the stationary mean ybar / k and Var F = (2 - a) 2 T / n_j / (k (4 - 2 a - eps k)), which tends
to T / (n_j k) as eps falls: the law of the chain without momentum.
"""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from scipy.stats import binomtest

import sglb
from law import (
    FixedStructure,
    RandomStructure,
    Record,
    assert_law,
    assert_mean,
    binary_set,
    bits_of,
    gibbs_covariance,
    leaf_of,
    leaf_variance,
    make_chain,
    projector,
    run_chain,
    splits,
    stationary_mean,
)
from sglb import SGLBRegressor
from sglb.boosting import boost
from sglb.losses import Logistic, Squared, UserLoss
from sglb.samplers import Hamiltonian, Langevin
from test_law_tempering import DoubleWell, gibbs_probability

DEPTH = 10
LEAF = np.repeat(np.arange(1 << DEPTH), np.arange(1 << DEPTH) % 4 + 1)
FIRST = np.flatnonzero(np.diff(LEAF, prepend=-1))
SIZE = np.bincount(LEAF)
RULE = FixedStructure(splits(*range(DEPTH)))
GAMMA, TEMPERATURE = 0.5, 1.7


def hamiltonian_variance(n_rows, eps, friction):
    """Stationary variance of F in a leaf of one structure."""
    k = 1.0 + GAMMA
    return (2 - friction) * 2 * TEMPERATURE / n_rows / (k * (4 - 2 * friction - eps * k))


@pytest.mark.parametrize("friction", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("eps", [0.05, 0.6])
def test_the_formula_of_the_variance_solves_the_equation_of_the_covariance(friction, eps):
    # S = A S A' + q b b', q the variance of a tree's noise: the equation of any linear chain.
    move = Hamiltonian(eps, TEMPERATURE, GAMMA, friction).move(0)
    C = move.transition.C if friction < 1 else np.array([[1 - eps * GAMMA, 0], [-eps * GAMMA, 0]])
    A = C - eps * np.array([[1.0, 0.0], [1.0, 0.0]])
    noise = (eps * move.noise) ** 2 * np.ones((2, 2))
    expected = solve_discrete_lyapunov(A, noise)[0, 0]
    assert hamiltonian_variance(1, eps, friction) == pytest.approx(expected, rel=1e-9)
    if friction == 1.0:
        without = leaf_variance(1, eps, GAMMA, TEMPERATURE)
        assert expected == pytest.approx(without, rel=1e-9)


@pytest.mark.parametrize(("friction", "eps"), [(0.1, 0.1), (0.3, 0.6), (0.8, 0.3)])
def test_the_chain_comes_to_the_law_of_one_structure(friction, eps):
    # The slowest mode of these three decays by at least exp(-.05) a step: after 400 steps 2e-9 of
    # the start is left. Time averages of the 1,024 leaves are independent samples.
    rng = np.random.default_rng(1)
    y = 2.0 * rng.normal(size=len(LEAF))
    rows = binary_set(bits_of(LEAF, DEPTH), y)
    record = Record(rows=FIRST, burn_in=400)
    sampler = Hamiltonian(eps, TEMPERATURE, GAMMA, friction)
    run_chain(rows, Squared(), sampler, RULE, record, 2400, seed=2)
    mean = np.bincount(LEAF, y) / SIZE / (1 + GAMMA)
    x = (record.raw[:, 0] - mean) / np.sqrt(hamiltonian_variance(SIZE, eps, friction))
    assert_mean(np.stack([x, x**2 - 1, x**4 - 3], axis=-1).mean(axis=0), 0.0)


BITS = np.random.default_rng(3).integers(0, 2, size=(3, 8))
Y = np.random.default_rng(4).normal(size=8)
STRUCTURES = [splits(0, 1), splits(1, 2), splits(2)]
ROWS = binary_set(BITS, Y)
PROJECTORS = [projector(leaf_of(s, ROWS.code_columns)) for s in STRUCTURES]


def linear_chain(eps, friction, gamma=GAMMA):
    """A and u of S' = A S + u + noise for each structure, and the move.

    A = C (x) I - eps b e0' (x) P, u = eps b (x) P y.
    """
    move = Hamiltonian(eps, TEMPERATURE, gamma, friction).move(0)
    C, b = move.transition.C, move.transition.b
    first = np.eye(len(b))[0]
    A = [np.kron(C, np.eye(8)) - eps * np.kron(np.outer(b, first), P) for P in PROJECTORS]
    return A, [eps * np.kron(b, P @ Y) for P in PROJECTORS], move


def stationary_law(eps, friction, gamma=GAMMA):
    """Mean and covariance (2 N) of (F, V) where structures are drawn without a look at F.

    The mean solves (I - E A) m = E u, the covariance is vec Z = (I - E[A (x) A])^-1 vec(E[d d'] +
    (eps sigma)^2 b b' (x) Pbar), d = A m + u - m. With friction 1 there is F alone.
    """
    A, u, move = linear_chain(eps, friction, gamma)
    b, size = move.transition.b, len(A[0])
    m = np.linalg.solve(np.eye(size) - np.mean(A, axis=0), np.mean(u, axis=0))
    d = [a @ m + v - m for a, v in zip(A, u, strict=True)]
    source = np.mean([np.outer(x, x) for x in d], axis=0)
    source += (eps * move.noise) ** 2 * np.kron(np.outer(b, b), np.mean(PROJECTORS, axis=0))
    double = np.mean([np.kron(a, a) for a in A], axis=0)
    return m, np.linalg.solve(np.eye(size**2) - double, source.ravel()).reshape(size, size)


def test_chains_come_to_the_law_of_several_structures():
    # All modes are complex or faster, |lambda| = sqrt(1 - a) = .84: after 80 steps 6e-7 is left.
    eps = friction = 0.3
    mean, covariance = stationary_law(eps, friction)
    sampler, rule = Hamiltonian(eps, TEMPERATURE, GAMMA, friction), RandomStructure(STRUCTURES)
    samples = []
    for seed in range(3000):
        chain = make_chain(ROWS, Squared(), sampler, rule, seed=seed)
        for _ in range(80):
            chain.step()
        samples.append(chain.rows.state[:, 0].ravel())
    assert_law(np.array(samples), mean, covariance)


def test_the_limit_of_small_steps_is_the_gibbs_law_at_any_friction():
    gibbs = gibbs_covariance(PROJECTORS, GAMMA, TEMPERATURE)
    for friction in (0.1, 0.5, 0.9):
        errors = []
        for eps in (1e-3, 5e-4):
            mean, covariance = stationary_law(eps, friction)
            np.testing.assert_allclose(mean[:8], stationary_mean(PROJECTORS, Y, GAMMA), atol=1e-9)
            errors.append(np.abs(covariance[:8, :8] - gibbs).max())
        assert errors[0] < 1e-2
        assert errors[1] == pytest.approx(errors[0] / 2, rel=0.05)  # linear in eps


class Tilted(DoubleWell):
    """Valleys whose depths differ by .2."""

    tilt = 0.1


@pytest.mark.parametrize("friction", [0.2, 0.6])
def test_two_valleys_hold_as_many_leaves_as_the_gibbs_law_says(friction):
    # 1,024 leaves of four rows start in the shallow valley behind a barrier of two temperatures,
    # and change valleys at a rate of about .01 a step. Exact binomial test, error rate 1e-6. Noise
    # that does not know of friction would have the temperature T / friction.
    leaf = np.repeat(np.arange(1 << DEPTH), 4)
    sampler = Hamiltonian(0.2 * friction, 0.5, 0.05, friction)
    state = np.zeros((2, 1, len(leaf)))
    state[0] = -1.0
    rows = binary_set(bits_of(leaf, DEPTH), np.zeros(len(leaf)))
    chain = make_chain(rows, UserLoss(Tilted()), sampler, RULE, state=state, seed=5)
    for _ in range(600):
        chain.step()
    expected = gibbs_probability(0.5, loss=Tilted())
    hot = gibbs_probability(0.5 / friction, loss=Tilted())
    n_deep = int((chain.rows.raw[0, ::4] > 0.0).sum())
    assert binomtest(n_deep, 1 << DEPTH, expected).pvalue > 1e-6
    if friction == 0.2:
        assert binomtest(n_deep, 1 << DEPTH, hot).pvalue < 1e-20


def test_at_equal_bias_momentum_gains_less_than_1_over_friction():
    # The choice of a structure is noise too, and a velocity adds up that of 1 / a steps: its bias
    # is that of a rate 1 / a times as large. Relaxation of the slowest direction a step, over the
    # bias of the variance, both linear in eps.
    gamma, eps = 0.05, 1e-3
    gibbs = gibbs_covariance(PROJECTORS, gamma, TEMPERATURE)

    def speed(friction):
        mean_step = np.mean(linear_chain(eps, friction, gamma)[0], axis=0)
        relaxation = 1.0 - np.abs(np.linalg.eigvals(mean_step)).max()
        covariance = stationary_law(eps, friction, gamma)[1][:8, :8]
        return relaxation / (np.trace(covariance) / np.trace(gibbs) - 1.0)

    gains = [speed(friction) / speed(1.0) for friction in (0.5, 0.2, 0.1)]
    assert 1.5 < gains[0] < gains[1] < gains[2] < 4.0  # 1.9, 2.8 and 3.1, not 2, 5 and 10


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=lambda loss: loss.name)
def test_friction_one_is_langevin_bit_for_bit(loss):
    rng = np.random.default_rng(4)
    rows = binary_set(rng.integers(0, 2, size=(3, 40)), rng.integers(0, 2, size=40).astype(float))
    rule = RandomStructure([splits(0, 1), splits(2)])
    raws = []
    for sampler in (Langevin(0.3, 1.0, 0.1), Hamiltonian(0.3, 1.0, 0.1, friction=1.0)):
        chain = make_chain(rows, loss, sampler, rule)
        boost(chain, 30)
        raws.append(chain.rows.raw.copy())
    assert np.array_equal(*raws)


@pytest.mark.parametrize("friction", [0.0, -0.1, 1.5, np.nan])
def test_a_friction_out_of_range_is_rejected(friction):
    with pytest.raises(ValueError, match="friction must be in"):
        Hamiltonian(0.1, 1.0, 0.1, friction).move(0)


def test_the_estimators_know_it_by_name(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=300)
    model = SGLBRegressor(
        sampler="hamiltonian", friction=0.2, n_estimators=40, random_state=0, max_depth=3
    ).fit(X, y)
    assert model.trace_.size == 2
    assert np.linalg.det(model.trace_.C[0]) == pytest.approx(0.8)  # 1 - a: what is left of volumes
    model.save(tmp_path / "model.sglb")
    again = sglb.load(tmp_path / "model.sglb")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.get_params()["friction"] == 0.2
    stages = list(model.staged_predict(X))
    np.testing.assert_allclose(stages[-1], model.predict(X), rtol=1e-9)


def test_friction_without_momentum_is_rejected():
    with pytest.raises(ValueError, match=r"has no effect: .* sampler='hamiltonian' does"):
        SGLBRegressor(friction=0.2).fit(np.zeros((60, 1)), np.arange(60.0))


@pytest.mark.parametrize(("rate", "fits"), [(3.7, True), (3.9, False)])
def test_the_largest_stable_rate_is_known(rate, fits):
    # eps (1 + gamma) < 2 (2 - a), here 3.8 for the squared loss, a = .1 and next to no gamma.
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    model = SGLBRegressor(
        sampler="hamiltonian",
        friction=0.1,
        learning_rate=rate,
        shrink_rate=1e-6,
        temperature=1e-3,
        leaf_method="gradient",
        n_estimators=5,
    )
    with nullcontext() if fits else pytest.raises(ValueError, match=r"must be below 3\.8"):
        model.fit(X, y)
