"""The Hamiltonian limit: position and velocity as eps falls, friction a = c sqrt(eps).

With the time t = sqrt(eps) tau and the velocity U = V / sqrt(eps) a leaf of n rows goes to

    dF = U dt,    dU = -k (F - ybar / k) dt - c U dt + sqrt(2 c T / n) dW,    k = 1 + gamma,

whose law is N(ybar / k, T / (n k)) for F and, independently, N(0, T / n) for U. At any eps

    Var F = (2 - a) 2 T / n / (k (4 - 2 a - eps k)).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm, solve_discrete_lyapunov

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
from sglb.samplers import Hamiltonian

Floats = NDArray[np.float64]

GAMMA, TEMPERATURE, TARGET = 0.5, 0.25, 0.0
PULL = 1.0 + GAMMA
FRICTION = 0.6  # c
RATES = (0.4, 0.1, 0.025, 0.00625)
ORBIT_RATES, ORBIT_TIME = (0.1, 0.00625), 12.0
START = 4.0
LEAF_BITS = 10


def sampler_of(eps: float) -> Hamiltonian:
    """Return the sampler whose friction falls with sqrt(eps)."""
    return Hamiltonian(eps, TEMPERATURE, GAMMA, FRICTION * float(np.sqrt(eps)))


def covariance(eps: float) -> Floats:
    """Return the stationary covariance of (F, V / sqrt(eps)) of the chain."""
    move = sampler_of(eps).move(0)
    C, b = move.transition.C, move.transition.b
    A = C - eps * np.outer(b, [1.0, 0.0])
    result = solve_discrete_lyapunov(A, (eps * move.noise) ** 2 * np.outer(b, b))
    scale = np.array([1.0, eps**-0.5])
    return np.asarray(result * np.outer(scale, scale))


@dataclass(frozen=True)
class Momentum:
    """At each eps the variances of F and of V / sqrt(eps) over their limits, and their
    correlation: exact and of the chain with errors, (n_rates, 3); and mean orbits.
    """

    rates: tuple[float, ...]
    exact: Floats
    measured: Floats
    error: Floats
    orbits: tuple[Floats, ...]  # of the chain at ORBIT_RATES, (n_steps, 2)
    limit: Floats  # of the limit, (n_times, 2)


def ratios(second: Floats) -> Floats:
    """Return Var F k / T - 1, Var U / T - 1 and the correlation from F^2, U^2 and F U (..., 3)."""
    f, u, mixed = np.moveaxis(second, -1, 0)
    return np.stack(
        [f * PULL / TEMPERATURE - 1, u / TEMPERATURE - 1, mixed * np.sqrt(PULL) / TEMPERATURE],
        axis=-1,
    )


def _states(eps: float, n_steps: int, start: float, seed: int) -> tuple[Floats, Floats]:
    """Return F and V / sqrt(eps) of all leaves after steps 2, 3, ..., from a start at rest."""
    n_leaves = 1 << LEAF_BITS
    rows = binary_rows(bits_of(np.arange(n_leaves), LEAF_BITS), np.full(n_leaves, TARGET))
    rule = FixedStructure(splits(*range(LEAF_BITS)))
    state = np.zeros((2, 1, n_leaves))
    state[0] = start
    recorder = Recorder(n_steps, 0)
    raw = run_chain(rows, Squared(), sampler_of(eps), rule, recorder, seed=seed, state=state).raw
    return raw[1:], np.diff(raw, axis=0) / np.sqrt(eps)  # F' = F + V'


def _stationary(eps: float, size: StudySize) -> tuple[Floats, Floats]:
    """Return the three ratios of a chain, and their errors over leaves."""
    burn_in = round(24.0 / FRICTION / np.sqrt(eps))  # the start decays like exp(-c t / 2)
    n_steps = burn_in + size.steps(120.0 / np.sqrt(eps))
    f, u = (part[burn_in:] for part in _states(eps, n_steps, 0.0, size.seed))
    second = np.stack([np.square(f).mean(0), np.square(u).mean(0), (f * u).mean(0)], axis=-1)
    values = ratios(second)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def momentum(size: StudySize) -> Momentum:
    """Measure the law of position and velocity at falling eps, and the mean orbit."""
    exact = [covariance(eps) for eps in RATES]
    second = np.array([[S[0, 0], S[1, 1], S[0, 1]] for S in exact])
    measured, error = np.moveaxis(np.array([_stationary(eps, size) for eps in RATES]), 1, 0)
    orbits = []
    for eps in ORBIT_RATES:
        f, u = _states(eps, round(ORBIT_TIME / np.sqrt(eps)), START, size.seed)
        orbits.append(np.stack([f.mean(axis=1), u.mean(axis=1)], axis=1))
    flow = np.array([[0.0, 1.0], [-PULL, -FRICTION]])
    times = np.linspace(0.0, ORBIT_TIME, 400)
    limit = np.array([expm(t * flow) @ [START, 0.0] for t in times])
    return Momentum(RATES, ratios(second), measured, error, tuple(orbits), limit)
