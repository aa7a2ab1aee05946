"""Encode the categorical columns of training rows.

Training rows come in copies that differ only in their statistics: copy c visits the rows in random
order number c. Row r of copy c is row c * n_rows + r.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.bins import SAMPLE_ROWS_PER_BIN, Bins
from sglb.categories.combinations import member_rows
from sglb.categories.encoding import Encoding, LevelTable, combined_keys
from sglb.categories.vocabulary import Vocabulary
from sglb.frame import Features
from sglb.held import HeldCodes
from sglb.target import Target

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

# Four orders instead of one lower the test log loss by 1 % on tables of 6,000 to 50,000 rows. A
# chain costs as much as one on all copies together, and the statistics of levels with more rows are
# more certain, so large tables have fewer copies: up to 200,000 rows four, from 400,001 rows one.
MOST_COPIES = 4
MOST_COPIED_ROWS = 800_000

# 64 bins changed the test log loss of four tables by +0.1, +0.2, +0.1 and -0.1 %, so 32 are enough.
STATISTIC_BINS = 32

# At most this many classes, the most frequent, have a statistic. A level's share of a rare class is
# mostly noise, and every statistic is a column to search.
MOST_CLASSES = 16

# Columns whose levels are counted at a time: enough for the threads, few enough for the memory.
BLOCK_COLUMNS = 8


class Part(NamedTuple):
    """Codes of features of the training rows, (n_features, n_copies * n_rows), and their bins."""

    columns: Bytes | HeldCodes
    bins: Bins
    is_level: bool

    def sample(self, rows: NDArray[np.intp]) -> Bytes:
        """Return the codes of some rows of the first copy, in table order."""
        if isinstance(self.columns, HeldCodes):
            return self.columns.sample(rows)
        return self.columns[:, rows]


def statistic_targets(target: Target) -> Floats:
    """Return what is averaged by level, (n_targets, n_rows): y, or an indicator of each class."""
    values = target.values
    if target.n_classes <= 2:
        return values[None]
    rows = np.bincount(values.astype(np.intp), minlength=target.n_classes)
    labels = np.sort(np.argsort(-rows, kind="stable")[:MOST_CLASSES])
    targets: Floats = np.equal(values[None], labels[:, None]).astype(np.float64)
    return targets


def row_orders(seed: int, n_copies: int, n_rows: int) -> NDArray[np.uint32]:
    """Return the random order in which each copy visits the rows, (n_copies, n_rows)."""
    orders = np.empty((n_copies, n_rows), dtype=np.uint32)
    for copy, order in enumerate(orders):
        _core.permutation(seed, copy, order)
    return orders


class Encoder:
    """Learns levels and statistics from training rows; `encoding()` returns what it has learned."""

    def __init__(
        self,
        features: Features,
        target: Target,
        *,
        most_levels: int,
        many: int,
        seed: int,
        n_threads: int,
    ) -> None:
        self.targets = statistic_targets(target)
        self.weight, self.unit = target.kernel_weight, target.weight_unit
        self.most_levels, self.many = most_levels, many
        self.seed, self.n_threads = seed, n_threads
        self.n_rows = len(features)
        self.is_categorical = features.is_categorical
        learned = [Vocabulary.fit(column) for column in features.labels]
        vocabularies = [vocabulary for vocabulary, _ in learned]
        self.levels = np.array([levels for _, levels in learned])
        self.n_levels = np.array([v.n_levels for v in vocabularies], dtype=np.int64)
        self.has_many = self.n_levels > most_levels
        # A column that identifies its rows tells nothing about other rows: no level is kept.
        self.identifies_rows = self.has_many & (self.n_levels == self.n_rows)
        self.has_many &= ~self.identifies_rows
        self.levels[self.identifies_rows] = 0
        self.n_levels[self.identifies_rows] = 1
        self.vocabularies = tuple(
            Vocabulary((), False) if is_row_id else vocabulary
            for vocabulary, is_row_id in zip(vocabularies, self.identifies_rows, strict=True)
        )
        self.means = np.array([target.mean(values) for values in self.targets])
        self.n_copies = 1
        if self.has_many.any():
            self.n_copies = max(1, min(MOST_COPIES, MOST_COPIED_ROWS // self.n_rows))
        self.orders = row_orders(seed, self.n_copies, self.n_rows)
        self.tables: list[LevelTable] = []

    @property
    def level_columns(self) -> tuple[int, ...]:
        """Indices of the categorical columns that are split by level."""
        return tuple(np.flatnonzero(~self.has_many).tolist())

    def encoding(self) -> Encoding:
        """Return what prediction needs."""
        return Encoding(
            self.is_categorical, self.vocabularies, self.level_columns, tuple(self.tables)
        )

    def sample_rows(self, n: int) -> NDArray[np.intp]:
        """Return n random rows in table order, or all rows if there are fewer."""
        return np.sort(self.orders[0][:n]).astype(np.intp)

    def can_combine(self) -> bool:
        """Whether there are columns worth combining."""
        return bool((self.n_levels > self.many).any()) and int((self.n_levels > 1).sum()) > 1

    def single(self) -> list[Part]:
        """Encode each column by itself: level numbers, then statistics and counts."""
        parts = []
        if self.level_columns:
            parts.append(self._level_part(list(self.level_columns)))
        rich = np.flatnonzero(self.has_many).tolist()
        for begin in range(0, len(rich), BLOCK_COLUMNS):
            block = rich[begin : begin + BLOCK_COLUMNS]
            members = [(column,) for column in block]
            parts += self._statistic_parts(members, self.levels[block], self.n_levels[block])
        return parts

    def combined(self, chosen: Sequence[tuple[int, ...]]) -> list[Part]:
        """Encode each combination of columns by a statistic."""
        levels = _core.Levels(self.levels, self.n_levels)
        parts = []
        for begin in range(0, len(chosen), BLOCK_COLUMNS):
            block = chosen[begin : begin + BLOCK_COLUMNS]
            members = member_rows(block)
            numbers = np.empty((len(block), self.n_rows), dtype=np.int32)
            n_numbers = np.empty(len(block), dtype=np.int64)
            _core.combine(levels, members, numbers, n_numbers, self.n_threads)
            parts += self._statistic_parts(block, numbers, n_numbers)
        return parts

    def _level_part(self, columns: list[int]) -> Part:
        levels = self.levels[columns]
        levels[self.identifies_rows[columns]] = -1
        bins = Bins.of_levels(self.n_levels[columns].tolist(), self.most_levels)
        return Part(np.tile((levels + 1).astype(np.uint8), self.n_copies), bins, True)

    def _statistic_parts(
        self,
        members: Sequence[tuple[int, ...]],
        levels: NDArray[np.int32],
        n_levels: NDArray[np.int64],
    ) -> list[Part]:
        """Encode levels (n_columns, n_rows) by their statistics, single columns by counts too."""
        n_targets = len(self.targets)
        sums = np.empty((n_targets, int(n_levels.sum())))
        counts = np.empty(int(n_levels.sum()))
        level_columns = _core.Levels(levels, n_levels)
        targets = _core.LevelTargets(self.targets, self.weight)
        _core.level_sums(level_columns, targets, sums, counts, self.n_threads)
        statistics = (sums + self.unit * self.means[:, None]) / (counts + self.unit)
        ends = np.cumsum(n_levels)[:-1]
        pieces = zip(
            members,
            levels,
            np.split(statistics, ends, axis=1),
            np.split(counts, ends),
            strict=True,
        )
        tables = [self._table(*piece) for piece in pieces]
        self.tables += tables
        bins = self._bins(
            [(table.statistics, row) for table, row in zip(tables, levels, strict=True)]
        )
        shape = len(levels) * n_targets, self.n_copies * self.n_rows
        columns = np.empty(shape, dtype=np.uint8)
        _core.ordered_codes(
            level_columns,
            targets,
            self.orders,
            _core.Prior(self.means, self.unit),
            bins.thresholds,
            bins.n_thresholds,
            columns,
            self.n_threads,
        )
        parts = []
        for index, (table, row) in enumerate(zip(tables, levels, strict=True)):
            features = slice(index * n_targets, (index + 1) * n_targets)
            part_bins = Bins(bins.thresholds[features], bins.n_thresholds[features])
            parts.append(Part(columns[features], part_bins, False))
            if table.counts is not None:
                part_bins = self._bins([(table.counts[None], row)])
                codes = part_bins.encode(table.counts[:, None])[0]
                parts.append(Part(np.tile(codes[row], self.n_copies)[None], part_bins, False))
        return parts

    def _table(
        self,
        members: tuple[int, ...],
        levels: NDArray[np.int32],
        statistics: Floats,
        counts: Floats,
    ) -> LevelTable:
        statistics = np.column_stack([statistics, self.means])
        if len(members) == 1:
            # Rows, not weights: where weights depend on the target, as balanced classes do, the
            # weight of a rare level would reveal the targets of its rows.
            rows = np.bincount(levels, minlength=len(counts)).astype(np.float64)
            return LevelTable(members, None, statistics, np.append(rows, 0.0))
        # The last write wins, so writing backwards leaves the first row of each level.
        first = np.empty(len(counts), dtype=np.intp)
        first[levels[::-1]] = np.arange(self.n_rows - 1, -1, -1)
        radices = self.n_levels[list(members)].tolist()
        keys = combined_keys(self.levels[list(members)][:, first], radices)
        return LevelTable(members, keys, statistics, None)

    def _bins(self, tables: list[tuple[Floats, NDArray[np.int32]]]) -> Bins:
        """Choose thresholds of statistics (n_targets, n_levels + 1), as training rows would have
        them in prediction, because these are the values that trees will be asked about.
        """
        n_bins = min(STATISTIC_BINS, self.many)
        rows = self.sample_rows(SAMPLE_ROWS_PER_BIN * n_bins)
        values = np.concatenate([table[:, levels[rows]] for table, levels in tables])
        return Bins.fit(values.T, n_bins, seed=self.seed, n_threads=self.n_threads)
