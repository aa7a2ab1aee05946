"""`sglb paper theory`: four statements of the paper, measured on chains of the library's loop.

1. Theorem 1: as the learning rate eps falls, the stationary covariance S of the chain converges to
   that of the diffusion, (N / beta) (gamma I + Pbar)^-1 Pbar, with an error linear in eps.
2. Theorem 2: the mean excess loss over the global optimum is O((d / beta) log(beta / d)).
3. P_inf = N E P_s over structures chosen from pure noise; those of the chain estimate it.
4. Modes of a non-convex loss are visited by their Gibbs weights exp(-beta loss).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from sglb.experiments.small_chains import (
    FixedStructure,
    RandomStructure,
    Recorder,
    batch_error,
    binary_rows,
    bits_of,
    projector,
    run_chain,
    splits,
)
from sglb.losses import Squared, Welsch
from sglb.samplers import Langevin, Plain
from sglb.structure import GreedySearch

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StudySize:
    """Length of the chains, as a multiple of the full length, and their seed."""

    length: float = 1.0
    seed: int = 0

    def steps(self, count: float) -> int:
        """Return a number of steps at this length."""
        return max(400, round(count * self.length))


# 1. Weak convergence.

# Two balanced binary features on eight rows: the greedy search has two stumps of equal probability
# when there is no signal, so that Pbar is known exactly.
SQUARE = np.array([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1]])
SQUARE_Y = np.array([1.0, -2.0, 0.5, 3.0, 0.0, -1.0, 2.0, 1.5])
GAMMA, TEMPERATURE = 0.5, 1.7
RATES = (0.8, 0.4, 0.2, 0.1, 0.05)
COPIES_BITS = 5


@dataclass(frozen=True)
class WeakConvergence:
    """tr S / tr S_limit - 1 at each learning rate: by the formula, measured with random structures
    and with the greedy search, each with its standard error.
    """

    rates: tuple[float, ...]
    exact: Floats
    random: Floats
    random_error: Floats
    greedy: Floats
    greedy_error: Floats


def limit_covariance(projectors: list[Floats]) -> Floats:
    """Return (N / beta) (gamma I + Pbar)^-1 Pbar."""
    mean = np.mean(projectors, axis=0)
    inverse: Floats = np.linalg.solve(GAMMA * np.eye(len(mean)) + mean, mean)
    return TEMPERATURE * inverse


def exact_covariance(projectors: list[Floats], y: Floats, eps: float) -> Floats:
    """Return S for structures that are independent of f: with A = rho I - eps P_s,
    b = eps (P_s (y - m) - gamma m), m = (gamma I + Pbar)^-1 Pbar y,

        vec S = (I - E[A (x) A])^-1 vec(E[b b'] + 2 eps (N / beta) Pbar).
    """
    n, mean = len(y), np.mean(projectors, axis=0)
    m = np.linalg.solve(GAMMA * np.eye(n) + mean, mean @ y)
    double, source = np.zeros((n * n, n * n)), 2.0 * eps * TEMPERATURE * mean
    for P in projectors:
        A = (1.0 - GAMMA * eps) * np.eye(n) - eps * P
        b = eps * (P @ (y - m) - GAMMA * m)
        double += np.kron(A, A) / len(projectors)
        source = source + np.outer(b, b) / len(projectors)
    return np.linalg.solve(np.eye(n * n) - double, source.ravel()).reshape(n, n)


def weak_convergence(size: StudySize) -> WeakConvergence:
    """Measure the total variance of the chain at falling learning rates."""
    projectors = [projector(SQUARE, 0), projector(SQUARE, 1)]
    limit = float(np.trace(limit_covariance(projectors)))
    n_copies, n = 1 << COPIES_BITS, SQUARE.shape[1]
    # Copies of the rows, separated by features that every structure splits, are independent
    # chains that share their steps.
    copy_bits = bits_of(np.repeat(np.arange(n_copies), n), COPIES_BITS)
    copies = binary_rows(
        np.vstack([copy_bits, np.tile(SQUARE, n_copies)]), np.tile(SQUARE_Y, n_copies)
    )
    structures = [splits(*range(COPIES_BITS), COPIES_BITS + f) for f in (0, 1)]
    measured = []
    for eps in RATES:
        sampler, burn_in = Langevin(eps, TEMPERATURE, GAMMA), round(20 / eps)
        n_steps = size.steps(6_000 / eps)
        recorder = Recorder(burn_in + n_steps, burn_in)
        rule = RandomStructure(structures)
        raw = run_chain(copies, Squared(), sampler, rule, recorder, seed=size.seed).raw
        random = _variance_ratio(raw.reshape(n_steps, n_copies, n), limit)
        n_steps = size.steps(50_000 / eps)
        recorder = Recorder(burn_in + n_steps, burn_in)
        rows = binary_rows(SQUARE, SQUARE_Y)
        raw = run_chain(rows, Squared(), sampler, GreedySearch(1), recorder, seed=size.seed).raw
        measured.append((*random, *_variance_ratio(raw.reshape(n_steps, 1, n), limit)))
    exact = [np.trace(exact_covariance(projectors, SQUARE_Y, eps)) / limit - 1 for eps in RATES]
    return WeakConvergence(RATES, np.array(exact), *np.array(measured).T)


def _variance_ratio(raw: Floats, limit: float) -> tuple[float, float]:
    """Return total variance / limit - 1 of states (n_steps, n_copies, n), and its error."""
    deviation = raw - raw.mean(axis=(0, 1))
    squares = np.square(deviation).sum(axis=2).mean(axis=1) / limit
    return float(squares.mean() - 1.0), batch_error(squares)


# 2. Concentration.

# Welsch's loss of four cells of two rows; plain boosting from zero ends in a local optimum.
CELLS_Y = np.array([-2.0, 2.0, -1.5, 0.5, 0.5, 2.0, 1.5, 1.5])
BETAS = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
# Each chain goes through all betas in turn: started at a high beta, it would hardly leave its first
# minimum. Chains are independent; their spread is the error.
N_CHAINS = 16
CHAIN_RATE, CHAIN_GAMMA = 0.1, 1e-2


@dataclass(frozen=True)
class Concentration:
    """Mean excess loss at each beta: of the chain, its error, of the Gibbs law; the paper's rate
    (d / beta) log(beta / d); the excess loss of plain boosting; and the optimum itself.
    """

    betas: tuple[float, ...]
    measured: Floats
    error: Floats
    gibbs: Floats
    rate: Floats
    plain: float
    dimension: int
    optimum: float


def mean_loss(raw: Floats) -> Floats:
    """Return L_N of states (..., n_rows)."""
    return np.asarray(0.5 * (1.0 - np.exp(-np.square(raw - CELLS_Y))).mean(axis=-1))


def _basis() -> Floats:
    """Return an orthonormal basis (n_rows, d) of the span of ensembles of stumps."""
    projectors = np.hstack([projector(SQUARE, 0), projector(SQUARE, 1)])
    left, singular, _ = np.linalg.svd(projectors)
    return np.asarray(left[:, : int((singular > 1e-9).sum())])


def global_optimum() -> float:
    """Return inf L_N over the span, by descent from a lattice of starts."""
    basis = _basis()
    starts = np.stack(np.meshgrid(*[np.linspace(-5, 5, 5)] * basis.shape[1]), axis=-1)
    return float(
        min(
            minimize(lambda theta: float(mean_loss(basis @ theta)), start, method="BFGS").fun
            for start in starts.reshape(-1, basis.shape[1])
        )
    )


def gibbs_excess(beta: float, optimum: float, n_points: int = 101) -> float:
    """Return the mean excess loss under exp(-beta (L_N + gamma / 2 F' P_inf^-1 F)) on the span."""
    basis = _basis()
    mean_projector = 0.5 * (projector(SQUARE, 0) + projector(SQUARE, 1))
    precision = np.linalg.inv(basis.T @ (len(CELLS_Y) * mean_projector) @ basis)
    # All minima are within 6 of zero; then five standard deviations of the regulariser's law.
    half = 6.0 + 5.0 / np.sqrt(beta * CHAIN_GAMMA * np.linalg.eigvalsh(precision).min())
    line = np.linspace(-half, half, n_points)
    theta = np.stack(np.meshgrid(*[line] * basis.shape[1], indexing="ij"), axis=-1)
    theta = theta.reshape(-1, basis.shape[1])
    loss = np.concatenate([mean_loss(part @ basis.T) for part in np.array_split(theta, 64)])
    regulariser = 0.5 * CHAIN_GAMMA * np.einsum("ij,jk,ik->i", theta, precision, theta)
    energy = beta * (loss + regulariser)
    weight = np.exp(-(energy - energy.min()))
    return float((weight * (loss - optimum)).sum() / weight.sum())


def concentration(size: StudySize) -> Concentration:
    """Measure the chain's excess loss at rising beta."""
    rows, optimum, n = binary_rows(SQUARE, CELLS_Y), global_optimum(), len(CELLS_Y)
    n_steps, burn_in = size.steps(20_000), size.steps(4_000)
    excess = np.empty((N_CHAINS, len(BETAS)))
    for chain in range(N_CHAINS):
        state = np.zeros(n)
        for index, beta in enumerate(BETAS):
            recorder = Recorder(burn_in + n_steps, burn_in)
            sampler = Langevin(CHAIN_RATE, n / beta, CHAIN_GAMMA)
            seed = (size.seed * N_CHAINS + chain) * len(BETAS) + index
            start = state[None, None].copy()
            run_chain(rows, Welsch(1.0), sampler, GreedySearch(1), recorder, seed=seed, state=start)
            excess[chain, index] = mean_loss(recorder.raw).mean() - optimum
            state = recorder.raw[-1]
    recorder = Recorder(2000, 1999)
    run_chain(rows, Welsch(1.0), Plain(CHAIN_RATE), GreedySearch(1), recorder, seed=0)
    d, betas = _basis().shape[1], np.array(BETAS)
    gibbs = np.array([gibbs_excess(beta, optimum) for beta in BETAS])
    rate = d / betas * np.log(betas / d)
    plain = float(mean_loss(recorder.raw)[0] - optimum)
    error = excess.std(axis=0, ddof=1) / np.sqrt(N_CHAINS)
    return Concentration(BETAS, excess.mean(axis=0), error, gibbs, rate, plain, d, optimum)


# 3. P_inf.

# Four correlated binary features of different balance on twelve rows.
TWELVE = np.array(
    [
        [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1],
        [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
        [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
    ]
)
TWELVE_Y = np.array([2.0, -1.0, 0.5, 1.0, 0.0, -2.0, 1.5, 0.3, -0.7, 1.1, -1.6, 0.4])
STRUCTURE_RATES = (1.0, 0.1, 0.01)


@dataclass(frozen=True)
class Preconditioner:
    """Share of the splits of each feature: exact for pure noise, and of chains at each learning
    rate; and the relative distance of P_inf in the Frobenius norm at each.
    """

    exact: Floats
    rates: tuple[float, ...]
    measured: Floats  # (n_rates, n_features)
    distance: Floats


def choice_probabilities(bits: NDArray[np.int64]) -> Floats:
    """Return the probability of each stump when gradients are pure noise z.

    The score of feature j is (u_j' z)^2 + (mean z)^2 N with the unit contrast u_j of its two
    leaves, so that the largest |u_j' z| wins. With x = u_j' z > 0 all others are within +- x:

        p_j = 2 E[1{x > 0} P(|u_k' z| < x for k != j | u_j' z = x)]
    """
    contrasts = np.stack([_contrast(feature) for feature in bits])
    covariance = contrasts @ contrasts.T
    # Gauss-Legendre on [0, 8] standard deviations: the mass beyond is below 1e-15.
    nodes, weight = np.polynomial.legendre.leggauss(48)
    x, weight = 4.0 * (nodes + 1.0), 4.0 * weight
    probabilities = []
    for j in range(len(bits)):
        others = [k for k in range(len(bits)) if k != j]
        slope = covariance[others, j]
        conditional = covariance[np.ix_(others, others)] - np.outer(slope, slope)
        inside = [_box_probability(-u - slope * u, u - slope * u, conditional) for u in x]
        mass = weight * np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
        probabilities.append(2.0 * np.sum(mass * inside))
    return np.array(probabilities)


def _box_probability(low: Floats, high: Floats, covariance: Floats) -> float:
    """Return the probability that a centred normal vector is between low and high."""
    law = multivariate_normal(np.zeros(len(low)), covariance, allow_singular=True, seed=0)
    return float(law.cdf(high, lower_limit=low))


def _contrast(bits: NDArray[np.int64]) -> Floats:
    n, ones = len(bits), int(bits.sum())
    vector = np.where(bits == 1, 1.0 / ones, -1.0 / (n - ones))
    return np.asarray(vector / np.linalg.norm(vector))


def preconditioner(size: StudySize) -> Preconditioner:
    """Estimate P_inf from the structures that chains choose."""
    exact = choice_probabilities(TWELVE)
    rows, n = binary_rows(TWELVE, TWELVE_Y), TWELVE.shape[1]
    projectors = np.stack([projector(TWELVE, j) for j in range(len(TWELVE))])
    expected = n * np.tensordot(exact, projectors, axes=1)
    measured, distance = [], []
    n_steps, burn_in = size.steps(200_000), size.steps(2_000)
    for eps in STRUCTURE_RATES:
        recorder = Recorder(burn_in + n_steps, burn_in)
        sampler = Langevin(eps, TEMPERATURE, GAMMA)
        run_chain(rows, Squared(), sampler, GreedySearch(1), recorder, seed=size.seed)
        share = np.bincount(recorder.features, minlength=len(TWELVE)) / n_steps
        estimate = n * np.tensordot(share, projectors, axes=1)
        measured.append(share)
        distance.append(float(np.linalg.norm(estimate - expected) / np.linalg.norm(expected)))
    return Preconditioner(exact, STRUCTURE_RATES, np.array(measured), np.array(distance))


# 4. Modes.

WELL_Y = (-1.5, -1.5, 1.5)
WELL_SAMPLER = Langevin(0.05, 0.2, 0.05)
WELL_BITS = 9


@dataclass(frozen=True)
class Modes:
    """Raw scores of a leaf and their Gibbs density; raw scores of the chain; mass above zero."""

    grid: Floats
    density: Floats
    visited: Floats
    gibbs_mass: float
    mass: float
    mass_error: float


def modes(size: StudySize) -> Modes:
    """Measure how often a leaf with two minima is in either of them."""
    n_leaves, n = 1 << WELL_BITS, len(WELL_Y)
    y, first = np.tile(WELL_Y, n_leaves), np.arange(n_leaves) * n
    rows = binary_rows(bits_of(np.repeat(np.arange(n_leaves), n), WELL_BITS), y)
    n_steps, burn_in = size.steps(20_000), 10_000
    recorder = Recorder(burn_in + n_steps, burn_in, first)
    rule = FixedStructure(splits(*range(WELL_BITS)))
    run_chain(rows, Welsch(1.0), WELL_SAMPLER, rule, recorder, seed=size.seed)
    grid = np.linspace(-7.0, 7.0, 4001)
    loss = np.mean([0.5 * (1.0 - np.exp(-np.square(grid - y))) for y in WELL_Y], axis=0)
    energy = loss + 0.5 * WELL_SAMPLER.shrink_rate * grid**2
    weight = np.exp(-n / WELL_SAMPLER.temperature * (energy - energy.min()))
    density = weight / (weight.sum() * (grid[1] - grid[0]))
    above = (recorder.raw > 0.0).mean(axis=0)  # leaves are independent chains
    return Modes(
        grid,
        density,
        recorder.raw[::50].ravel(),
        float(weight[grid > 0.0].sum() / weight.sum()),
        float(above.mean()),
        float(above.std(ddof=1) / np.sqrt(n_leaves)),
    )
