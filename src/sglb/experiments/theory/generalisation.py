"""Theorem 3 and the corollary: losses on new rows, where every expectation can be computed.

A tree of depth 2 splits two independent binary features, so that d = 4 cells of probability 1/4
have a value each. In cell c y is 1.5 with probability q_c and -1.5 otherwise, the loss is Welsch's:
Lipschitz, smooth, not convex. Under the Gibbs law of N rows the value of a cell with n rows, k of
them 1.5, has the density

    exp(-(beta / N) (k l(z, 1.5) + (n - k) l(z, -1.5) + n gamma z^2 / 2)),

and the mean over data sets is a sum over the binomial laws of n and k.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from sglb.caching import cached_property
from sglb.experiments.small_chains import (
    FixedStructure,
    Recorder,
    binary_rows,
    bits_of,
    run_chain,
    splits,
)
from sglb.experiments.theory.gibbs_line import GibbsLine, bounded_loss
from sglb.experiments.theory.problem import StudySize
from sglb.losses import Welsch
from sglb.samplers import Langevin

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

SIDE = 1.5
SHARES = (0.25, 0.4, 0.6, 0.75)  # q of each cell; cells 2 and 3 mirror cells 1 and 0
N_CELLS = len(SHARES)
GAMMA, RATE = 0.03, 0.05
ROWS = (16, 32, 64, 128, 256)
BETAS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
# At which (N, beta) chains are run.
CHAINS = ((16, 32.0), (64, 32.0), (256, 32.0), (64, 2.0), (64, 8.0), (64, 64.0))
TOTAL_BITS = 13  # rows of all data sets that a chain trains on together
SPREAD_BETA, SPREAD_SETS = 32.0, 4000


@dataclass(frozen=True)
class CellLosses:
    """Mean losses of a cell at N and beta by its number of rows n and of rows above k: on new rows
    (`new`) and on its own rows (`old`), tables (N + 1, N + 1); and the chance of each (n, k).
    """

    n_rows: int
    beta: float
    share: float

    @property
    def optimum(self) -> tuple[float, float]:
        """The value of the smallest expected loss, and this loss."""
        grid = np.linspace(-3.0, 3.0, 6001)
        loss = expected_loss(grid, self.share)
        return float(grid[loss.argmin()]), float(loss.min())

    @cached_property
    def chance(self) -> Floats:
        """The probability of each (n, k); those below 1e-12 are dropped."""
        counts = np.arange(self.n_rows + 1)
        of_n = binom.pmf(counts, self.n_rows, 1.0 / N_CELLS)[:, None]
        chance = of_n * binom.pmf(counts[None], counts[:, None], self.share)
        return np.asarray(np.where(chance > 1e-12, chance, 0.0))

    @cached_property
    def tables(self) -> tuple[Floats, Floats]:
        """Mean losses on new rows and on the cell's own rows; an empty cell has the value 0."""
        size = self.n_rows + 1
        new, old = np.zeros((size, size)), np.zeros((size, size))
        new[0, 0] = expected_loss(np.zeros(1), self.share)[0]
        for n in range(1, size):
            (k,) = np.nonzero(self.chance[n])
            if not len(k):
                continue
            cold = self.beta * n / self.n_rows
            # Both minima are within 2 of zero; then seven deviations of the regulariser's law.
            half = 2.0 + 7.0 / np.sqrt(cold * GAMMA)
            grid = np.linspace(-half, half, 401 + int(20 * half))
            above, below = bounded_loss(grid, SIDE), bounded_loss(grid, -SIDE)
            part = (k / n)[:, None]
            loss = part * above + (1.0 - part) * below
            energy = cold * (loss + 0.5 * GAMMA * grid**2)
            weight = np.exp(-(energy - energy.min(axis=1, keepdims=True)))
            weight /= weight.sum(axis=1, keepdims=True)
            old[n, k] = (weight * loss).sum(axis=1)
            new[n, k] = weight @ expected_loss(grid, self.share)
        return new, old

    def gap(self, n: Whole | Floats, new: Floats, old: Floats) -> Floats:
        """Return the cell's part of the gap: loss on new rows minus loss on its own."""
        return np.asarray(new / N_CELLS - n / self.n_rows * old)

    @property
    def mean_gap(self) -> float:
        """The mean over data sets."""
        n = np.arange(self.n_rows + 1)[:, None]
        return float((self.chance * self.gap(n, *self.tables)).sum())

    @property
    def mean_excess(self) -> float:
        """The mean over data sets of the cell's loss on new rows above the smallest."""
        mean = float((self.chance * self.tables[0]).sum())
        return (mean - self.optimum[1]) / N_CELLS

    @property
    def poincare_gap(self) -> float:
        """The spectral gap of the cell's law if its rows are those of the distribution."""
        grid = np.linspace(-12.0, 12.0, 4001)
        loss = expected_loss(grid, self.share) + 0.5 * GAMMA * grid**2
        return GibbsLine(grid, self.beta / N_CELLS * loss).spectral_gap()


