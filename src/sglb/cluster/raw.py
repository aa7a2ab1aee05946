"""A piece of a table where it lies: as it was read, then as codes, then ready for chains."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb.bins import Bins
from sglb.bundles import meetings
from sglb.code_layout import CodeCounts, CodeLayout
from sglb.columns import Columns
from sglb.frame import (
    as_frame,
    as_readable,
    read_label_column,
    read_number_columns,
    reject_infinity,
)
from sglb.labels import LabelColumn, label_numbers
from sglb.target import Target
from sglb.training_set import TrainingSet

Bytes = NDArray[np.uint8]


class Piece(NamedTuple):
    """Rows of a table that follow one another, and the number of the first."""

    data: TrainingSet
    first_row: int


class Outline(NamedTuple):
    """What is known of rows before they are read: their number, and the names of the columns, or
    how many there are in an array.
    """

    n_rows: int
    columns: list[str] | int


class RawPiece:
    """Rows of an array or a frame of any library. Its methods are the questions of the table.

    Repeating a question changes nothing and gives the same answer. So a piece that has to be read
    again is restored by repeating the questions that changed it, and their answers show that it has
    the same rows.
    """

    def __init__(self, table: Any, n_threads: int = 1) -> None:
        frame = as_frame(table)
        self._table: Any = np.asarray(table) if frame is None else frame
        self._numbers: NDArray[Any] | Columns = np.empty((len(self._table), 0))
        self._n_threads = n_threads
        self._outline = Outline(len(self._table), _columns(frame, self._table))
        self._label_digests: dict[int, str] = {}
        self._kept = np.ones(len(self._table), dtype=np.bool_)
        self._codes: Bytes | None = None
        self._dtype, self._digest = np.dtype(np.float64), ""
        self._n_copies, self._more = 1, np.empty((0, 0), dtype=np.uint8)
        self.piece: Piece | None = None

    def outline(self) -> "Outline":
        """Return the number of rows, also of those that are dropped later, and the columns."""
        return self._outline

    def labels(self, column: int) -> LabelColumn:
        """Return the labels of a column."""
        if isinstance(self._table, np.ndarray):
            labels = label_numbers(self._table[:, column])
        else:
            labels = read_label_column(self._table[:, column])
        self._label_digests[column] = label_digest(labels)
        return labels

    def label_digest(self, column: int) -> str:
        """Return a digest of the labels of a column."""
        if column not in self._label_digests:
            self.labels(column)
        return self._label_digests[column]

    def choose(self, columns: list[int], first_row: int) -> np.dtype[Any]:
        """Take these columns for numbers; return their type here.

        An error names a row by its number in the table, where that of the first is `first_row`.
        """
        if self.piece is None:
            self._numbers = self._read(columns, first_row)
            self._dtype = self._numbers.dtype
        return self._dtype

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop the rows outside a mask."""
        self._kept = kept

    def sample(self, dtype: np.dtype[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the values of rows, counted among those that are kept."""
        return self._numbers[np.flatnonzero(self._kept)[rows]].astype(dtype, copy=False)

    def encode(self, bins: Bins, dtype: np.dtype[Any]) -> str:
        """Make codes of the numbers of the rows that are kept; return a digest of them."""
        if self.piece is None:
            values = self._numbers
            if values.dtype != dtype or not self._kept.all():
                values = Columns.of(values).take(self._kept, dtype)
            self._codes = bins.encode(values, self._n_threads)
            self._digest = digest(self._codes)
        return self._digest

    def extend(self, n_copies: int, columns: Bytes) -> None:
        """Repeat the codes, copy after copy, and add those of more features, of all copies."""
        if self.piece is None:
            self._n_copies, self._more = n_copies, columns

    def codes(self) -> Bytes:
        """Return all codes."""
        if self.piece is not None:
            return self.piece.data.code_columns
        assert self._codes is not None  # numbers are encoded first
        codes = np.tile(self._codes, self._n_copies) if self._n_copies > 1 else self._codes
        return np.concatenate([codes, self._more]) if len(self._more) else codes

    def codes_of(self, rows: NDArray[np.intp]) -> Bytes:
        """Return the codes of some rows of the first copy."""
        return np.ascontiguousarray(self.codes()[:, rows])

    def counts(self, n_codes: NDArray[np.int32]) -> CodeCounts:
        """Return what the layout of the codes depends on."""
        return CodeCounts.of(self.codes(), n_codes)

    def meetings(
        self, groups: Sequence[Sequence[int]], on: Bytes, *, first_rows: bool
    ) -> NDArray[np.intp]:
        """Return which pairs of members of each group are on in a row here."""
        return meetings(self.codes(), groups, on, first_rows=first_rows)

    def lay_out(self, layout: CodeLayout, share: tuple[Target, int]) -> None:
        """Lay out the codes for chains, with a target and the number of the first row.

        The values are forgotten.
        """
        if self.piece is not None:
            return
        (target, first_row), codes = share, self.codes()
        rows = layout.rows(codes, self._n_threads)
        data = TrainingSet.laid_out(codes, rows, layout, target, n_copies=self._n_copies)
        self.piece = Piece(data, first_row)
        self._table = self._codes = None
        self._numbers, self._more = np.empty((0, 0)), np.empty((0, 0), dtype=np.uint8)

    def _read(self, columns: list[int], first_row: int) -> NDArray[Any] | Columns:
        """Return columns as numbers."""
        table = self._table
        if not isinstance(table, np.ndarray):
            series = list(table.iter_columns())
            numeric = [series[index] for index in columns]
            values = read_number_columns(table, numeric, self._n_threads, first_row)
            if isinstance(values, Columns):  # it has been checked
                return values
            table = values
        elif len(columns) < table.shape[1]:
            table = table[:, columns]
        values = as_readable(table)
        reject_infinity(values, self._names(columns).__getitem__, self._n_threads, first_row)
        return values

    def _names(self, columns: list[int]) -> list[str]:
        """Return what messages call columns."""
        if isinstance(self._table, np.ndarray):
            return [str(column) for column in columns]
        return [repr(self._table.columns[column]) for column in columns]


def digest(codes: Bytes) -> str:
    """Return a digest of codes."""
    return hashlib.sha256(np.ascontiguousarray(codes).data).hexdigest()


def columns_of(table: Any) -> list[str] | int:
    """Return the names of the columns of a frame, or how many an array has."""
    return _columns(as_frame(table), table)


def _columns(frame: Any, table: Any) -> list[str] | int:
    if frame is not None:
        return list(frame.columns)
    shape = np.shape(table)
    return shape[1] if len(shape) > 1 else 1


def label_digest(column: LabelColumn) -> str:
    """Return a digest of the labels of rows, whatever their numbers."""
    used = {column.labels[index] for index in np.unique(column.index).tolist() if index >= 0}
    names = sorted(name for name in used if name is not None)
    numbers = {name: number for number, name in enumerate(names)}
    by_label = np.array([*(numbers.get(label, -1) for label in column.labels), -1], dtype=np.int32)
    result = hashlib.sha256(by_label[column.index].tobytes())
    result.update("\0".join(names).encode(errors="surrogatepass"))
    return result.hexdigest()
