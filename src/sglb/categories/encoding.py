"""Encode categorical columns in prediction: look-up tables by level, and nothing of the target.

The features of the trees are, in this order: the numeric columns in table order; the level numbers
of columns with few levels, NaN for a level not seen during training; for each table the statistic
of every target and, for a single column, the level's number of training rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.bins import Bins
from sglb.caching import cached_property
from sglb.categories.one_row import row_reader
from sglb.categories.vocabulary import Vocabulary
from sglb.frame import Features
from sglb.held import HeldCodes, HeldNumbers
from sglb.labels import label_of

Floats = NDArray[np.float64]
Levels = NDArray[np.int32]

# Numbers encoded at a time: 32 MB, whatever the size of the table.
BLOCK_VALUES = 1 << 22


def combined_keys(levels: Levels, n_levels: Sequence[int]) -> NDArray[np.uint64]:
    """Return the key of each row of levels (n_members, n_rows); a row with -1 has none."""
    keys = np.zeros(levels.shape[1], dtype=np.uint64)
    for row, radix in zip(levels, n_levels, strict=True):
        keys = keys * np.uint64(radix) + row.astype(np.uint64)
    return keys


@dataclass(frozen=True)
class LevelTable:
    """Statistics by level of a categorical column or of a combination of columns.

    The last entry is for levels not seen during training: the mean, and a count of zero.
    """

    members: tuple[int, ...]  # indices among the categorical columns
    keys: NDArray[np.uint64] | None  # of the combined levels; None for a single column
    statistics: Floats  # (n_targets, n_levels + 1)
    counts: Floats | None  # (n_levels + 1,)

    @property
    def n_features(self) -> int:
        """Number of features from this table."""
        return len(self.statistics) + (self.counts is not None)

    @cached_property
    def slots(self) -> Levels:
        """The keys in a hash table, at most half full."""
        assert self.keys is not None
        slots = np.empty(2 << len(self.keys).bit_length(), dtype=np.int32)
        _core.place_keys(self.keys, slots)
        return slots

    def find(self, levels: Levels, n_levels: Sequence[int], n_threads: int) -> Levels:
        """Return the entry of each row of levels (n_columns, n_rows), -1 for the last."""
        if self.keys is None:
            single: Levels = levels[self.members[0]]
            return single
        members = levels[list(self.members)]
        keys = combined_keys(members, [n_levels[member] for member in self.members])
        entries = np.empty(levels.shape[1], dtype=np.int32)
        _core.find_keys(keys, self.keys, self.slots, entries, n_threads)
        entries[(members < 0).any(axis=0)] = -1
        return entries


@dataclass(frozen=True)
class Encoding:
    """Categorical columns as prediction encodes them."""

    is_categorical: NDArray[np.bool_]  # (n_columns,)
    vocabularies: tuple[Vocabulary, ...]  # one per categorical column
    level_columns: tuple[int, ...]  # indices among the categorical columns
    tables: tuple[LevelTable, ...]

    @classmethod
    def numeric(cls, n_columns: int) -> "Encoding":
        """Return the encoding of a table whose columns are all numbers: it changes nothing."""
        return cls(np.zeros(n_columns, dtype=np.bool_), (), (), ())

    @property
    def is_numeric(self) -> bool:
        """Whether all columns are numbers."""
        return not self.vocabularies

    @property
    def n_columns(self) -> int:
        """Number of columns of the caller's table."""
        return len(self.is_categorical)

    @property
    def n_numeric(self) -> int:
        """Number of numeric columns."""
        return self.n_columns - int(np.count_nonzero(self.is_categorical))

    @property
    def n_features(self) -> int:
        """Number of features that the trees see."""
        n_statistics = sum(table.n_features for table in self.tables)
        return self.n_numeric + len(self.level_columns) + n_statistics

    @property
    def is_level(self) -> NDArray[np.bool_]:
        """Mask of the features that are levels without an order."""
        mask = np.zeros(self.n_features, dtype=np.bool_)
        mask[self.n_numeric : self.n_numeric + len(self.level_columns)] = True
        return mask

    @cached_property
    def n_levels(self) -> list[int]:
        """Number of levels of each categorical column."""
        return [vocabulary.n_levels for vocabulary in self.vocabularies]

    @property
    def is_text(self) -> NDArray[np.bool_]:
        """Mask of the columns of the caller's table with labels that are not numbers."""
        mask = np.zeros(self.n_columns, dtype=np.bool_)
        mask[self.is_categorical] = [vocabulary.is_text for vocabulary in self.vocabularies]
        return mask

    def share(self, gains: Floats) -> Floats:
        """Return the gain of each column of the table; a combination's is divided equally."""
        shares = np.zeros(self.n_columns)
        shares[~self.is_categorical] = gains[: self.n_numeric]
        columns = np.flatnonzero(self.is_categorical)
        feature_members: list[tuple[int, ...]] = [(column,) for column in self.level_columns]
        for table in self.tables:
            feature_members += [table.members] * table.n_features
        for members, gain in zip(feature_members, gains[self.n_numeric :], strict=True):
            for member in members:
                shares[columns[member]] += gain / len(members)
        return shares

    def blocks(
        self, features: Features, n_threads: int = 1
    ) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the rows of a table block by block, as the values that the trees split on.

        Numbers are values already: the whole table is one block.
        """
        numbers = features.values
        if self.is_numeric:
            if isinstance(numbers, HeldNumbers):
                yield from numbers.blocks()
            else:
                yield slice(0, len(features)), features.matrix()
            return
        n_rows = max(1, BLOCK_VALUES // max(1, self.n_features))
        pairs = list(zip(self.vocabularies, features.labels, strict=True))
        lookups = [(vocabulary.lookup(column), column.index) for vocabulary, column in pairs]
        for rows, values in _row_blocks(features, n_rows):
            levels = np.array([lookup[index[rows]] for lookup, index in lookups])
            yield rows, self._encode(values, levels, n_threads)

    def find_levels(self, features: Features) -> Levels:
        """Return the level numbers of all rows, (n_categorical, n_rows); -1 if not known."""
        pairs = zip(self.vocabularies, features.labels, strict=True)
        return np.array([vocabulary.lookup(column)[column.index] for vocabulary, column in pairs])

    def _encode(self, numbers: NDArray[Any], levels: Levels, n_threads: int) -> Floats:
        values = np.empty((len(numbers), self.n_features), order="F")
        values[:, : self.n_numeric] = numbers
        feature = self.n_numeric
        for column in self.level_columns:
            values[:, feature] = np.where(levels[column] < 0, np.nan, levels[column])
            feature += 1
        for table in self.tables:
            entries = table.find(levels, self.n_levels, n_threads)
            rows = table.statistics if table.counts is None else [*table.statistics, table.counts]
            for row in rows:
                values[:, feature] = row[entries]
                feature += 1
        return values

    def codes(self, features: Features, bins: Bins, n_threads: int = 1) -> NDArray[np.uint8]:
        """Return the codes of a table by columns, (n_features, n_rows)."""
        if isinstance(features.values, HeldNumbers):
            return self._held_codes(features, features.values, bins, n_threads).gather()
        columns = np.empty((self.n_features, len(features)), dtype=np.uint8)
        for rows, values in self.blocks(features, n_threads):
            columns[:, rows] = bins.encode(values, n_threads)
        return columns

    def _held_codes(
        self, features: Features, numbers: HeldNumbers, bins: Bins, n_threads: int
    ) -> HeldCodes:
        """Return the codes of numbers that are held elsewhere and of categories that are here."""
        first = self.n_numeric
        codes = numbers.encode(bins[:first], n_threads)
        if self.is_numeric:
            return codes
        categories = replace(self, is_categorical=np.ones(len(self.vocabularies), dtype=np.bool_))
        here = Features(np.empty((len(features), 0)), features.labels, categories.is_categorical)
        return codes.extended(1, categories.codes(here, bins[first:], n_threads))

    def row_encoder(self) -> Callable[[Sequence[Any]], NDArray[Any]]:
        """Return a function from a row of the caller's values to values (1, n_features).

        It uses lists and dicts: for a single row they are faster than arrays.
        """
        if self.is_numeric:
            return row_reader(self.n_columns)
        numeric = np.flatnonzero(~self.is_categorical).tolist()
        categorical = np.flatnonzero(self.is_categorical).tolist()
        lookups = [vocabulary.numbers for vocabulary in self.vocabularies]
        readers = [(categorical[column], lookups[column]) for column in range(len(categorical))]
        n_columns, n_levels, missing = self.n_columns, self.n_levels, float("nan")
        tables = [_RowTable(table) for table in self.tables]

        def encode(row: Sequence[Any]) -> Floats:
            if len(row) != n_columns:
                raise ValueError(
                    f"a row must be {n_columns} values, one for each column; it has {len(row)}"
                )
            cells = (row[column] for column in numeric)
            values = [missing if cell is None else float(cell) for cell in cells]
            levels = [lookup.get(label_of(row[column]), -1) for column, lookup in readers]
            for column in self.level_columns:
                values.append(levels[column] if levels[column] >= 0 else missing)
            for table in tables:
                values += table.entry(levels, n_levels)
            return np.array([values])

        return encode


def _row_blocks(features: Features, n_rows: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield the numbers of a table, about `n_rows` rows at a time; no rows are one empty block."""
    if isinstance(features.values, HeldNumbers):
        yield from features.values.blocks()
        return
    values = features.matrix()
    for begin in range(0, max(1, len(features)), n_rows):
        rows = slice(begin, min(len(features), begin + n_rows))
        yield rows, values[rows]


class _RowTable:
    """A level table that looks up one row at a time."""

    def __init__(self, table: LevelTable) -> None:
        self.members = table.members
        keys = range(table.statistics.shape[1] - 1) if table.keys is None else table.keys.tolist()
        rows = [*table.statistics, *([] if table.counts is None else [table.counts])]
        entries = np.array(rows).T.tolist()
        self.unseen: list[float] = entries.pop()
        self.entries: dict[int, list[float]] = dict(zip(keys, entries, strict=True))

    def entry(self, levels: list[int], n_levels: list[int]) -> list[float]:
        """Return the statistics (and count) of a row."""
        key = 0
        for member in self.members:
            if levels[member] < 0:
                return self.unseen
            key = key * n_levels[member] + levels[member]
        return self.entries.get(key, self.unseen)
