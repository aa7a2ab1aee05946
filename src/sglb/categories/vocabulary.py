"""The levels of a categorical column: its labels, sorted, then the missing value."""

from dataclasses import dataclass
from itertools import compress
from operator import ne

import numpy as np
from numpy.typing import NDArray

from sglb.caching import cached_property
from sglb.labels import LabelColumn, label_of


def _is_number(label: str) -> bool:
    """Whether this is the label of a number."""
    try:
        return label in (label_of(float(label)), str(int(label)))
    except (ValueError, OverflowError):
        return False


@dataclass(frozen=True)
class Vocabulary:
    """The labels of the training rows, sorted; with `has_missing` another level for None."""

    labels: tuple[str, ...]
    has_missing: bool

    @classmethod
    def fit(cls, column: LabelColumn) -> "tuple[Vocabulary, NDArray[np.int32]]":
        """Learn the levels of a column; return the level number of each row, too.

        Labels without a row are ignored.
        """
        is_used = np.zeros(len(column.labels) + 1, dtype=bool)  # the last is for index -1
        is_used[column.index] = True
        used = np.flatnonzero(is_used[:-1]).tolist()
        label_of = {index: label for index in used if (label := column.labels[index]) is not None}
        ordered = sorted(label_of, key=label_of.__getitem__)
        labels = [label_of[index] for index in ordered]
        is_new = [True, *map(ne, labels[1:], labels)][: len(labels)]  # labels may repeat
        distinct = tuple(compress(labels, is_new))
        numbers = np.full(len(is_used), len(distinct), dtype=np.int32)
        numbers[ordered] = np.cumsum(is_new, dtype=np.int32) - 1
        has_missing = bool(is_used[-1]) or len(label_of) < len(used)
        return cls(distinct, has_missing), numbers[column.index]

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.labels) + self.has_missing

    @property
    def is_text(self) -> bool:
        """Whether a label is not that of a number, "007" for example."""
        return any(not _is_number(label) for label in self.labels)

    @cached_property
    def numbers(self) -> dict[str | None, int]:
        """Label -> level number."""
        numbers: dict[str | None, int] = {label: n for n, label in enumerate(self.labels)}
        return numbers | {None: len(self.labels)} if self.has_missing else numbers

    def lookup(self, column: LabelColumn) -> NDArray[np.int32]:
        """Return the level number of each label of a column, then that of a missing value.

        The number is -1 for labels not seen during training.
        """
        numbers = self.numbers
        levels = [numbers.get(label, -1) for label in (*column.labels, None)]
        return np.array(levels, dtype=np.int32)