def expected_loss(raw: Floats, share: float) -> Floats:
    """Return the expected loss of new rows of a cell."""
    return share * bounded_loss(raw, SIDE) + (1.0 - share) * bounded_loss(raw, -SIDE)


def cells_at(n_rows: int, beta: float) -> list[CellLosses]:
    """Return the cells; a cell and its mirror image share their tables' mean values."""
    return [CellLosses(n_rows, beta, share) for share in SHARES]


@dataclass(frozen=True)
class Point:
    """The law of N rows at beta: gap and excess loss on new rows, means over data sets, and the
    theorem's rate (beta + d)^2 / (lambda N).
    """

    n_rows: int
    beta: float
    gap: float
    excess: float
    spectral_gap: float

    @property
    def rate(self) -> float:
        """(beta + d)^2 / (lambda N), without the theorem's constant."""
        return (self.beta + N_CELLS) ** 2 / (self.spectral_gap * self.n_rows)


def exact_point(n_rows: int, beta: float) -> Point:
    """Compute the law of N rows at beta."""
    first, second = cells_at(n_rows, beta)[:2]
    return Point(
        n_rows,
        beta,
        2.0 * (first.mean_gap + second.mean_gap),
        2.0 * (first.mean_excess + second.mean_excess),
        min(first.poincare_gap, second.poincare_gap),
    )


@dataclass(frozen=True)
class DataSets:
    """Independent data sets of N rows: numbers of rows and of rows above, (n_sets, n_cells)."""

    n_rows: int
    n: Whole
    k: Whole

    @classmethod
    def draw(cls, n_rows: int, n_sets: int, seed: int) -> "DataSets":
        """Draw data sets from the distribution."""
        generator = np.random.default_rng((seed, n_rows))
        n = generator.multinomial(n_rows, [1.0 / N_CELLS] * N_CELLS, n_sets)
        return cls(n_rows, n, generator.binomial(n, SHARES))

    def gaps(self, cells: list[CellLosses], new: Floats, old: Floats) -> Floats:
        """Return the gap of each data set from the losses of its cells."""
        parts = [cell.gap(self.n[:, c], new[:, c], old[:, c]) for c, cell in enumerate(cells)]
        return np.asarray(np.sum(parts, axis=0))

    def exact_losses(self, cells: list[CellLosses]) -> tuple[Floats, Floats]:
        """Return the losses of each cell under the Gibbs laws, on new rows and on its own."""
        tables = [cell.tables for cell in cells]
        new, old = (
            np.stack([pair[t][self.n[:, c], self.k[:, c]] for c, pair in enumerate(tables)], axis=1)
            for t in (0, 1)
        )
        return new, old

    def losses(self, raw: Floats) -> tuple[Floats, Floats]:
        """Return the losses of values (..., n_sets, n_cells), on new rows and on their own."""
        above, below = bounded_loss(raw, SIDE), bounded_loss(raw, -SIDE)
        share = np.asarray(SHARES)
        part = self.k / np.maximum(self.n, 1)
        return share * above + (1 - share) * below, part * above + (1 - part) * below

    def run(self, exact: Point, size: StudySize) -> tuple[Floats, Floats]:
        """Return the chain's mean losses of each cell: on new rows and on its own."""
        cell = np.repeat(np.arange(self.n.size), self.n.ravel())
        inside = np.arange(len(cell)) - np.repeat(
            np.cumsum(self.n.ravel()) - self.n.ravel(), self.n.ravel()
        )
        y = np.where(inside < self.k.ravel()[cell], SIDE, -SIDE)
        n_bits = int(self.n.size - 1).bit_length()
        rows = binary_rows(bits_of(cell, n_bits), y)
        # A cell forgets its start at the rate (spectral gap) / (beta / 4) a unit of time.
        burn_in = round(6.0 * exact.beta / N_CELLS / exact.spectral_gap / RATE)
        n_steps = size.steps(3_000)
        recorder = Recorder(burn_in + n_steps, burn_in, np.flatnonzero(inside == 0))
        rule = FixedStructure(splits(*range(n_bits)))
        sampler = Langevin(RATE, self.n_rows / exact.beta, GAMMA)
        raw = run_chain(rows, Welsch(1.0), sampler, rule, recorder, seed=size.seed).raw
        new, old = np.zeros(self.n.shape), np.zeros(self.n.shape)
        for part in np.array_split(raw, 20):  # an empty cell keeps the value 0
            state = np.zeros((len(part), self.n.size))
            state[:, self.n.ravel() > 0] = part
            losses = self.losses(state.reshape(len(part), *self.n.shape))
            new += losses[0].sum(axis=0) / n_steps
            old += losses[1].sum(axis=0) / n_steps
        return new, old


