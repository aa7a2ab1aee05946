"""Theorem 1: the stationary covariance as the learning rate falls.

The covariance S of the chain converges to that of the diffusion, (N / beta) (gamma I + Pbar)^-1
Pbar, with an error linear in eps.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb.experiments.small_chains import (
    RandomStructure,
    Recorder,
    batch_error,
    binary_rows,
    bits_of,
    projector_of,
    run_chain,
    splits,
)
from sglb.experiments.theory.problem import GAMMA, SQUARE, SQUARE_Y, TEMPERATURE, StudySize
from sglb.losses import Squared
from sglb.samplers import Langevin
from sglb.structure import GreedySearch

Floats = NDArray[np.float64]

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
    projectors = [projector_of(SQUARE, 0), projector_of(SQUARE, 1)]
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
