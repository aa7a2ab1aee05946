"""The levels of a categorical column: labels in their order, a missing value as the last one."""

from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from operator import ne

import numpy as np
from numpy.typing import NDArray

from sglb.labels import LabelColumn, label_of


def _is_number(label: str) -> bool:
    """Whether a number has this label."""
    try:
        return label in (label_of(float(label)), str(int(label)))
    except (ValueError, OverflowError):
        return False


@dataclass(frozen=True)
class Vocabulary:
    """The labels that training rows have, sorted; with `has_missing` one more level for None."""

    labels: tuple[str, ...]
    has_missing: bool

    @classmethod
    def fit(cls, column: LabelColumn) -> "tuple[Vocabulary, NDArray[np.int32]]":
        """Learn the levels that rows of a column have; return the level number of each row, too.

        Labels that no row has do not count.
        """
        there = np.zeros(len(column.labels) + 1, dtype=bool)  # the last for index -1
        there[column.index] = True
        places = np.flatnonzero(there[:-1]).tolist()
        named = {place: label for place in places if (label := column.labels[place]) is not None}
        ordered = sorted(named, key=named.__getitem__)
        labels = [named[place] for place in ordered]
        is_new = [True, *map(ne, labels[1:], labels)][: len(labels)]  # a label may be there twice
        kept = tuple(compress(labels, is_new))
        numbers = np.full(len(there), len(kept), dtype=np.int32)
        numbers[ordered] = np.cumsum(is_new, dtype=np.int32) - 1
        has_missing = bool(there[-1]) or len(named) < len(places)
        return cls(kept, has_missing), numbers[column.index]

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.labels) + self.has_missing

    @property
    def is_text(self) -> bool:
        """Whether there is a label that no number has, "007" for example."""
        return any(not _is_number(label) for label in self.labels)

    @cached_property
    def numbers(self) -> dict[str | None, int]:
        """Label -> level number."""
        numbers: dict[str | None, int] = {label: n for n, label in enumerate(self.labels)}
        return numbers | {None: len(self.labels)} if self.has_missing else numbers

    def lookup(self, column: LabelColumn) -> NDArray[np.int32]:
        """Return the level number of each label of a column, then that of a missing value.

        The number is -1 for a label that training has not.
        """
        numbers = self.numbers
        known = [numbers.get(label, -1) for label in (*column.labels, None)]
        return np.array(known, dtype=np.int32)
