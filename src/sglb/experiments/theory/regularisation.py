"""The error of gamma: how far the regularised optimum is from the optimum as gamma falls.

With the squared loss the stationary mean is (gamma I + Pbar)^-1 Pbar y for every eps. It differs
from the least-squares fit by O(gamma), and the loss by O(gamma^2). A leaf of one class has no
optimum under the logistic loss: its score z solves sigmoid(-z) = gamma z, and the loss falls more
slowly, like gamma log(1 / gamma).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb.experiments.small_chains import (
    FixedStructure,
    RandomStructure,
    Recorder,
    batch_error,
    binary_rows,
    bits_of,
    projector_of,
    run_chain,
    splits,
)
from sglb.experiments.theory.gibbs_line import GibbsLine
from sglb.experiments.theory.problem import SQUARE, SQUARE_Y, StudySize
from sglb.losses import Logistic, Squared
from sglb.samplers import Langevin

Floats = NDArray[np.float64]

GAMMAS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
# Cold, so that the noise in the loss is far below the error of gamma.
COLD = 1e-4
SQUARED_RATE, LOGISTIC_RATE = 0.2, 1.0
COPIES_BITS, ONE_CLASS_ROWS, ONE_CLASS_BITS = 5, 4, 6


@dataclass(frozen=True)
class Regularisation:
    """At each gamma: the relative bias of the stationary mean and its excess loss, squared loss,
    and the loss of a leaf of one class, logistic loss; each by formula and by chain, with errors.
    """

    gammas: tuple[float, ...]
    bias: Floats
    bias_measured: Floats
    bias_error: Floats
    excess: Floats
    excess_measured: Floats
    one_class: Floats
    one_class_measured: Floats
    one_class_error: Floats


def stationary_mean(gamma: float) -> Floats:
    """Return (gamma I + Pbar)^-1 Pbar y; for gamma 0 its limit, the least-squares fit."""
    mean = 0.5 * (projector_of(SQUARE, 0) + projector_of(SQUARE, 1))
    if gamma == 0.0:
        return np.asarray(np.linalg.pinv(mean) @ mean @ SQUARE_Y)
    return np.asarray(np.linalg.solve(gamma * np.eye(len(mean)) + mean, mean @ SQUARE_Y))


def one_class_law(gamma: float) -> GibbsLine:
    """Return the Gibbs law of a leaf of rows of one class, a narrow peak."""
    inverse = ONE_CLASS_ROWS / COLD
    center = 0.0
    for _ in range(100):  # Newton's method on a convex function
        slope = -1.0 / (1.0 + np.exp(center)) + gamma * center
        curvature = np.exp(center) / (1.0 + np.exp(center)) ** 2 + gamma
        center -= slope / curvature
    half = 8.0 / np.sqrt(inverse * curvature)
    grid = np.linspace(center - half, center + half, 2001)
    return GibbsLine(grid, inverse * (np.logaddexp(0.0, -grid) + 0.5 * gamma * grid**2))


def _squared(index: int, size: StudySize) -> tuple[float, float, float]:
    """Return the relative bias of the chain's mean, its error, and the excess loss."""
    gamma, seed = GAMMAS[index], size.seed * len(GAMMAS) + index
    n_copies, n = 1 << COPIES_BITS, SQUARE.shape[1]
    copy_bits = bits_of(np.repeat(np.arange(n_copies), n), COPIES_BITS)
    rows = binary_rows(
        np.vstack([copy_bits, np.tile(SQUARE, n_copies)]), np.tile(SQUARE_Y, n_copies)
    )
    rule = RandomStructure([splits(*range(COPIES_BITS), COPIES_BITS + f) for f in (0, 1)])
    n_steps = size.steps(4_000)
    recorder = Recorder(400 + n_steps, 400)
    sampler = Langevin(SQUARED_RATE, COLD, gamma)
    raw = run_chain(rows, Squared(), sampler, rule, recorder, seed=seed).raw
    raw = raw.reshape(n_steps, n_copies, n).mean(axis=1)
    optimum = stationary_mean(0.0)
    length = float(np.linalg.norm(optimum))
    off = raw.mean(axis=0) - optimum
    direction = off / np.linalg.norm(off)
    error = batch_error((raw - optimum) @ direction) / length
    return float(np.linalg.norm(off)) / length, error, float(off @ off) / (2 * n)


def _one_class(index: int, size: StudySize) -> tuple[float, float]:
    """Return the mean logistic loss of leaves of one class, and its error."""
    gamma, seed = GAMMAS[index], size.seed * len(GAMMAS) + index
    n_leaves = 1 << ONE_CLASS_BITS
    leaf = np.repeat(np.arange(n_leaves), ONE_CLASS_ROWS)
    rows = binary_rows(bits_of(leaf, ONE_CLASS_BITS), np.ones(len(leaf)))
    # The pull towards the optimum is at least gamma (1 + z), z > 1 for small gamma.
    burn_in, n_steps = round(10 / gamma / LOGISTIC_RATE) + 50, size.steps(2_000)
    recorder = Recorder(burn_in + n_steps, burn_in, np.arange(n_leaves) * ONE_CLASS_ROWS)
    sampler = Langevin(LOGISTIC_RATE, COLD, gamma)
    rule = FixedStructure(splits(*range(ONE_CLASS_BITS)))
    raw = run_chain(rows, Logistic(), sampler, rule, recorder, seed=seed).raw
    loss = np.logaddexp(0.0, -raw).mean(axis=0)
    return float(loss.mean()), float(loss.std(ddof=1) / np.sqrt(n_leaves))


def regularisation(size: StudySize) -> Regularisation:
    """Measure the error of gamma at falling gammas."""
    optimum = stationary_mean(0.0)
    off = np.array([stationary_mean(gamma) - optimum for gamma in GAMMAS])
    bias = np.linalg.norm(off, axis=1) / np.linalg.norm(optimum)
    excess = np.square(off).sum(axis=1) / (2 * len(optimum))
    measured, error, loss = np.array([_squared(i, size) for i in range(len(GAMMAS))]).T
    laws = [one_class_law(gamma) for gamma in GAMMAS]
    one_class = np.array([law.mean(np.logaddexp(0.0, -law.grid)) for law in laws])
    leaves, leaves_error = np.array([_one_class(i, size) for i in range(len(GAMMAS))]).T
    return Regularisation(
        GAMMAS, bias, measured, error, excess, loss, one_class, leaves, leaves_error
    )
