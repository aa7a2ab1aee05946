"""Search mutually exclusive columns of two values, such as one-hot columns, as a single column.

A histogram costs an addition for each row and column. The columns of a bundle share a histogram:
the bundle's code says which of them is on, 0 for none, and the split "this code against all others"
is the split of that column. Only the search sees bundles; trees split the columns themselves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

# Columns that are on in a larger share of the rows rarely exclude others.
MOST_ON = 0.25
MOST_MEMBERS = 255
LEAST_MEMBERS = 4
# A column is tried with this many bundles, the latest: columns that exclude each other are usually
# neighbours.
MOST_OPEN = 16
# Most columns that do not fit a bundle are detected by this many first rows.
FIRST_ROWS = 4096


@dataclass(frozen=True)
class Bundles:
    """Features that are searched alone, and groups of features that are searched as one column.

    The columns of the search are the features alone, in their order, then the groups.
    """

    alone: NDArray[np.intp]
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def find(cls, columns: Bytes, candidates: NDArray[np.intp]) -> "Bundles | None":
        """Bundle candidates, which have codes 1 and 2 only; return None if that saves little."""
        bundles: list[_Bundle] = []
        for feature in candidates.tolist():
            on = _on(columns[feature])
            n_on = int(np.count_nonzero(on))
            if n_on > MOST_ON * len(on):
                continue
            if not any(bundle.add(feature, on, n_on) for bundle in bundles[-MOST_OPEN:]):
                bundles.append(_Bundle(feature, on, n_on))
            for bundle in bundles[:-MOST_OPEN]:
                bundle.close()
        groups = tuple(
            tuple(bundle.members) for bundle in bundles if len(bundle.members) >= LEAST_MEMBERS
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
        for split, column in enumerate(features.tolist()):
            group = column - len(self.alone)
            if group < 0:
                features[split] = self.alone[column]
            else:
                features[split] = self.groups[group][int(lows[split]) - 1]
                lows[split], highs[split] = 0, 1
        return features, lows, highs


class _Bundle:
    """A bundle that is being built: its members, and the rows in which a member is on."""

    def __init__(self, feature: int, on: NDArray[np.bool_], n_on: int) -> None:
        self.members = [feature]
        self.occupied: NDArray[np.bool_] | None = on
        self.n_occupied = n_on

    def add(self, feature: int, on: NDArray[np.bool_], n_on: int) -> bool:
        """Add a feature if it is never on together with a member; return whether it was added."""
        if self.occupied is None or len(self.members) == MOST_MEMBERS:
            return False
        if self.n_occupied + n_on > len(on):
            return False
        for rows in (slice(0, FIRST_ROWS), slice(FIRST_ROWS, None)):
            if (self.occupied[rows] & on[rows]).any():
                return False
        self.occupied = self.occupied | on
        self.n_occupied += n_on
        self.members.append(feature)
        return True

    def close(self) -> None:
        """Accept no more features and free the memory."""
        self.occupied = None


def _on(codes: Bytes) -> NDArray[np.bool_]:
    """Return the rows with the rarer of codes 1 and 2."""
    on: NDArray[np.bool_] = codes == (1 if 2 * np.count_nonzero(codes == 2) > len(codes) else 2)
    return on
