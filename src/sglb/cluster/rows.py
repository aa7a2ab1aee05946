"""The rows of a chain on servers: three questions a tree.

    slopes      the tree of the step before goes out; bounds and the pilot of a sample come back
    sample      rows are drawn; their codes and noisy gradients, as integers, come back
    leaves      the structure goes out, integer sums come back

The search runs where the chain is. What is drawn and summed does not depend on how rows are dealt
to pieces and pieces to servers, so the trees are those of one shard that holds all rows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.cluster.parts import Drawn, Words, added, by_piece, largest, merged, total
from sglb.cluster.server import Advance, Moved, Start
from sglb.leaves import NewtonPath
from sglb.losses import Loss
from sglb.samplers import Move
from sglb.slopes import SlopeBounds
from sglb.structure import Sample, SamplePlan, Structure
from sglb.totals import Totals
from sglb.trace import Trace
from sglb.transition import Transition

if TYPE_CHECKING:
    from sglb.cluster.dealt import DealtRows

Floats = NDArray[np.float64]


class RemoteRows:
    """All rows of a chain, on the servers of `data`.

    A question whose answer was lost with a server is asked again after all others of this step: the
    state is a function of the trace, and answers are functions of the state.
    """

    def __init__(
        self, data: "DealtRows", loss: Loss, trace: Trace, *, newton: bool, number: int
    ) -> None:
        if not trace.keep_trees:
            raise ValueError("rows on servers need the trees: make the trace with keep_trees=True")
        self.data = data
        self.loss = loss
        self.totals: Totals = data.totals
        self.n_outputs = trace.n_outputs
        self._comm, self._number = data.comm, number
        self._start = Start(loss, data.totals, trace, newton)
        self._sample = _core.Sample()
        self._sample.bundles = data.bundles
        self._columns = _core.SearchedColumns(data.n_codes, data.kinds)
        self._n_steps = len(trace)
        self._advance: Advance | None = None
        self._asked: list[tuple[str, tuple[Any, ...]]] = []
        self._bounds: SlopeBounds = 0.0, 0.0
        self._plan: SamplePlan | None = None
        self._pilot: Floats | None = None
        self._epoch = -1
        self._begin(anew=True)
        self.is_stored: bool = any(any(each) for each in self._ask("is_stored"))
        self._asked.clear()

    @property
    def raw(self) -> Floats:
        """Raw scores of all rows, (n_outputs, n_rows): a copy."""
        n_copies = self.totals.n_copies
        answers = self._ask("raw")
        parts = [np.split(raw, n_copies, axis=1) for raw in by_piece(answers)]
        return np.concatenate([part for copy in zip(*parts, strict=True) for part in copy], axis=1)

    def refresh_slopes(self, move: Move, draws: _core.Draws) -> SlopeBounds:
        """Make the slopes those of the current raw scores, and return bounds of them."""
        self._asked.clear()
        # The plan of the last sample is very likely that of the next, and saves a question.
        answers = self._ask("refresh", self._plan, move, draws)
        self._pilot = (
            None if self._plan is None else total([pilot for _, pilot in answers], np.float64)
        )
        self._bounds = largest([bounds for bounds, _ in answers if bounds is not None])
        return self._bounds

    def draw(self, plan: SamplePlan, bounds: SlopeBounds, move: Move, draws: _core.Draws) -> Sample:
        """Draw the sample that a structure is searched on; the next call makes it another one."""
        if plan is not self._plan or self._pilot is None:
            self._plan = plan
            self._pilot = total(self._ask("pilot", plan, move, draws), np.float64)
        parts = self._packed(by_piece(self._ask("draw", plan, bounds, move, draws, self._pilot)))
        self._sample.join(
            [part.codes for part in parts],
            [part.words for part in parts],
            parts[0].packing,
            self._columns,
            self.totals.n_rows,
            self.totals.n_copies,
            draws,
        )
        self._sample.time = move.time_at(draws.step)
        self._pilot = None  # it was that of this step
        return self._sample

    def _packed(self, drawn: Sequence[Drawn]) -> list[Words]:
        """Return rows drawn as integers that are right for their number."""
        counts = [each.n_counted for each in drawn]
        n_in_all = sum(counts)
        parts = [each.words for each in drawn if each.words is not None]
        right = all(part.lowest <= n_in_all <= part.highest for part in parts)
        if right and len(parts) == len(drawn):
            return parts
        before = np.cumsum([0, *counts])[:-1].tolist()
        numbered = dict(zip(self.data.numbers, before, strict=True))
        squares = total(self._ask("squares", numbered, n_in_all), np.int64)
        again: list[Drawn] = by_piece(self._ask("pack", squares))
        return [each.words for each in again if each.words is not None]

    def leaf_sums(
        self,
        structure: Structure,
        bounds: SlopeBounds,
        move: Move,
        draws: _core.Draws,
        path: NewtonPath | None = None,
    ) -> _core.LeafSums:
        """Add up slopes and weights of the rows of each leaf; the next call changes the result."""
        sums_of_all = added(self._ask("leaf_sums", structure, bounds, move, draws, path))
        assert sums_of_all is not None  # there are rows
        return sums_of_all

    def look_ahead(
        self, structure: Structure, path: NewtonPath, move: Move, draws: _core.Draws
    ) -> SlopeBounds:
        """Take the slopes where a path has come to, and return bounds of them.

        A loss that is evaluated on demand has the same bounds everywhere.
        """
        if not self.is_stored:
            return self._bounds
        answers = self._ask("look_ahead", structure, path, move, draws)
        return largest([bounds for bounds in answers if bounds is not None])

    def advance(self, structure: Structure, values: Floats, transition: Transition) -> None:
        """Move the state: S <- C S + b (x) tree.

        The servers are told with the next question.
        """
        if self._advance is not None:
            self._ask("move")
        self._asked.clear()
        self._advance = Advance(self._n_steps, structure, values, transition)
        self._n_steps += 1

    def losses(self, constant: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the losses and weights of rows that are enough to estimate a mean of."""
        rows = self.loss.representative_rows(self.totals.n_rows_with_copies)
        answers = self._ask("losses", constant, rows)
        losses, weights = zip(*(piece for answer in answers for piece in answer), strict=True)
        return np.concatenate(losses), np.concatenate(weights)

    def energy(self) -> sums.ExactSum:
        """Return the weighted sum of the loss, with all digits."""
        return merged(self._ask("energy"))

    def squared_residuals(self, traces: Sequence[Trace] = ()) -> sums.ExactSum:
        """Return the weighted sum of (y - prediction)^2 at the current state or at the mean of the
        last states of other traces.
        """
        return merged(self._ask("squared_residuals", list(traces)))

    def is_finite(self) -> bool:
        """Whether all raw scores are."""
        return all(self._ask("is_finite"))

    def _ask(self, question: str, *arguments: Any) -> list[Any]:
        """Return the answers of all servers to a question about this chain."""
        self._asked.append((question, arguments))
        while True:
            try:
                if self._epoch != self._comm.epoch:
                    self._begin()
                    for earlier, details in self._asked[:-1]:
                        self._comm.ask("ask", self._number, None, earlier, *details)
                answers = self._comm.ask("ask", self._number, self._advance, question, *arguments)
            except Moved:
                self._epoch = -1
                continue
            self._advance = None
            return answers

    def _begin(self, *, anew: bool = False) -> None:
        """Let the servers bring their pieces to where the trace has led."""
        while True:
            epoch = self._comm.epoch
            try:
                self.data.catch_up()
                self._comm.ask("start", self._number, self._start, anew)
            except Moved:
                continue
            self._epoch = epoch
            return
