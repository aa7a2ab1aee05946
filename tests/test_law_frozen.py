"""The law of draws on frozen partitions: exact after any number of steps, at any learning rate.

With A_s = rho I - eps P_s H, P_s the weighted average over the leaves of partition s, H the second
derivatives of a row, and B_s the covariance of independent leaf values of variance 1 / W_j,

    mean' = rho mean - eps E[P_s] (H mean - r)
    S'    = E[A_s S A_s'] + Cov(A_s mean + eps P_s r) + 2 eps T E[B_s],    S_0 = T E[B_s] / gamma

where H f - r is the gradient at f: r = 0 for an expansion at a centre, H = I and r = y for the
squared loss. Every test runs the driver itself, `PosteriorDriver`. Draws of a batch share their
partitions, so that batches, not draws, are the independent samples: moments are averaged over a
batch. Each assertion has the false alarm rate of `law.py`, 1e-6.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from law import (
    assert_law,
    assert_mean,
    discrete_law,
    expected_moments,
    moments,
    projector,
    stationary_covariance,
    stationary_mean,
    z_of_mean,
)
from problems import draw_posterior
from sglb.losses import Logistic, Softmax, Squared
from sglb.posterior import (
    DrawPlan,
    LeafPrior,
    LossEnergy,
    QuadraticEnergy,
    StoredPartitions,
)
from sglb.posterior.frozen import BATCH
from sglb.target import Target

N_BATCHES = 1000


def make_partitions(n_rows, n_partitions, seed):
    """Leaf numbers (n_partitions, n_rows) of 1 to 4 leaves each."""
    rng = np.random.default_rng(seed)
    return np.array([rng.integers(0, 1 + k % 4, n_rows) for k in range(n_partitions)])


def law_after(n_steps, leaves, weight, H, r, sampler):
    """Mean and covariance after n_steps from the prior. H (d, d) and r (d,) are of all outputs."""
    eps, gamma, T = sampler.learning_rate, sampler.shrink_rate, sampler.temperature
    n_outputs = len(H) // len(weight)
    P = [np.kron(np.eye(n_outputs), projector(leaf, weight)) for leaf in leaves]
    B = np.mean([p / np.tile(weight, n_outputs) for p in P], axis=0)
    A = [(1.0 - gamma * eps) * np.eye(len(H)) - eps * p @ H for p in P]
    mean, S = np.zeros(len(H)), T * B / gamma
    for _ in range(n_steps):
        moved = np.array([a @ mean + eps * p @ r for a, p in zip(A, P, strict=True)])
        mean = moved.mean(axis=0)
        S = np.mean([a @ S @ a.T for a in A], axis=0) + 2.0 * eps * T * B
        S += np.cov(moved.T, bias=True)
    return mean, S


def batches(draws, partitions):
    """Draws at the training rows: (n_batches, BATCH, n_outputs * n_rows)."""
    size = draws.n_outputs * partitions.n_rows
    return draws.predict(partitions).reshape(size, -1).T.reshape(-1, BATCH, size)


def assert_draws(states, mean, covariance):
    """Fail if draws (n_batches, BATCH, d) do not have this mean and covariance."""
    assert_mean(moments(states, mean).mean(axis=1), expected_moments(covariance))


def difference(states, covariance):
    """The largest |z| of the covariance of draws of mean 0 against another one."""
    z = z_of_mean(moments(states, 0.0).mean(axis=1), expected_moments(covariance))
    return np.abs(z).max()


def expansion(n_rows, n_partitions, *, weighted, seed):
    """A quadratic energy of one output, its partitions and the matrices of its law."""
    rng = np.random.default_rng(seed)
    leaves = make_partitions(n_rows, n_partitions, seed)
    weight = rng.uniform(0.5, 4.0, n_rows) if weighted else None
    h = rng.uniform(0.05, 1.5, n_rows)
    return SimpleNamespace(
        leaves=leaves,
        partitions=StoredPartitions(leaves),
        energy=QuadraticEnergy(h[None], None, weight),
        weight=np.ones(n_rows) if weight is None else weight,
        H=np.diag(h),
        r=np.zeros(n_rows),
    )


def run(case, plan, n_draws=N_BATCHES * BATCH, seed=1):
    """Draws at the training rows, and the sampler that made them."""
    prior = LeafPrior(case.partitions, case.energy.weight)
    draws = draw_posterior(case.energy, case.partitions, plan, n_draws, seed=seed)
    return batches(draws, case.partitions), plan.sampler(case.energy, prior)


# The prior.


@pytest.mark.parametrize("weighted", [False, True])
def test_without_steps_draws_are_from_the_prior(weighted):
    case = expansion(10, 5, weighted=weighted, seed=1)
    states, sampler = run(case, DrawPlan(0.8, temperature=1.7, n_steps=0))
    _, covariance = law_after(0, case.leaves, case.weight, case.H, case.r, sampler)
    assert_draws(states, 0.0, covariance)
    assert np.average(np.diag(covariance), weights=case.weight) == pytest.approx(0.8 * 1.7)


# The expansion at a centre.

CASES = [(8, 3, False, 1), (8, 3, True, 1), (12, 5, True, 6), (30, 10, False, 25)]


@pytest.mark.parametrize(("n_rows", "n_partitions", "weighted", "n_steps"), CASES)
def test_covariance_after_some_steps_from_the_prior(n_rows, n_partitions, weighted, n_steps):
    case = expansion(n_rows, n_partitions, weighted=weighted, seed=2)
    states, sampler = run(case, DrawPlan(0.5, temperature=1.3, n_steps=n_steps, learning_rate=0.5))
    _, covariance = law_after(n_steps, case.leaves, case.weight, case.H, case.r, sampler)
    assert_draws(states, 0.0, covariance)
    # The test can tell this law from that of the prior, and from steps without curvature.
    _, before = law_after(n_steps - 1, case.leaves, case.weight, case.H, case.r, sampler)
    _, flat = law_after(n_steps, case.leaves, case.weight, 0.0 * case.H, case.r, sampler)
    assert n_steps > 1 or difference(states, before) > 15.0
    assert difference(states, flat) > 15.0


def test_a_long_run_has_the_stationary_covariance_and_not_its_limit_of_short_steps():
    case = expansion(9, 4, weighted=True, seed=3)
    states, sampler = run(case, DrawPlan(0.25, n_steps=80, learning_rate=0.5))
    n_rows, eps, gamma = len(case.weight), 0.5, sampler.shrink_rate
    P = [projector(leaf, case.weight) for leaf in case.leaves]
    A = [(1.0 - gamma * eps) * np.eye(n_rows) - eps * p @ case.H for p in P]
    double = np.mean([np.kron(a, a) for a in A], axis=0)
    B = np.mean(P, axis=0) / case.weight
    solved = np.linalg.solve(np.eye(n_rows**2) - double, (2.0 * eps * B).ravel())
    stationary = solved.reshape(n_rows, n_rows)
    _, after = law_after(80, case.leaves, case.weight, case.H, case.r, sampler)
    np.testing.assert_allclose(after, stationary, rtol=0, atol=1e-4 * stationary.max())
    assert_draws(states, 0.0, stationary)
    limit = laplace(B, case.H * case.weight, gamma)
    assert difference(states, limit) > 10.0


def laplace(B, weighted_hessian, gamma):
    """(gamma B^-1 + W H)^-1 on the span of B: B (gamma I + W H B)^-1."""
    return B @ np.linalg.inv(gamma * np.eye(len(B)) + weighted_hessian @ B)


def test_the_distance_to_the_laplace_posterior_is_linear_in_the_learning_rate():
    case = expansion(9, 4, weighted=True, seed=3)
    B = np.mean([projector(leaf, case.weight) / case.weight for leaf in case.leaves], axis=0)
    gamma = 0.5
    limit = laplace(B, case.H * case.weight, gamma)
    errors = []
    for eps in (0.02, 0.01):
        sampler = SimpleNamespace(learning_rate=eps, shrink_rate=gamma, temperature=1.0)
        _, S = law_after(int(20 / eps), case.leaves, case.weight, case.H, case.r, sampler)
        errors.append(np.abs(S - limit).max())
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.05)
    assert errors[1] < 0.01 * limit.max()


def test_the_default_numbers_come_near_the_laplace_posterior():
    # 150 steps of the default length: 12 % of the variance is the most that a step may add.
    case = expansion(20, 8, weighted=False, seed=4)
    prior = LeafPrior(case.partitions)
    sampler = DrawPlan(1.0).sampler(case.energy, prior)
    _, S = law_after(150, case.leaves, case.weight, case.H, case.r, sampler)
    B = np.mean([projector(leaf) for leaf in case.leaves], axis=0)
    limit = laplace(B, case.H, sampler.shrink_rate)
    ratio = np.diag(S) / np.diag(limit)
    assert ratio.min() > 0.99
    assert ratio.max() < 1.0 / (1.0 - 0.125) + 0.01


def test_several_classes_have_the_covariance_of_their_block():
    rng = np.random.default_rng(7)
    n_rows, n_classes = 7, 3
    raw = rng.normal(size=(n_classes, n_rows))
    weight = rng.uniform(0.2, 1.0, n_rows)
    y = rng.integers(0, n_classes, n_rows).astype(float)
    leaves = make_partitions(n_rows, 4, 8)
    p = np.exp(raw) / np.exp(raw).sum(axis=0)
    H = np.zeros((n_classes, n_rows, n_classes, n_rows))
    for i in range(n_rows):
        H[:, i, :, i] = np.diag(p[:, i]) - np.outer(p[:, i], p[:, i])
    H = H.reshape(n_classes * n_rows, -1)
    case = SimpleNamespace(
        partitions=StoredPartitions(leaves),
        energy=QuadraticEnergy.at(Softmax(n_classes), Target.of(y, weight), raw),
    )
    states, sampler = run(case, DrawPlan(6.0, n_steps=25, learning_rate=1.5))
    _, covariance = law_after(25, leaves, weight, H, np.zeros(len(H)), sampler)
    assert_draws(states, 0.0, covariance)
    _, diagonal = law_after(25, leaves, weight, np.diag(np.diag(H)), np.zeros(len(H)), sampler)
    assert difference(states, diagonal) > 15.0


def test_the_curvature_is_that_of_the_loss():
    raw = np.array([[-3.0, 0.0, 1.0, 4.0]])
    case = SimpleNamespace(
        partitions=StoredPartitions([[0, 1, 2, 3]]),
        energy=QuadraticEnergy.at(Logistic(), Target.of(np.ones(4)), raw),
    )
    states, sampler = run(case, DrawPlan(5.0, n_steps=15, learning_rate=2.0))
    p = 1.0 / (1.0 + np.exp(-raw[0]))
    H = np.diag(p * (1.0 - p))
    _, covariance = law_after(15, [np.arange(4)], np.ones(4), H, np.zeros(4), sampler)
    assert_draws(states, 0.0, covariance)


# The loss itself.


@pytest.mark.parametrize("n_steps", [2, 40])
def test_the_squared_loss_gives_gaussian_process_regression(n_steps):
    rng = np.random.default_rng(9)
    n_rows, T, eps = 9, 0.6, 0.4
    y, weight = rng.normal(size=n_rows) * 2.0, rng.uniform(0.2, 1.0, n_rows)
    leaves = make_partitions(n_rows, 5, 10)
    case = SimpleNamespace(
        partitions=StoredPartitions(leaves),
        energy=LossEnergy(Squared(), Target.of(y, weight), [0.7]),
    )
    states, sampler = run(case, DrawPlan(0.25, T, n_steps, eps))
    mean, covariance = law_after(n_steps, leaves, weight, np.eye(n_rows), y - 0.7, sampler)
    assert_draws(states, mean, covariance)
    if n_steps == 40:
        # The recursion leads to the formulas of other chains.
        ones = [projector(leaf) for leaf in leaves]
        gamma = sampler.shrink_rate
        m, S = law_after(400, leaves, np.ones(n_rows), np.eye(n_rows), y, sampler)
        np.testing.assert_allclose(m, stationary_mean(ones, y, gamma), atol=1e-10)
        np.testing.assert_allclose(S, stationary_covariance(ones, y, eps, gamma, T), atol=1e-10)
        # The mean of Gaussian process regression, exact at any learning rate.
        P = np.mean([projector(leaf, weight) for leaf in leaves], axis=0)
        kernel = T * P / weight / gamma
        exact = kernel @ np.linalg.solve(kernel + T * np.diag(1.0 / weight), y - 0.7)
        np.testing.assert_allclose(mean, exact, rtol=0, atol=1e-4)  # what 40 steps leave of it


def test_the_logistic_loss_has_the_law_of_its_own_chain():
    # One leaf: a chain in one dimension, whose law on a grid is an eigenvector.
    y, eps = np.array([1.0, 1.0, 1.0, 0.0]), 1.5
    case = SimpleNamespace(
        partitions=StoredPartitions(np.zeros((1, 4))), energy=LossEnergy(Logistic(), Target.of(y))
    )
    states, sampler = run(case, DrawPlan(2.0, n_steps=60, learning_rate=eps))
    grid = np.linspace(-12.0, 14.0, 1300)
    slope = 1.0 / (1.0 + np.exp(-grid)) - y.mean()
    rho, noise = 1.0 - eps * sampler.shrink_rate, eps * np.sqrt(2.0 / eps / len(y))
    masses = discrete_law(grid, slope, eps, rho, noise)
    powers = np.arange(1, 5)
    measured = (states[:, :, :1] ** powers).mean(axis=1)
    assert_mean(measured, (grid[:, None] ** powers * masses[:, None]).sum(axis=0))
    # The test can tell this law from that of the expansion at the mode, which has another mean.
    mode = grid[np.argmin(np.abs(slope + sampler.shrink_rate * grid))]
    assert abs(z_of_mean(states[:, :, 0].mean(axis=1), mode)[0]) > 5.0


# Leaves without rows.


@pytest.mark.parametrize("n_steps", [0, 10, 60])
def test_a_leaf_without_rows_keeps_the_variance_of_the_prior(n_steps):
    leaves = np.array([[0, 0, 1, 1, 2], [0, 0, 0, 1, 1]])
    partitions = StoredPartitions(leaves, [4, 3])  # leaf 3 of the first, leaf 2 of the second
    energy = QuadraticEnergy(np.ones((1, 5)))
    plan = DrawPlan(0.5, temperature=1.4, n_steps=n_steps, learning_rate=0.4)
    sampler = plan.sampler(energy, LeafPrior(partitions))
    draws = draw_posterior(energy, partitions, plan, N_BATCHES * BATCH, seed=3)
    eps, gamma, T = 0.4, sampler.shrink_rate, 1.4
    variance = T / (gamma * 2)
    for _ in range(n_steps):
        variance = (1.0 - gamma * eps) ** 2 * variance + 2.0 * eps * T / 2
    stationary = T / (gamma * 2) / (1.0 - gamma * eps / 2.0)
    assert n_steps < 60 or variance == pytest.approx(stationary, rel=1e-6)
    empty = draws.values[[3, 6], 0].astype(float).T.reshape(-1, BATCH, 2)
    assert_draws(empty, 0.0, variance * np.eye(2))
    # A row that lands there has the values of its leaves like any other.
    strange = draws.predict(StoredPartitions([[3], [2]], [4, 3]))[0, 0].reshape(-1, BATCH)
    assert_mean((strange**2).mean(axis=1), 2.0 * variance)


# Draws among themselves.


@pytest.mark.parametrize("n_steps", [0, 8])
def test_draws_are_independent_of_one_another(n_steps):
    case = expansion(6, 3, weighted=False, seed=5)
    states, _ = run(case, DrawPlan(1.0, n_steps=n_steps, learning_rate=0.5))
    scaled = states / states.std(axis=(0, 1))
    for lag in (1, 2, 7, 15):
        products = scaled[:, :-lag, :, None] * scaled[:, lag:, None, :]
        assert_mean(products.mean(axis=1).reshape(N_BATCHES, -1), 0.0)
    products = scaled[:, :, :, None] * np.roll(scaled, 1, axis=0)[:, :, None, :]  # of two batches
    assert_mean(products.mean(axis=1).reshape(N_BATCHES, -1), 0.0)


def test_other_seeds_are_other_draws():
    case = expansion(6, 3, weighted=False, seed=5)
    first, _ = run(case, DrawPlan(1.0, n_steps=4), seed=1)
    other, _ = run(case, DrawPlan(1.0, n_steps=4), seed=2)
    assert_mean((first[..., None] * other[..., None, :]).mean(axis=1).reshape(N_BATCHES, -1), 0.0)


def test_batches_differ_in_their_partitions():
    # Given its partitions a chain without noise would be the same in all batches.
    case = expansion(8, 4, weighted=False, seed=6)
    energy = LossEnergy(Squared(), Target.of(np.arange(8.0)))
    cold = SimpleNamespace(partitions=case.partitions, energy=energy)
    states, _ = run(cold, DrawPlan(1.0, 1e-16, 3, 0.5), n_draws=3 * BATCH)
    assert np.ptp(states, axis=1).max() < 1e-6
    assert np.ptp(states, axis=0).max() > 0.1


def test_draws_are_gaussian():
    # One partition: each leaf is an autoregression, whose law is normal after any steps.
    case = expansion(6, 1, weighted=False, seed=5)
    states, sampler = run(case, DrawPlan(1.0, n_steps=5, learning_rate=0.5))
    _, covariance = law_after(5, case.leaves, case.weight, case.H, case.r, sampler)
    x = states[:, :, :1] / np.sqrt(covariance[0, 0])
    assert_mean(np.concatenate([x, x**2 - 1, x**3, x**4 - 3], axis=2).mean(axis=1), 0.0)
    assert_law(x.reshape(-1, 1), 0.0, np.ones((1, 1)))
