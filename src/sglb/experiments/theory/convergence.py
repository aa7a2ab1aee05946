"""Rates of convergence: the distance to the Gibbs law, step by step.

Squared loss, one structure: a leaf of n rows is a linear chain of F, or of (F, V) with momentum,
and Gaussian at every step. With k = 1 + gamma its Gibbs law is N(ybar / k, T / (n k)), and for
Gaussian laws on a line the squared Wasserstein distance is

    W2^2 = (difference of means)^2 + (difference of standard deviations)^2.

Langevin boosting needs a time eps tau of order 1 / k; momentum with the critical friction a =
2 sqrt(eps k) needs sqrt(eps) tau of order 1 / sqrt(k), which is fewer steps the smaller eps is.
What remains is the bias of eps.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb.experiments.small_chains import (
    FixedStructure,
    Recorder,
    binary_rows,
    bits_of,
    run_chain,
    splits,
)
from sglb.experiments.theory.problem import StudySize
from sglb.losses import Squared
from sglb.samplers import Hamiltonian, Langevin

Floats = NDArray[np.float64]
LeafSampler = Langevin | Hamiltonian

GAMMA, TEMPERATURE, TARGET = 0.1, 1.0, 5.0
PULL = 1.0 + GAMMA
MEAN, STD = TARGET / PULL, np.sqrt(TEMPERATURE / PULL)
LEAF_BITS = 12  # leaves of one row are independent copies
CURVE_RATES, CURVE_TIME = (0.2, 0.05), 6.0
RATES = (0.2, 0.1, 0.05, 0.025, 0.0125, 0.00625)
NEAR = 0.15  # standard deviations of the Gibbs law; the bias of eps = 0.2 is below


def critical_friction(eps: float) -> float:
    """Return the friction at which a leaf is about to oscillate."""
    return float(min(1.0, 2.0 * np.sqrt(eps * PULL)))


def sampler_of(method: str, eps: float) -> LeafSampler:
    """Return a sampler by the name of its method."""
    if method == "langevin":
        return Langevin(eps, TEMPERATURE, GAMMA)
    return Hamiltonian(eps, TEMPERATURE, GAMMA, critical_friction(eps))


def moments(sampler: LeafSampler, n_steps: int) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of F after each step from 0: those of F' = A F + u."""
    move = sampler.move(0)
    C, b, eps = move.transition.C, move.transition.b, move.learning_rate
    A, u = C - eps * np.outer(b, np.eye(len(b))[0]), eps * TARGET * b
    noise = (eps * move.noise) ** 2 * np.outer(b, b)
    mean, covariance = np.zeros(len(b)), np.zeros((len(b), len(b)))
    result = np.empty((n_steps, 2))
    for step in range(n_steps):
        mean, covariance = A @ mean + u, A @ covariance @ A.T + noise
        result[step] = mean[0], np.sqrt(covariance[0, 0])
    return result[:, 0], result[:, 1]


def distance(mean: Floats, std: Floats) -> Floats:
    """Return W2 to the Gibbs law, in its standard deviations."""
    return np.asarray(np.hypot(mean - MEAN, std - STD) / STD)


def leaves(sampler: LeafSampler, n_steps: int, seed: int) -> Floats:
    """Return the scores of all leaves after each step, (n_steps, n_leaves)."""
    n_leaves = 1 << LEAF_BITS
    rows = binary_rows(bits_of(np.arange(n_leaves), LEAF_BITS), np.full(n_leaves, TARGET))
    rule = FixedStructure(splits(*range(LEAF_BITS)))
    return run_chain(rows, Squared(), sampler, rule, Recorder(n_steps, 0), seed=seed).raw


def first_below(values: Floats) -> int:
    """Return the first step after which the distance stays below NEAR."""
    return int(np.flatnonzero(values >= NEAR)[-1]) + 2


@dataclass(frozen=True)
class DistanceCurve:
    """Distances to the Gibbs law after steps 1, 2, ..., exact and of the chain's leaves."""

    method: str
    rate: float
    exact: Floats
    measured: Floats


@dataclass(frozen=True)
class Convergence:
    """Curves at two learning rates, and the number of steps until the law is NEAR, by method."""

    curves: tuple[DistanceCurve, ...]
    rates: tuple[float, ...]
    exact_steps: dict[str, list[int]]
    measured_steps: dict[str, list[int]]


METHODS = ("langevin", "hamiltonian")


def curve(method: str, eps: float, time: float, size: StudySize) -> DistanceCurve:
    """Compute and measure the distances up to a time eps tau."""
    sampler, n_steps = sampler_of(method, eps), round(time / eps)
    raw = leaves(sampler, n_steps, size.seed)
    measured = distance(raw.mean(axis=1), raw.std(axis=1))
    return DistanceCurve(method, eps, distance(*moments(sampler, n_steps)), measured)


def convergence(size: StudySize) -> Convergence:
    """Compute and measure the distance to the Gibbs law for both methods."""
    curves = [curve(m, eps, CURVE_TIME, size) for m in METHODS for eps in CURVE_RATES]
    exact: dict[str, list[int]] = {method: [] for method in METHODS}
    measured: dict[str, list[int]] = {method: [] for method in METHODS}
    for method in METHODS:
        for eps in RATES:
            # Both are near after a time of 4; with momentum it takes a time of 12 sqrt(eps).
            time = 4.0 if method == "langevin" else 12.0 * np.sqrt(eps)
            result = curve(method, eps, time, size)
            exact[method].append(first_below(result.exact))
            measured[method].append(first_below(result.measured))
    return Convergence(tuple(curves), RATES, exact, measured)
