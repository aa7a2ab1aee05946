"""One step in plain sight: stochastic gradient Langevin boosting.

Ustimenko & Prokhorenkova, 2021, Algorithm 2:

    g       gradient of the loss at the current f, estimated from a sample of rows if wanted
    s       structure drawn from p(s | g + sigma zeta')                  zeta' ~ N(0, I)
    theta   -eps * mean over each leaf of s of (g + sigma zeta)          zeta  ~ N(0, I)
    f       (1 - gamma eps) f + tree(s, theta)

The gradient is taken at the unshrunk f; shrink and step happen together. A sampler says what eps,
sigma, gamma and the sample are at each step, a structure rule is p.
"""

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.growth import LOOK_EVERY, GrowthCheck
from sglb.leaves import LeafRule
from sglb.replay import Replay
from sglb.rows import Rows
from sglb.samplers import Move, Sampler
from sglb.structure import Structure, StructureRule
from sglb.trace import Trace

Floats = NDArray[np.float64]


# What a step leaves behind: the tree, structure and leaf values, and the move.
Step = tuple[Structure, Floats, Move]


class Chain:
    """A chain in mid-training: rows and their state, rules, and the trace of its steps.

    It begins with the steps of its `replay`, if that has any.
    """

    def __init__(
        self,
        rows: Rows,
        sampler: Sampler,
        rule: StructureRule,
        leaves: LeafRule,
        trace: Trace,
        *,
        seed: int,
    ) -> None:
        self.rows = rows
        self.sampler = sampler
        self.rule = rule
        self.leaves = leaves.for_loss(rows.loss)
        self.trace = trace
        self.seed = seed
        self.replay = Replay()
        self._plan = rule.plan(rows.totals.n_rows, rows.n_outputs)
        self._growth = GrowthCheck(rows, trace)

    def step(self) -> Step:
        """Take one step of Algorithm 2.

        Steps count from the chain's beginning, so that a chain which is continued draws the noise
        it would have drawn without the break.
        """
        step, rows, leaves = len(self.trace), self.rows, self.leaves
        if step < self.replay.n_repeated:
            return self._repeat(step)
        move, draws = self.sampler.move(step), _core.Draws(self.seed, step)
        bounds = rows.refresh_slopes(move, draws)
        sample = rows.draw(self._plan, bounds, move, draws)
        structure = self.rule.search(sample)
        path, first_sums = None, None
        if leaves.steps > 1:
            path, first_sums, bounds = leaves.approach(rows, structure, bounds, move, draws)
        sums = rows.leaf_sums(structure, bounds, move, draws, path)
        values = leaves.values(sums, move, draws, path)
        rows.advance(structure, values, move.transition)
        self.trace.append(structure, values, move, sums, leaves.l2, first_sums)
        if step < self.replay.n_steps:
            self.replay.check(self.trace)
        if step % LOOK_EVERY == 0:
            self._growth.check(values, move, step + 1)
        return structure, values, move

    def _repeat(self, step: int) -> Step:
        """Take a step that an earlier run has taken, from the same state to the same state."""
        replay, move = self.replay, self.sampler.move(step)
        assert replay.trace is not None  # there are steps to repeat
        structure, values = replay.step(step, move.transition)
        self.rows.advance(structure, values, move.transition)
        self.trace.append_from(replay.trace)
        if step % LOOK_EVERY == 0:
            self._growth.check(values, move, step + 1)
        return structure, values, move