@dataclass(frozen=True)
class ChainPoint:
    """A chain's gap and excess loss at (N, beta), with standard errors.

    Both are the exact means plus the chain's mean difference from the Gibbs laws of the data sets
    it was trained on, so that the luck of these data sets is in neither.
    """

    exact: Point
    gap: float
    gap_error: float
    excess: float
    excess_error: float


def measure(exact: Point, size: StudySize) -> ChainPoint:
    """Run the chain on many data sets of N rows."""
    n_sets = (1 << TOTAL_BITS) // exact.n_rows
    sets = DataSets.draw(exact.n_rows, n_sets, size.seed)
    cells = cells_at(exact.n_rows, exact.beta)
    new, old = sets.run(exact, size)
    exact_new, exact_old = sets.exact_losses(cells)
    gap = sets.gaps(cells, new, old) - sets.gaps(cells, exact_new, exact_old)
    excess, root = (new - exact_new).mean(axis=1), np.sqrt(n_sets)
    return ChainPoint(
        exact,
        exact.gap + float(gap.mean()),
        float(gap.std(ddof=1) / root),
        exact.excess + float(excess.mean()),
        float(excess.std(ddof=1) / root),
    )


def spread(n_rows: int, seed: int) -> float:
    """Return the standard deviation of the gap of single data sets at SPREAD_BETA."""
    sets = DataSets.draw(n_rows, SPREAD_SETS, seed)
    cells = cells_at(n_rows, SPREAD_BETA)
    return float(sets.gaps(cells, *sets.exact_losses(cells)).std(ddof=1))


@dataclass(frozen=True)
class Generalisation:
    """Gap and excess loss at every (N, beta), exact, and those of chains at some; the standard
    deviation of the gap between data sets at each N.
    """

    exact: tuple[Point, ...]
    chains: tuple[ChainPoint, ...]
    spreads: Floats

    def of_beta(self, beta: float) -> list[Point]:
        """Return the points of a beta, by N."""
        return [point for point in self.exact if point.beta == beta]

    def of_rows(self, n_rows: int) -> list[Point]:
        """Return the points of an N, by beta."""
        return [point for point in self.exact if point.n_rows == n_rows]


def generalisation(size: StudySize) -> Generalisation:
    """Compute the gap for every N and beta, and measure it for some."""
    exact = {(n, beta): exact_point(n, beta) for n in ROWS for beta in BETAS}
    chains = tuple(measure(exact[pair], size) for pair in CHAINS)
    spreads = np.array([spread(n, size.seed) for n in ROWS])
    return Generalisation(tuple(exact.values()), chains, spreads)
