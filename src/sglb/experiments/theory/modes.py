"""Modes of a non-convex loss are visited by their Gibbs weights exp(-beta loss)."""

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
from sglb.experiments.theory.problem import WELL_Y, StudySize
from sglb.losses import Welsch
from sglb.samplers import Langevin
from sglb.schedules import last_of

Floats = NDArray[np.float64]

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
    energy = loss + 0.5 * last_of(WELL_SAMPLER.shrink_rate) * grid**2
    weight = np.exp(-n / last_of(WELL_SAMPLER.temperature) * (energy - energy.min()))
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
