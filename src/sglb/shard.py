"""The rows of a chain: everything that touches rows is a method of a shard.

A shard holds some rows of the training data: their codes, targets, weights, and the chain's state
there. It knows the number of its first row in the whole table and totals over all rows, and answers
in integers and maxima, which do not depend on order. So one shard of all rows and several that hold
a part each (`cluster`) give the same model, bit for bit.
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.leaves import NewtonPath
from sglb.losses import Loss
from sglb.losses.shapes import user_shape
from sglb.row_numbers import RowNumbers
from sglb.samplers import Move
from sglb.slopes import SlopeBounds, SlopesAt
from sglb.structure import Sample, SamplePlan, Structure
from sglb.totals import Totals
from sglb.trace import Trace, mean_raw
from sglb.training_set import TrainingSet
from sglb.transition import Transition
from sglb.weights import RowSelection

Floats = NDArray[np.float64]

# Rows whose residuals are in memory at a time.
BLOCK_ROWS = 1 << 20


class Shard:
    """Some rows, their slopes and their state (d, n_outputs, n_rows).

    The first part of the state holds raw scores: `offset`, which never moves, plus the model.
    """

    def __init__(
        self,
        data: TrainingSet,
        loss: Loss,
        state: Floats,
        offset: Floats,
        *,
        newton: bool,
        first_row: int = 0,
        totals: Totals | None = None,
        n_threads: int = 1,
    ) -> None:
        self.data = data
        self.loss = loss
        self.state = state
        self.offset = offset
        self.raw: Floats = state[0]
        totals = Totals.of([data]) if totals is None else totals
        self.totals = totals
        numbers = RowNumbers(first_row, totals.n_rows, totals.n_copies)
        self._target = data.target.numbered(numbers)
        self._core = _core.Shard(
            data.code_columns,
            data.code_rows,
            data.n_codes,
            data.kinds,
            totals.core_weights(data.target),
            numbers,
            n_threads,
        )
        self._sums = _core.LeafSums()
        self._sample = _core.Sample()
        self._sample.bundles = data.bundles
        self._here = SlopesAt(
            self.raw, self._target, loss, totals, newton=newton, n_threads=n_threads
        )
        self._ahead: SlopesAt | None = None
        self._newton, self._n_threads = newton, n_threads
        # Rows of a copy weigh 1 / n_copies of a row, and stand for the whole data in a search.
        self._root_copies = math.sqrt(totals.n_copies)

    @classmethod
    def start(
        cls,
        data: TrainingSet,
        loss: Loss,
        trace: Trace,
        *,
        newton: bool,
        n_threads: int = 1,
        state: Floats | None = None,
    ) -> Self:
        """Return a shard of all rows, in the state that a trace leads to or in a stated one."""
        if state is None:
            state = trace.replay(data.code_columns, n_threads)
        return cls(data, loss, state, trace.offset, newton=newton, n_threads=n_threads)

    @property
    def sample(self) -> Sample:
        """The part of a sample that is being drawn here."""
        return self._sample

    @property
    def n_outputs(self) -> int:
        """Raw scores of a row."""
        return len(self.raw)

    @property
    def is_stored(self) -> bool:
        """Whether slopes are kept in arrays."""
        return self._here.is_stored

    def refresh_slopes(self, move: Move, draws: _core.Draws) -> SlopeBounds:
        """Compute the slopes at the current raw scores, and return bounds of them."""
        return self._here.update(move, draws)

    def draw(self, plan: SamplePlan, bounds: SlopeBounds, move: Move, draws: _core.Draws) -> Sample:
        """Draw the sample that a structure is searched on; the next call makes it another one."""
        sample, noise = self._sample, move.structure_noise / self._root_copies
        sample.time = move.time_at(draws.step)
        rate = self._here.row_rate(move)
        sample.draw(self._core, self._here.slopes, plan, noise, rate, bounds, draws)
        return sample

    def begin_draw(
        self, plan: SamplePlan, bounds: SlopeBounds, move: Move, draws: _core.Draws
    ) -> Sample:
        """Begin to draw this shard's part of a sample."""
        sample, noise = self._sample, move.structure_noise / self._root_copies
        rate = self._here.row_rate(move)
        sample.begin(self._core, self._here.slopes, plan, noise, rate, bounds, draws)
        return sample

    def leaf_sums(
        self,
        structure: Structure,
        bounds: SlopeBounds,
        move: Move,
        draws: _core.Draws,
        path: NewtonPath | None = None,
    ) -> _core.LeafSums:
        """Add up slopes and weights of the rows of each leaf; the next call changes the result."""
        slopes = self._here.slopes
        if path is not None and path.n_steps and self._ahead is not None:
            slopes = self._ahead.slopes
        self._sums.sum(
            self._core,
            structure,
            slopes,
            self._here.row_rate(move),
            bounds,
            draws,
            None if path is None else path.core,
        )
        return self._sums

    def look_ahead(
        self, structure: Structure, path: NewtonPath, move: Move, draws: _core.Draws
    ) -> SlopeBounds:
        """Take the slopes where a path has come to, and return bounds of them.

        A loss that is evaluated on demand needs no preparation.
        """
        if not self.is_stored:
            return self._here.update(move, draws)
        if self._ahead is None:
            self._ahead = SlopesAt(
                np.empty_like(self.raw),
                self._target,
                self.loss,
                self.totals,
                newton=self._newton,
                n_threads=self._n_threads,
            )
        _core.look_ahead(self._core, structure, path.core, self.raw, self._ahead.raw)
        return self._ahead.update(move, draws)

    def energy(self) -> sums.ExactSum:
        """Return the weighted sum of the loss, with all digits: those of shards can be merged."""
        energy = sums.ExactSum()
        target = self.data.target
        losses = self.loss.losses(target, user_shape(self.raw))
        energy.add(np.ascontiguousarray(losses, dtype=np.float64), target.kernel_weight)
        return energy

    def squared_residuals(self, traces: Sequence[Trace] = ()) -> sums.ExactSum:
        """Return the weighted sum of (y - prediction)^2 at the current state or at the mean of the
        last states of other traces; infinite where y is so large that a square is.
        """
        raw = self.raw
        if traces:
            columns = self.data.code_columns
            raw = mean_raw([trace.replay(columns, self._n_threads) for trace in traces])
        squares, target = sums.ExactSum(), self.data.target
        for begin in range(0, len(target), BLOCK_ROWS):
            rows = slice(begin, begin + BLOCK_ROWS)
            part = target.take(rows)
            residual = part.values - self.loss.link(user_shape(raw[:, rows]))
            with np.errstate(over="ignore"):
                squares.add(np.square(residual), part.kernel_weight)
        return squares

    def losses(
        self, constant: Floats | None = None, rows: RowSelection | None = None
    ) -> tuple[Floats, Floats]:
        """Return the losses and weights of rows, those that are enough to estimate a mean of.

        At the current raw scores, or at a constant one (n_outputs,).
        """
        if rows is None:
            rows = self.loss.representative_rows(self.data.n_rows)
        raw = self.raw[:, rows]
        if constant is not None:
            raw = np.repeat(constant[:, None], raw.shape[1], axis=1)
        target = self.data.target.take(rows)
        return self.loss.losses(target, user_shape(raw)), target.weight

    def is_finite(self) -> bool:
        """Whether all raw scores are."""
        return bool(np.isfinite(self.raw).all())

    def advance(self, structure: Structure, values: Floats, transition: Transition) -> None:
        """Move the state: S <- C S + b (x) tree."""
        _core.advance(self._core, structure, values, transition.core, self.offset, self.state)
