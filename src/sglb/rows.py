"""What a chain asks of its rows, wherever they are."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.leaves import NewtonPath
from sglb.losses import Loss
from sglb.samplers import Move
from sglb.slopes import SlopeBounds
from sglb.structure import Sample, SamplePlan, Structure
from sglb.totals import Totals
from sglb.trace import Trace
from sglb.transition import Transition

Floats = NDArray[np.float64]


class Rows(Protocol):
    """All rows of a chain and their state: a shard of all (`shard`), or servers (`cluster`)."""

    @property
    def loss(self) -> Loss:
        """The loss of the chain."""
        ...

    @property
    def totals(self) -> Totals:
        """What is known of all rows."""
        ...

    @property
    def raw(self) -> Floats:
        """Raw scores, (n_outputs, n_rows)."""
        ...

    @property
    def n_outputs(self) -> int:
        """Raw scores of a row."""
        ...

    @property
    def is_stored(self) -> bool:
        """Whether slopes are kept in arrays."""
        ...

    def refresh_slopes(self, move: Move, draws: _core.Draws) -> SlopeBounds:
        """Compute the slopes at the current raw scores, and return bounds of them."""
        ...

    def draw(self, plan: SamplePlan, bounds: SlopeBounds, move: Move, draws: _core.Draws) -> Sample:
        """Draw the sample that a structure is searched on; the next call overwrites it."""
        ...

    def leaf_sums(
        self,
        structure: Structure,
        bounds: SlopeBounds,
        move: Move,
        draws: _core.Draws,
        path: NewtonPath | None = None,
    ) -> _core.LeafSums:
        """Add up slopes and weights of the rows of each leaf; the next call changes the result."""
        ...

    def look_ahead(
        self, structure: Structure, path: NewtonPath, move: Move, draws: _core.Draws
    ) -> SlopeBounds:
        """Take the slopes where a path has come to, and return bounds of them."""
        ...

    def advance(self, structure: Structure, values: Floats, transition: Transition) -> None:
        """Move the state: S <- C S + b (x) tree."""
        ...

    def losses(self, constant: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the losses and weights of rows that are enough to estimate a mean of.

        At the current raw scores, or at a constant one (n_outputs,).
        """
        ...

    def energy(self) -> sums.ExactSum:
        """Return the weighted sum of the loss, with all digits."""
        ...

    def squared_residuals(self, traces: Sequence[Trace] = ()) -> sums.ExactSum:
        """Return the weighted sum of (y - prediction)^2 at the current state or at the mean of the
        last states of other traces.
        """
        ...

    def is_finite(self) -> bool:
        """Whether all raw scores are finite."""
        ...
