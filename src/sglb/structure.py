"""The structure of the next tree: s ~ p(s | gradient + sigma * zeta').

A structure is a list of splits. A split keeps the codes low..high of a feature left (bit 0) and
sends the others right (bit 1); bit d of a leaf's number belongs to split d. Two forms occur on
numbers: codes 0..b (a missing value goes left) and 1..b (a missing value goes right).
"""

import math
from typing import Protocol

from sglb import _core
from sglb.elementary import exp
from sglb.samplers import Move
from sglb.training_set import TrainingSet

Structure = _core.Structure


class StructureRule(Protocol):
    """Any p(s | g). The theory wants every structure possible and p(s | c g) = p(s | g), c > 0."""

    def grow(
        self,
        training_set: TrainingSet,
        slopes: _core.Slopes,
        largest: tuple[float, float],
        move: Move,
        seed: int,
        step: int,
    ) -> Structure:
        """Choose a structure for the gradients that `slopes` give, with noise of standard deviation
        `move.noise` per row. `largest` bounds gradients and second derivatives.
        """
        ...


class GreedySearch:
    """Level by level the split with the largest sum over leaves of G^2 / (W + l2).

    With `newton` the sum of weights W is that of weighted second derivatives instead. Runs on about
    `structure_rows` rows and on `structure_outputs` outputs, drawn anew at each step; the leaves
    still use all rows and have all outputs.
    """

    def __init__(
        self,
        max_depth: int = 6,
        *,
        l2: float = 0.0,
        newton: bool = False,
        structure_rows: int | None = None,
        structure_outputs: int | None = None,
        random_strength: float = 0.0,
        n_threads: int = 1,
    ) -> None:
        self.max_depth = max_depth
        self.l2 = l2
        self.newton = newton
        self.structure_rows = structure_rows
        self.structure_outputs = structure_outputs
        self.random_strength = random_strength
        self.n_threads = n_threads
        self._workspace = _core.Workspace()

    def grow(
        self,
        training_set: TrainingSet,
        slopes: _core.Slopes,
        largest: tuple[float, float],
        move: Move,
        seed: int,
        step: int,
    ) -> Structure:
        """Search the structure on noisy gradients of a sample of the rows."""
        n_rows = training_set.n_rows // training_set.n_copies
        first = step % training_set.n_copies * n_rows
        structure = _core.grow(
            self._workspace,
            training_set.core,
            slopes,
            move.subsample,
            # Rows of a copy weigh 1 / n_copies of a row, and stand for the whole data here.
            move.noise / math.sqrt(training_set.n_copies),
            largest,
            self.newton,
            (first, first + n_rows),
            n_rows if self.structure_rows is None else self.structure_rows,
            self.structure_outputs,
            self.max_depth,
            self.l2,
            self._strength(n_rows, move.learning_rate * step),
            seed,
            step,
            self.n_threads,
        )
        bundles = training_set.bundles
        return structure if bundles is None else Structure(*bundles.split(*structure))

    def _strength(self, n_rows: int, time: float) -> float:
        """Score noise fades as the chain's time goes on: times q / (1 + q), q = N exp(-time)."""
        if self.random_strength == 0.0:
            return 0.0
        return self.random_strength / (1.0 + exp(min(time, 700.0)) / max(n_rows, 1))
