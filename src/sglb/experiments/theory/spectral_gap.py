"""The spectral gap, seen as the slowest autocorrelation of the chain.

Squared loss, structures drawn without a look at f: a direction in which Pbar has the eigenvalue
lambda has the autocorrelation (1 - eps (gamma + lambda))^k at lag k, so that the smallest lambda is
the gap. In a double well the gap is the rate of crossings, exponentially small in beta:

    (sqrt(U''(a) |U''(b)|) exp(-beta (U(b) - U(a))) + the same with the other well) / (2 pi)

for the minima a and the top b of U (Kramers). The chain's transition operator on a grid has it
exactly, as its second eigenvalue, for any eps.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb.experiments.small_chains import (
    FixedStructure,
    RandomStructure,
    Recorder,
    binary_rows,
    bits_of,
    projector_of,
    run_chain,
    splits,
)
from sglb.experiments.theory.gibbs_line import bounded_loss
from sglb.experiments.theory.preconditioner import choice_probabilities
from sglb.experiments.theory.problem import TWELVE, TWELVE_Y, StudySize
from sglb.losses import Squared, Welsch
from sglb.samplers import Langevin
from sglb.structure import GreedySearch, StructureRule

Floats = NDArray[np.float64]

RATE, GAMMA, TEMPERATURE = 0.05, 0.05, 1.0
LAGS = np.arange(0, 161, 8)
N_BATCHES, COPIES_BITS = 40, 3


@dataclass(frozen=True)
class Autocorrelation:
    """Autocorrelations of each direction of the span, slowest first: exact and of the chain, with
    errors, (n_directions, n_lags); for structures drawn, and for the greedy search, whose "exact"
    is the limit of small eps.
    """

    lags: NDArray[np.int64]
    eigenvalues: Floats
    exact: Floats
    measured: Floats
    error: Floats

    def exact_rate(self, direction: int) -> float:
        """Return gamma + lambda."""
        return GAMMA + float(self.eigenvalues[direction])

    def rate(self, direction: int) -> tuple[float, float]:
        """Return the rate that the chain shows at the lag where about 1/3 is left, its error."""
        late = self.exact[direction, 1:]
        index = 1 + int(np.abs(late - 1.0 / 3.0).argmin())
        lag, value = int(self.lags[index]), self.measured[direction, index]
        root = max(value, 1e-12) ** (1.0 / lag)
        return (1.0 - root) / RATE, self.error[direction, index] * root / (lag * value * RATE)


def _measure(raw: Floats) -> tuple[Floats, Floats]:
    """Return autocorrelations (n_directions, n_lags) of states (n_steps, n_copies, n_directions),
    and their errors from batches of steps.
    """
    raw = raw - raw.mean(axis=(0, 1))
    n_used = (len(raw) - int(LAGS[-1])) // N_BATCHES * N_BATCHES
    shape = (N_BATCHES, -1, raw.shape[2])
    products = np.stack(
        [(raw[:n_used] * raw[lag : lag + n_used]).reshape(shape).mean(axis=1) for lag in LAGS]
    )  # (n_lags, n_batches, n_directions)
    variance = products[0].mean(axis=0)
    ratio = products.mean(axis=1) / variance
    # The error of a ratio is that of the mean of its residuals.
    residual = (products - ratio[:, None] * products[0]) / variance
    return ratio.T, residual.std(axis=1, ddof=1).T / np.sqrt(N_BATCHES)


def _run(
    chances: Floats, rule: StructureRule, n_bits: int, n_steps: int, seed: int
) -> Autocorrelation:
    """Run a chain, on 2^n_bits copies of the rows, whose stumps have these chances."""
    mean = np.tensordot(chances, [projector_of(TWELVE, j) for j in range(len(TWELVE))], axes=1)
    eigenvalues, vectors = np.linalg.eigh(mean)
    inside = eigenvalues > 1e-9
    eigenvalues, vectors = eigenvalues[inside], vectors[:, inside]
    n_copies, n = 1 << n_bits, TWELVE.shape[1]
    copy_bits = bits_of(np.repeat(np.arange(n_copies), n), n_bits)
    rows = binary_rows(
        np.vstack([copy_bits, np.tile(TWELVE, n_copies)]), np.tile(TWELVE_Y, n_copies)
    )
    burn_in = 1000
    recorder = Recorder(burn_in + n_steps, burn_in)
    sampler = Langevin(RATE, TEMPERATURE, GAMMA)
    raw = run_chain(rows, Squared(), sampler, rule, recorder, seed=seed).raw
    measured, error = _measure(raw.reshape(n_steps, n_copies, n) @ vectors)
    exact = (1.0 - RATE * (GAMMA + eigenvalues))[:, None] ** LAGS
    return Autocorrelation(LAGS, eigenvalues, exact, measured, error)


def drawn(size: StudySize) -> Autocorrelation:
    """Measure a chain of structures that are drawn without a look at f."""
    n_stumps = len(TWELVE)
    rule = RandomStructure([splits(*range(COPIES_BITS), COPIES_BITS + j) for j in range(n_stumps)])
    chances = np.full(n_stumps, 1.0 / n_stumps)
    return _run(chances, rule, COPIES_BITS, size.steps(100_000), size.seed)


def greedy(size: StudySize) -> Autocorrelation:
    """Measure a chain of the greedy search beside the limit of small eps."""
    chances = choice_probabilities(TWELVE)
    return _run(chances, GreedySearch(1), 0, size.steps(200_000), size.seed)


WELL_BETAS = (10.0, 15.0, 20.0, 25.0, 30.0, 40.0)
# Two minima of equal depth, so that half of the leaves is in each.
WELL_Y = (-1.5, 1.5)
WELL_RATE, WELL_GAMMA, WELL_BITS = 0.2, 0.05, 9
N_SPELLS = 12


def _slopes(raw: Floats) -> tuple[Floats, Floats]:
    """Return U' and U'' at raw scores of the leaf, U = its mean loss + gamma / 2 raw^2."""
    off = raw[:, None] - np.array(WELL_Y)
    bell = np.exp(-np.square(off))
    slope = (off * bell).mean(axis=1) + WELL_GAMMA * raw
    curvature = ((1.0 - 2.0 * np.square(off)) * bell).mean(axis=1) + WELL_GAMMA
    return slope, curvature


