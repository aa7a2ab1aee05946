"""A table whose pieces are on servers: what a fit asks of it, by questions to them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb.bins import Bins
from sglb.bundles import Bundles
from sglb.cluster.comm import Comm
from sglb.cluster.dealt import DealtRows, check_whole_queries
from sglb.cluster.raw import Outline, columns_of, label_digest
from sglb.cluster.server import Moved
from sglb.code_layout import MOST_ROWS, CodeLayout
from sglb.held import HeldCodes, HeldNumbers, HeldTable
from sglb.labels import LabelColumn
from sglb.target import Target

Bytes = NDArray[np.uint8]


class Pieces:
    """The pieces of a table, in its order, and the questions that have changed them."""

    def __init__(self, comm: Comm, numbers: list[int], name: str) -> None:
        self.comm = comm
        self.numbers = numbers
        self.name = name
        self._epoch = comm.epoch
        self._changes: list[tuple[_Question, list[Any]]] = []
        outlines: list[Outline] = self.ask("outline", changes=True)
        self.n_rows = [outline.n_rows for outline in outlines]
        self.columns = [outline.columns for outline in outlines]

    @property
    def starts(self) -> list[int]:
        """The number of the first row of each piece, and the number of rows."""
        starts: list[int] = np.cumsum([0, *self.n_rows]).tolist()
        return starts

    def ask(
        self,
        question: str,
        *arguments: Any,
        shares: Mapping[int, Any] | None = None,
        changes: bool = False,
        **options: Any,
    ) -> list[Any]:
        """Return what each piece answers; `shares` are arguments for pieces.

        What changes pieces is asked again of those that have been read anew, and has the same
        answers.
        """
        asked = _Question(question, arguments, shares, options)
        while True:
            try:
                if self._epoch != self.comm.epoch:
                    self._repeat()
                answers = self._send(asked)
            except Moved:
                self._epoch = -1
                continue
            if changes:
                self._changes.append((asked, answers))
            return answers

    def catch_up(self) -> None:
        """Bring pieces that have been read anew to where the others are."""
        self.ask("outline")

    def remember(self, question: str, answers: list[Any], *arguments: Any) -> None:
        """Let pieces that are read anew be asked a question, which had these answers."""
        self._changes.append((_Question(question, arguments, None, {}), answers))

    def _repeat(self) -> None:
        """Ask again what has changed pieces; reject those that are not what they were."""
        epoch = self.comm.epoch
        for change, before in self._changes:
            answers = self._send(change)
            for number, first, again in zip(self.numbers, before, answers, strict=True):
                if first != again:
                    raise ValueError(
                        f"{self.name} {number} of X has other rows than before, now that it was"
                        " read again after its worker was lost; X must have the same rows whenever"
                        " it is read: read it from files, or persist it"
                    )
        self._epoch = epoch

    def _send(self, asked: "_Question") -> list[Any]:
        answers = self.comm.ask(
            "ask_pieces", asked.name, asked.arguments, asked.options, shares=asked.shares
        )
        by_number = dict(pair for answer in answers for pair in answer)
        return [by_number[number] for number in self.numbers]


class _Question(NamedTuple):
    name: str
    arguments: tuple[Any, ...]
    shares: Mapping[int, Any] | None
    options: dict[str, Any]


class Shares(Mapping[int, Any]):
    """Arguments for pieces, made when they are sent: nobody holds all of them."""

    def __init__(self, numbers: Sequence[int], make: Callable[[int], Any]) -> None:
        self._positions = {number: position for position, number in enumerate(numbers)}
        self._make = make

    def __getitem__(self, number: int) -> Any:
        return self._make(self._positions[number])

    def __iter__(self) -> Iterator[int]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


class ClusterTable(HeldTable):
    """A table dealt to servers; `empty` is one without rows, of the same columns.

    `name` is what users call the pieces.
    """

    def __init__(self, comm: Comm, numbers: list[int], empty: Any, name: str = "partition") -> None:
        self.pieces = Pieces(comm, numbers, name)
        self._empty = empty
        for number, columns in zip(numbers, self.pieces.columns, strict=True):
            check_columns(f"{name} {number} of X", columns, columns_of(empty))
        if len(self) > MOST_ROWS:  # before anything is coded
            raise ValueError(f"at most {MOST_ROWS} rows can be trained on, not {len(self)}")

    def __len__(self) -> int:
        return self.pieces.starts[-1]

    @property
    def empty(self) -> Any:
        """An array or a frame without rows."""
        return self._empty

    def held_labels(self, column: int) -> LabelColumn:
        """Return the labels of a categorical column of all rows."""
        parts: list[LabelColumn] = self.pieces.ask("labels", column)
        self.pieces.remember("label_digest", [label_digest(part) for part in parts], column)
        index, numbers = [], dict[str | None, int]()
        for part in parts:
            known = [numbers.setdefault(label, len(numbers)) for label in part.labels]
            index.append(np.array([*known, -1], dtype=np.int32)[part.index])
        return LabelColumn(np.concatenate(index), list(numbers))

    def held_numbers(self, columns: list[int]) -> "ClusterNumbers":
        """Return numeric columns."""
        pieces = self.pieces
        shares = dict(zip(pieces.numbers, pieces.starts, strict=False))
        dtypes = pieces.ask("choose", columns, shares=shares, changes=True)
        kept = np.ones(len(self), dtype=np.bool_)
        return ClusterNumbers(pieces, np.result_type(*dtypes), len(columns), kept)


class ClusterNumbers(HeldNumbers):
    """Numeric columns on servers, of the rows that are `kept` there."""

    def __init__(
        self, pieces: Pieces, dtype: np.dtype[Any], n_columns: int, kept: NDArray[np.bool_]
    ) -> None:
        self.pieces, self.dtype = pieces, dtype
        self._n_columns, self._kept = n_columns, kept
        self._n_rows = [int(np.count_nonzero(part)) for part in self._parts()]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return sum(self._n_rows), self._n_columns

    def __len__(self) -> int:
        return sum(self._n_rows)

    def sample(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the values of rows, whose numbers never fall."""
        shares = cut(rows, self.pieces, self._n_rows)
        return np.concatenate(self.pieces.ask("sample", self.dtype, shares=shares))

    def take(self, kept: NDArray[np.bool_]) -> "ClusterNumbers":
        """Return the rows of a mask; the servers drop the others."""
        of_all = self._kept.copy()
        of_all[of_all] = kept
        taken = ClusterNumbers(self.pieces, self.dtype, self._n_columns, of_all)
        shares = dict(zip(self.pieces.numbers, taken._parts(), strict=True))
        self.pieces.ask("keep", shares=shares, changes=True)
        return taken

    def encode(self, bins: Bins, n_threads: int) -> "ClusterCodes":
        """Let the servers make codes of all rows."""
        self.pieces.ask("encode", bins, self.dtype, changes=True)
        return ClusterCodes(self.pieces, self._n_columns, self._n_rows)

    def _parts(self) -> list[NDArray[np.bool_]]:
        """Return which rows of each piece are kept."""
        return np.split(self._kept, self.pieces.starts[1:-1])


