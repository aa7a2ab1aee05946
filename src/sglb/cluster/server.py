"""What holds rows: pieces of the table, and the state of every chain there."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.cluster.parts import Drawn, added, draw_part, largest, merged, pack_part, total
from sglb.cluster.raw import Piece, RawPiece, digest
from sglb.errors import NonFiniteGradient
from sglb.leaves import NewtonPath
from sglb.losses import Loss
from sglb.row_numbers import RowNumbers
from sglb.samplers import Move
from sglb.shard import Shard
from sglb.slopes import SlopeBounds
from sglb.structure import SamplePlan, Structure
from sglb.totals import Totals
from sglb.trace import Trace
from sglb.transition import Transition
from sglb.weights import RowSelection

Floats = NDArray[np.float64]


# What a chain asks in each step: work on the rows that does not grow with trees or columns. All
# other questions read, code, send or repeat whole pieces.
OF_A_STEP = frozenset(
    {
        "draw", "is_finite", "is_stored", "leaf_sums", "look_ahead", "losses", "move", "pack",
        "pilot", "refresh", "squares",
    }
)  # fmt: skip


def is_of_a_step(question: str, arguments: Sequence[Any]) -> bool:
    """Whether a question to a server is one that each step asks, and takes no longer than that."""
    return question == "ask" and arguments[2] in OF_A_STEP


class Moved(Exception):  # noqa: N818  # nothing is wrong: the question is asked once more
    """Pieces have moved to other servers, which know nothing yet of the chains on them."""


@dataclass(frozen=True)
class Start:
    """What the rows of a chain start from: the state that its trace leads to."""

    loss: Loss
    totals: Totals
    trace: Trace
    newton: bool


class Advance(NamedTuple):
    """How the state moved in a step, which counts from 0."""

    step: int
    structure: Structure
    values: Floats
    transition: Transition


class ServedPiece:
    """A piece as a chain knows it, after `n_steps` steps."""

    def __init__(self, piece: Piece, start: Start, n_threads: int) -> None:
        data, trace = piece.data, start.trace
        self.shard = Shard(
            data,
            start.loss,
            trace.replay(data.code_columns, n_threads),
            trace.offset,
            newton=start.newton,
            first_row=piece.first_row,
            totals=start.totals,
            n_threads=n_threads,
        )
        self.numbers = RowNumbers(piece.first_row, start.totals.n_rows, start.totals.n_copies)
        self.n_steps = len(trace)

    def advance(self, by: Advance) -> None:
        """Move the state, unless it has been moved."""
        if self.n_steps == by.step:
            self.shard.advance(by.structure, by.values, by.transition)
            self.n_steps += 1

    def refresh(self, move: Move, draws: _core.Draws) -> SlopeBounds:
        """Make the slopes those of the current raw scores, and return bounds of them."""
        with self._numbering():
            return self.shard.refresh_slopes(move, draws)

    def look_ahead(
        self, structure: Structure, path: NewtonPath, move: Move, draws: _core.Draws
    ) -> SlopeBounds:
        """Take the slopes where a path has come to, and return bounds of them."""
        with self._numbering():
            return self.shard.look_ahead(structure, path, move, draws)

    def losses(self, constant: Floats | None, rows: RowSelection) -> tuple[Floats, Floats]:
        """Return the losses and weights of those of some rows of the table that are here."""
        if isinstance(rows, slice):  # all
            return self.shard.losses(constant, rows)
        local = [
            chosen - first + run.start
            for run, first in self.numbers.runs(self.shard.data.n_rows)
            for chosen in [rows[(rows >= first) & (rows < first + run.stop - run.start)]]
        ]
        return self.shard.losses(constant, np.concatenate(local))

    @contextmanager
    def _numbering(self) -> Iterator[None]:
        """Tell of an error in a row here by the row's number in the table."""
        try:
            yield
        except NonFiniteGradient as error:
            row = int(self.numbers.of(self.shard.data.n_rows)[error.row])
            raise NonFiniteGradient(row, error.output, error.step) from error