def _potential(raw: Floats) -> Floats:
    loss = np.mean([bounded_loss(raw, y) for y in WELL_Y], axis=0)
    return np.asarray(loss + 0.5 * WELL_GAMMA * np.square(raw))


def kramers_rate(beta: float) -> float:
    """Return the limit of the gap for large beta."""
    raw = np.linspace(-4.0, 4.0, 80_000)  # without the top itself, where the slope is 0
    slope, curvature = _slopes(raw)
    left, top, right = np.flatnonzero(np.diff(np.sign(slope)) != 0)
    height, sharp = _potential(raw), np.sqrt(np.abs(curvature))
    rates = [
        sharp[well] * sharp[top] * np.exp(-beta * (height[top] - height[well]))
        for well in (left, right)
    ]
    return float(sum(rates) / (2.0 * np.pi))


@dataclass(frozen=True)
class WellOperator:
    """The chain of a leaf on a grid: its stationary law, the second eigenvalue of its transition
    operator, and the eigenfunction, which decays by this factor at each step.
    """

    grid: Floats
    law: Floats
    eigenvalue: float
    eigenfunction: Floats

    @classmethod
    def of(cls, beta: float, n_points: int = 201) -> "WellOperator":
        """Build the operator f' ~ N(f - eps U'(f), 2 eps / beta)."""
        half = 3.0 + 3.0 / np.sqrt(beta * WELL_GAMMA)
        grid = np.linspace(-half, half, n_points)
        center = grid - WELL_RATE * _slopes(grid)[0]
        move = np.exp(-np.square(grid - center[:, None]) * beta / (4.0 * WELL_RATE))
        move /= move.sum(axis=1, keepdims=True)
        values, right = np.linalg.eig(move)
        order = np.argsort(-values.real)
        # Every row of a high power of the operator is the stationary law.
        law = np.linalg.matrix_power(move, 1 << 20)[0]
        return cls(grid, law / law.sum(), float(values[order[1]].real), right[:, order[1]].real)

    @property
    def gap(self) -> float:
        """The gap in units of time, eps a step."""
        return (1.0 - self.eigenvalue) / WELL_RATE


@dataclass(frozen=True)
class WellGaps:
    """The gap of a double well at each beta: exact for the chain, Kramers' limit, and measured."""

    betas: tuple[float, ...]
    exact: Floats
    kramers: Floats
    measured: Floats
    error: Floats


def _crossings(operator: WellOperator, beta: float, size: StudySize) -> tuple[float, float]:
    """Return the gap that a chain shows, and its error: leaves are independent.

    Chains start in the stationary law. The eigenfunction is compared after spells of half of the
    relaxation time; its regression on the former value is eigenvalue^spell for each leaf.
    """
    n_leaves, n = 1 << WELL_BITS, len(WELL_Y)
    generator = np.random.default_rng((size.seed, round(beta)))
    start = generator.choice(operator.grid, n_leaves, p=operator.law)
    rows = binary_rows(
        bits_of(np.repeat(np.arange(n_leaves), n), WELL_BITS), np.tile(WELL_Y, n_leaves)
    )
    spell = max(1, round(0.5 / (1.0 - operator.eigenvalue)))
    n_spells = max(2, round(N_SPELLS * size.length))
    recorder = Recorder(n_spells * spell, 0, np.arange(n_leaves) * n)
    sampler = Langevin(WELL_RATE, n / beta, WELL_GAMMA)
    rule, state = FixedStructure(splits(*range(WELL_BITS))), np.repeat(start, n)[None, None]
    raw = run_chain(rows, Welsch(1.0), sampler, rule, recorder, seed=size.seed, state=state).raw
    visited = np.vstack([start, raw[spell - 1 :: spell]])
    value = np.interp(visited, operator.grid, operator.eigenfunction)
    before, after = value[:-1], value[1:]
    square = np.square(before).sum(axis=0)
    kept = float((before * after).sum() / square.sum())
    residual = (before * (after - kept * before)).sum(axis=0)
    error = float(residual.std(ddof=1) * np.sqrt(n_leaves) / square.sum())
    root = kept ** (1.0 / spell)
    return (1.0 - root) / WELL_RATE, error * root / (spell * kept * WELL_RATE)


def well_gaps(size: StudySize) -> WellGaps:
    """Measure the gap of a double well at rising beta."""
    operators = [WellOperator.of(beta) for beta in WELL_BETAS]
    pairs = zip(operators, WELL_BETAS, strict=True)
    measured, error = np.array([_crossings(operator, beta, size) for operator, beta in pairs]).T
    exact = np.array([operator.gap for operator in operators])
    kramers = np.array([kramers_rate(beta) for beta in WELL_BETAS])
    return WellGaps(WELL_BETAS, exact, kramers, measured, error)
