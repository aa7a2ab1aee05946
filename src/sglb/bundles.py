"""Columns of two values that are never on together, such as one-hot columns, searched as one.

A histogram costs an addition for each row and column. The columns of a bundle share one: its code
says which of them is on, 0 for none, and the split "this code against all others" is the split of
that column. Only the search sees bundles; trees are made of the columns themselves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

# A column that is on in more rows than this share is hardly ever alone.
MOST_ON = 0.25
MOST_MEMBERS = 255
LEAST_MEMBERS = 4
# Bundles that a column is tried with, the last ones: columns that exclude each other lie together.
MOST_OPEN = 16
# Rows that most columns which do not fit are told by.
FIRST_ROWS = 4096


@dataclass(frozen=True)
class Bundles:
    """Features that are searched by themselves, and groups of features that are searched as one.

    Columns of the search are those features in their order, then the groups.
    """

    alone: NDArray[np.intp]
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def find(cls, columns: Bytes, candidates: NDArray[np.intp]) -> "Bundles | None":
        """Bundle candidates, features with codes 1 and 2 only; None if that saves little."""
        found: list[_Bundle] = []
        for feature in candidates.tolist():
            on = _on(columns[feature])
            n_on = int(np.count_nonzero(on))
            if n_on > MOST_ON * len(on):
                continue
            if not any(bundle.take(feature, on, n_on) for bundle in found[-MOST_OPEN:]):
                found.append(_Bundle(feature, on, n_on))
            for bundle in found[:-MOST_OPEN]:
                bundle.close()
        groups = tuple(
            tuple(bundle.members) for bundle in found if len(bundle.members) >= LEAST_MEMBERS
        )
        if not groups:
            return None
        together = np.array([feature for group in groups for feature in group], dtype=np.intp)
        return cls(np.setdiff1d(np.arange(len(columns)), together), groups)

    def columns(self, columns: Bytes) -> Bytes:
        """Return codes (n_features, n_rows) as the search reads them."""
        merged = np.zeros((len(self.groups), columns.shape[1]), dtype=np.uint8)
        for row, group in zip(merged, self.groups, strict=True):
            for code, feature in enumerate(group, 1):
                row[_on(columns[feature])] = code
        return np.concatenate([columns[self.alone], merged])

    @property
    def n_codes(self) -> NDArray[np.int32]:
        """Codes of each group."""
        return np.array([len(group) + 1 for group in self.groups], dtype=np.int32)

    def split(
        self, features: NDArray[np.int32], lows: Bytes, highs: Bytes
    ) -> tuple[NDArray[np.int32], Bytes, Bytes]:
        """Return splits of search columns as splits of features."""
        features, lows, highs = features.copy(), lows.copy(), highs.copy()
        for place, column in enumerate(features.tolist()):
            group = column - len(self.alone)
            if group < 0:
                features[place] = self.alone[column]
            else:
                features[place] = self.groups[group][int(lows[place]) - 1]
                lows[place], highs[place] = 0, 1
        return features, lows, highs


class _Bundle:
    """A bundle in the making: its members, and the rows in which one of them is on."""

    def __init__(self, feature: int, on: NDArray[np.bool_], n_on: int) -> None:
        self.members = [feature]
        self.taken: NDArray[np.bool_] | None = on
        self.n_taken = n_on

    def take(self, feature: int, on: NDArray[np.bool_], n_on: int) -> bool:
        """Add a feature if no row has it on together with another member."""
        if self.taken is None or len(self.members) == MOST_MEMBERS:
            return False
        if self.n_taken + n_on > len(on):
            return False
        for rows in (slice(0, FIRST_ROWS), slice(FIRST_ROWS, None)):
            if (self.taken[rows] & on[rows]).any():
                return False
        self.taken = self.taken | on
        self.n_taken += n_on
        self.members.append(feature)
        return True

    def close(self) -> None:
        """Take no more features, and give the memory back."""
        self.taken = None


def _on(codes: Bytes) -> NDArray[np.bool_]:
    """Rows with the rarer of codes 1 and 2."""
    on: NDArray[np.bool_] = codes == (1 if 2 * np.count_nonzero(codes == 2) > len(codes) else 2)
    return on
