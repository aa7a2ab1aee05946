"""Search mutually exclusive columns of two values, such as one-hot columns, as a single column.

A histogram costs an addition for each row and column. The columns of a bundle share a histogram:
the bundle's code says which of them is on, 0 for none, and the split "this code against all others"
is the split of that column. Only the search sees bundles; trees split the columns themselves.

The rows may be in several parts, each of which tells which columns meet in it: are on in one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Pairs = NDArray[np.intp]  # (n, 2) features
Groups = Sequence[Sequence[int]]

# Columns that are on in a larger share of the rows rarely exclude others.
MOST_ON = 0.25
MOST_MEMBERS = 255
LEAST_MEMBERS = 4
# A column is tried with this many bundles, the latest: columns that exclude each other are usually
# neighbours.
MOST_OPEN = 16
# Most columns that do not fit a bundle are detected by this many first rows.
FIRST_ROWS = 4096
# Rows shared by members that are looked at together: enough to learn most pairs at once.
MOST_SHARED = 1 << 16


class Meetings(Protocol):
    """Rows in parts, which can be asked for the columns that exclude each other."""

    def __call__(self, groups: Groups, on: Bytes, *, first_rows: bool) -> Pairs:
        """Return the pairs of members of a group that are on in the same row, as `meetings`."""
        ...


@dataclass(frozen=True)
class Bundles:
    """Features that are searched alone, and groups of features that are searched as one column.

    The columns of the search are the features alone, in their order, then the groups. `on` is the
    code of each feature, 1 or 2, at which it is on: the rarer one of those in groups.
    """

    alone: NDArray[np.intp]
    groups: tuple[tuple[int, ...], ...]
    on: Bytes

    @classmethod
    def find(cls, columns: Bytes, candidates: NDArray[np.intp]) -> "Bundles | None":
        """Bundle candidates, which have codes 1 and 2 only; return None if that saves little."""
        n_twos = np.zeros(len(columns), dtype=np.int64)
        for feature in candidates.tolist():
            n_twos[feature] = np.count_nonzero(columns[feature] == 2)
        two_values = _TwoValues(candidates, n_twos, columns.shape[1])
        return cls._of(two_values, two_values.bundle(_Masks(columns, two_values.on)))

    @classmethod
    def find_in_parts(
        cls, candidates: NDArray[np.intp], n_twos: NDArray[np.int64], n_rows: int, ask: Meetings
    ) -> "Bundles | None":
        """Bundle candidates as `find` does, by what all parts of the rows say of them.

        `n_twos` are the rows with code 2 of each feature. Bundles are made of columns that are not
        known to meet, and the parts asked whether they do, until none does.
        """
        two_values = _TwoValues(candidates, n_twos, n_rows)
        known = _KnownPairs(len(n_twos))
        if len(rare := two_values.rare()) >= LEAST_MEMBERS:
            known.learn(ask([rare], two_values.on, first_rows=True))
        while True:
            groups = two_values.bundle(known)
            several = [group for group in groups if len(group) > 1]
            met = ask(several, two_values.on, first_rows=False)
            if not len(met):
                return cls._of(two_values, groups)
            known.learn(met)

    @classmethod
    def _of(cls, two_values: "_TwoValues", groups: Groups) -> "Bundles | None":
        kept = tuple(tuple(group) for group in groups if len(group) >= LEAST_MEMBERS)
        if not kept:
            return None
        together = np.array([feature for group in kept for feature in group], dtype=np.intp)
        return cls(np.setdiff1d(np.arange(len(two_values.on)), together), kept, two_values.on)

    def columns(self, columns: Bytes) -> Bytes:
        """Return codes (n_features, n_rows) as the search reads them."""
        merged = np.zeros((len(self.groups), columns.shape[1]), dtype=np.uint8)
        for row, group in zip(merged, self.groups, strict=True):
            for code, feature in enumerate(group, 1):
                row[columns[feature] == self.on[feature]] = code
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


def meetings(columns: Bytes, groups: Groups, on: Bytes, *, first_rows: bool = False) -> Pairs:
    """Return which pairs of members of each group are on in the same row of codes.

    With `first_rows` the first rows alone are looked at. Of very many such rows some are enough:
    who asks asks again, until there is no pair.
    """
    rows = slice(FIRST_ROWS if first_rows else None)
    pairs = [np.empty((0, 2), dtype=np.intp)]
    for group in groups:
        members = np.array(group, dtype=np.intp)
        n_on = np.zeros(columns[0, rows].size, dtype=np.int32)
        for feature in group:
            n_on += columns[feature, rows] == on[feature]
        shared = np.flatnonzero(n_on > 1)[:MOST_SHARED]
        if len(shared):
            is_on = (columns[:, rows][np.ix_(members, shared)] == on[members, None]).astype("f4")
            first, second = np.nonzero(np.triu(is_on @ is_on.T, 1))
            pairs.append(np.column_stack([members[first], members[second]]))
    return np.concatenate(pairs)


class _TwoValues:
    """Candidates for bundles: features with codes 1 and 2 only, and in how many rows each is on."""

    def __init__(
        self, candidates: NDArray[np.intp], n_twos: NDArray[np.int64], n_rows: int
    ) -> None:
        self.candidates, self.n_rows = candidates, n_rows
        self.on = np.where(2 * n_twos > n_rows, 1, 2).astype(np.uint8)
        self.n_on = np.where(self.on == 1, n_rows - n_twos, n_twos)

    def rare(self) -> list[int]:
        """Return the candidates that are on in few rows."""
        is_rare = self.n_on[self.candidates] <= MOST_ON * self.n_rows
        rare: list[int] = self.candidates[is_rare].tolist()
        return rare

    def bundle(self, rows: "_Rows") -> list[list[int]]:
        """Add each rare candidate to the first of the latest bundles that it fits, or begin one."""
        bundles: list[_Bundle] = []
        for feature in self.rare():
            on, n_on = rows.of(feature), int(self.n_on[feature])
            latest = bundles[-MOST_OPEN:]
            if not any(bundle.add(feature, on, n_on, self.n_rows) for bundle in latest):
                bundles.append(_Bundle(feature, rows, on, n_on))
            for bundle in bundles[:-MOST_OPEN]:
                bundle.occupied = None  # accepts no more features; frees the memory
        return [bundle.members for bundle in bundles]


class _Rows(Protocol):
    """In which rows features are on, as whatever tells whether two of them meet."""

    def of(self, feature: int) -> Any: ...
    def meet(self, these: Any, others: Any) -> bool: ...
    def join(self, these: Any, others: Any) -> Any: ...


class _Masks:
    """Rows as masks."""

    def __init__(self, columns: Bytes, on: Bytes) -> None:
        self._columns, self._on = columns, on

    def of(self, feature: int) -> NDArray[np.bool_]:
        on: NDArray[np.bool_] = self._columns[feature] == self._on[feature]
        return on

    def meet(self, these: NDArray[np.bool_], others: NDArray[np.bool_]) -> bool:
        parts = (slice(0, FIRST_ROWS), slice(FIRST_ROWS, None))
        return any((these[rows] & others[rows]).any() for rows in parts)

    def join(self, these: NDArray[np.bool_], others: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return these | others


class _KnownPairs:
    """Rows as the features that are on there: which pairs of these meet is learned bit by bit."""

    def __init__(self, n_features: int) -> None:
        self._met = np.zeros((n_features, n_features), dtype=np.bool_)

    def learn(self, pairs: Pairs) -> None:
        first, second = pairs.T
        self._met[first, second] = self._met[second, first] = True

    def of(self, feature: int) -> list[int]:
        return [feature]

    def meet(self, these: list[int], others: list[int]) -> bool:
        return bool(self._met[np.ix_(these, others)].any())

    def join(self, these: list[int], others: list[int]) -> list[int]:
        return these + others


class _Bundle:
    """A bundle that is being built: its members, and the rows in which a member is on."""

    def __init__(self, feature: int, rows: _Rows, on: Any, n_on: int) -> None:
        self.members = [feature]
        self.occupied = on
        self._rows, self._n_occupied = rows, n_on

    def add(self, feature: int, on: Any, n_on: int, n_rows: int) -> bool:
        """Add a feature if it is never on together with a member; return whether it was added."""
        if self.occupied is None or len(self.members) == MOST_MEMBERS:
            return False
        if self._n_occupied + n_on > n_rows or self._rows.meet(self.occupied, on):
            return False
        self.occupied = self._rows.join(self.occupied, on)
        self._n_occupied += n_on
        self.members.append(feature)
        return True
