"""Theorem 2: the mean excess loss over the global optimum is O((d / beta) log(beta / d))."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sglb.experiments.small_chains import Recorder, binary_rows, projector_of, run_chain
from sglb.experiments.theory.problem import SQUARE, StudySize
from sglb.losses import Welsch
from sglb.samplers import Langevin, Plain
from sglb.structure import GreedySearch

Floats = NDArray[np.float64]

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
    projectors = np.hstack([projector_of(SQUARE, 0), projector_of(SQUARE, 1)])
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
    mean_projector = 0.5 * (projector_of(SQUARE, 0) + projector_of(SQUARE, 1))
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