class ClusterCodes(HeldCodes):
    """Codes on servers, of one copy of the rows or several."""

    def __init__(
        self, pieces: Pieces, n_features: int, n_rows: list[int], n_copies: int = 1
    ) -> None:
        self.pieces = pieces
        self._n_features, self._n_rows, self._n_copies = n_features, n_rows, n_copies

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of features and of rows, copies included."""
        return self._n_features, self._n_copies * sum(self._n_rows)

    def sample(self, rows: NDArray[np.intp]) -> Bytes:
        """Return the codes of some rows of the first copy, rising numbers."""
        shares = cut(rows, self.pieces, self._n_rows)
        return np.concatenate(self.pieces.ask("codes_of", shares=shares), axis=1)

    def gather(self) -> Bytes:
        """Return all codes."""
        copies = [np.split(codes, self._n_copies, axis=1) for codes in self.pieces.ask("codes")]
        return np.concatenate([part for copy in zip(*copies, strict=True) for part in copy], axis=1)

    def extended(self, n_copies: int, columns: Bytes) -> "ClusterCodes":
        """Return the codes copy after copy, and after them further features."""
        ends = np.cumsum(self._n_rows)[:-1]
        copies = [np.split(copy, ends, axis=1) for copy in np.split(columns, n_copies, axis=1)]
        shares = Shares(
            self.pieces.numbers,
            lambda position: np.concatenate([copy[position] for copy in copies], axis=1),
        )
        self.pieces.ask("extend", n_copies, shares=shares, changes=True)
        return ClusterCodes(self.pieces, self._n_features + len(columns), self._n_rows, n_copies)

    def training_set(
        self,
        n_codes: NDArray[np.int32],
        is_level: NDArray[np.bool_],
        target: Target,
        n_copies: int,
        n_threads: int,
    ) -> DealtRows:
        """Let the servers lay out the codes for a chain; `target` is of all copies."""
        pieces = self.pieces
        shares = self._targets(target, n_copies)
        counts, *others = pieces.ask("counts", n_codes)
        for other in others:
            counts = counts.plus(other)
        layout = CodeLayout.decide(
            n_codes,
            counts,
            lambda two, counts: Bundles.find_in_parts(
                two, counts.n_twos, counts.n_rows, self._meetings
            ),
            is_level=is_level,
        )
        pieces.ask("lay_out", layout, shares=shares, changes=True)
        return DealtRows(
            pieces.comm,
            pieces.numbers,
            layout.n_codes,
            layout.kinds,
            layout.bundles,
            target,
            n_copies,
            pieces.catch_up,
        )

    def _targets(self, target: Target, n_copies: int) -> Shares:
        """Return the target of each piece, and the number of its first row."""
        starts = np.cumsum([0, *self._n_rows])
        offsets = starts[-1] * np.arange(n_copies)[:, None]

        def rows_of(position: int) -> NDArray[np.int64]:
            rows: NDArray[np.int64] = np.arange(starts[position], starts[position + 1]) + offsets
            return rows.ravel()

        if len(target.groups):
            parts = [target.groups[rows_of(position)] for position in range(len(self._n_rows))]
            check_whole_queries(parts, self.pieces.name)
        return Shares(
            self.pieces.numbers,
            lambda position: (target.take(rows_of(position)), int(starts[position])),
        )

    def _meetings(
        self, groups: Sequence[Sequence[int]], on: Bytes, *, first_rows: bool
    ) -> NDArray[np.intp]:
        return np.concatenate(self.pieces.ask("meetings", groups, on, first_rows=first_rows))


def check_columns(name: str, columns: list[str] | int, expected: list[str] | int) -> None:
    """Reject a piece, called by a name, whose columns are not those of the table in its order."""
    if columns == expected:
        return
    if isinstance(columns, int) or isinstance(expected, int):
        raise ValueError(f"the columns of {name} are {columns}, those of the table {expected}")
    odd = [column for column in columns if column not in expected]
    missing = [column for column in expected if column not in columns]
    if odd or missing:
        raise ValueError(f"{name} has other columns than the table: {odd} and not {missing}")
    raise ValueError(
        f"{name} has the columns of the table in another order: {columns[:20]} instead of"
        f" {expected[:20]}; its values would be taken for those of other columns"
    )


def cut(rows: NDArray[Any], pieces: Pieces, n_rows: list[int]) -> dict[int, NDArray[Any]]:
    """Return, for each piece, those of the rows that lie there, counted from its first."""
    starts = np.cumsum([0, *n_rows])
    ends = np.searchsorted(rows, starts)
    return {
        number: rows[begin:end] - start
        for number, start, begin, end in zip(
            pieces.numbers, starts[:-1], ends[:-1], ends[1:], strict=True
        )
    }