class Served:
    """A chain's rows on a server: pieces by number. Its methods are the questions of the chain.

    Answers are sums or maxima over the pieces of this server, or lists by piece.
    """

    def __init__(self) -> None:
        self.pieces: dict[int, ServedPiece] = {}

    @property
    def shards(self) -> list[Shard]:
        """The shard of each piece."""
        return [piece.shard for piece in self.pieces.values()]

    def advance(self, by: Advance) -> None:
        """Move the state of pieces that have not been moved."""
        for piece in self.pieces.values():
            piece.advance(by)

    def move(self) -> None:
        """Answer nothing: a question for the sake of the step that comes with it."""

    def is_stored(self) -> list[bool]:
        """Return whether slopes are kept in arrays, for each piece."""
        return [shard.is_stored for shard in self.shards]

    def refresh(
        self, plan: SamplePlan | None, move: Move, draws: _core.Draws
    ) -> tuple[SlopeBounds | None, Floats]:
        """Make the slopes those of the current raw scores, and return bounds of them, and the pilot
        of a sample if one is planned.
        """
        bounds = [piece.refresh(move, draws) for piece in self.pieces.values()]
        pilot = np.zeros(0) if plan is None else self.pilot(plan, move, draws)
        return (largest(bounds) if bounds else None), pilot

    def pilot(self, plan: SamplePlan, move: Move, draws: _core.Draws) -> Floats:
        """Return the sum of the pilots of a sample."""
        nothing = 0.0, 0.0  # a pilot needs no bounds
        return total(
            [shard.begin_draw(plan, nothing, move, draws).pilot() for shard in self.shards],
            np.float64,
        )

    def draw(
        self,
        plan: SamplePlan,
        bounds: SlopeBounds,
        move: Move,
        draws: _core.Draws,
        pilot: Floats,
    ) -> list[tuple[int, Drawn]]:
        """Draw rows, and pack them for as many as are planned."""
        return [
            (number, draw_part(piece.shard.begin_draw(plan, bounds, move, draws), pilot))
            for number, piece in self.pieces.items()
        ]

    def squares(self, before: Mapping[int, int], n_in_all: int) -> NDArray[np.int64]:
        """Return the squares of the outputs over the rows drawn; `before` by piece."""
        return total(
            [
                piece.shard.sample.squares(before[number], n_in_all)
                for number, piece in self.pieces.items()
            ],
            np.int64,
        )

    def pack(self, squares: NDArray[np.int64]) -> list[tuple[int, Drawn]]:
        """Pack the rows drawn once more, for the number that there are."""
        return [
            (number, pack_part(piece.shard.sample, squares))
            for number, piece in self.pieces.items()
        ]

    def leaf_sums(
        self,
        structure: Structure,
        bounds: SlopeBounds,
        move: Move,
        draws: _core.Draws,
        path: NewtonPath | None,
    ) -> _core.LeafSums | None:
        """Add up slopes and weights of the rows of each leaf."""
        return added(
            [shard.leaf_sums(structure, bounds, move, draws, path) for shard in self.shards]
        )

    def look_ahead(
        self, structure: Structure, path: NewtonPath, move: Move, draws: _core.Draws
    ) -> SlopeBounds | None:
        """Take the slopes where a path has come to, and return bounds of them."""
        bounds = [piece.look_ahead(structure, path, move, draws) for piece in self.pieces.values()]
        return largest(bounds) if bounds else None

    def raw(self) -> list[tuple[int, Floats]]:
        """Return the raw scores by piece."""
        return [(number, piece.shard.raw) for number, piece in self.pieces.items()]

    def is_finite(self) -> bool:
        """Whether all raw scores here are."""
        return all(shard.is_finite() for shard in self.shards)

    def losses(self, constant: Floats | None, rows: RowSelection) -> list[tuple[Floats, Floats]]:
        """Return the losses and weights of some rows of the table."""
        return [piece.losses(constant, rows) for piece in self.pieces.values()]

    def energy(self) -> sums.ExactSum:
        """Return the weighted sum of the loss, with all digits."""
        return merged([shard.energy() for shard in self.shards])

    def squared_residuals(self, traces: Sequence[Trace]) -> sums.ExactSum:
        """Return the weighted sum of squared residuals, with all digits."""
        return merged([shard.squared_residuals(traces) for shard in self.shards])


class Server:
    """Pieces of a table by their number, and the chains on them, by a number of theirs."""

    def __init__(self, pieces: Mapping[int, Piece] | None = None, n_threads: int = 1) -> None:
        self.pieces = dict(pieces or {})
        self.n_threads = n_threads
        self._raw: dict[int, RawPiece] = {}
        self._chains: dict[int, Served] = {}

    @property
    def numbers(self) -> set[int]:
        """Numbers of the pieces here."""
        return self.pieces.keys() | self._raw.keys()

    def hold(self, pieces: Mapping[int, Piece]) -> None:
        """Hold more pieces."""
        self.pieces |= pieces

    def read(self, tables: Mapping[int, Any]) -> None:
        """Hold more pieces, as arrays or frames."""
        self._raw |= {number: RawPiece(table, self.n_threads) for number, table in tables.items()}

    def ask_pieces(
        self,
        question: str,
        arguments: Sequence[Any],
        options: Mapping[str, Any],
        shares: Mapping[int, Any] | None = None,
    ) -> list[tuple[int, Any]]:
        """Return by piece what each answers as it was read; `shares` are arguments by piece."""
        answers = []
        for number, raw in self._raw.items():
            share = () if shares is None else (shares[number],)
            answers.append((number, getattr(raw, question)(*arguments, *share, **options)))
            if raw.piece is not None:
                self.pieces[number] = raw.piece
        return answers

    def codes(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """Return the codes of each piece, (n_features, n_rows)."""
        self._require(self.pieces)
        return [(number, piece.data.code_columns) for number, piece in self.pieces.items()]

    def digests(self) -> list[tuple[int, str]]:
        """Return a digest of the codes of each piece."""
        return [(number, digest(codes)) for number, codes in self.codes()]

    def start(self, chain: int, start: Start, anew: bool) -> None:
        """Begin to serve a chain; one that is served already on new pieces only, unless `anew`."""
        if anew or chain not in self._chains:
            self._chains[chain] = Served()
        served = self._chains[chain].pieces
        for number in sorted(self.pieces.keys() - served.keys()):
            served[number] = ServedPiece(self.pieces[number], start, self.n_threads)

    def ask(self, chain: int, advance: Advance | None, question: str, *arguments: Any) -> Any:
        """Move a chain, if it has not been moved, and answer a question about it."""
        served = self._chains.get(chain, Served())
        self._require(served.pieces)
        if advance is not None:
            served.advance(advance)
        return getattr(served, question)(*arguments)

    def _require(self, pieces: Mapping[int, Any]) -> None:
        """Raise Moved if these are not all pieces: more have come since, for another chain."""
        if pieces.keys() != self.numbers:
            raise Moved
