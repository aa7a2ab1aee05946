"""P_inf = N E P_s over structures chosen from pure noise; those of the chain estimate it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from sglb.experiments.small_chains import Recorder, binary_rows, projector_of, run_chain
from sglb.experiments.theory.problem import GAMMA, TEMPERATURE, TWELVE, TWELVE_Y, StudySize
from sglb.losses import Squared
from sglb.samplers import Langevin
from sglb.structure import GreedySearch

Floats = NDArray[np.float64]

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
    projectors = np.stack([projector_of(TWELVE, j) for j in range(len(TWELVE))])
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
