"""How codes are laid out for the search: decided once for all rows, then applied to each part.

What the decision depends on adds up over parts of the rows, so that rows in one place and rows
dealt to several are laid out alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.bundles import Bundles

Bytes = NDArray[np.uint8]

MOST_ROWS = 2**31 - 1


class SplitKind(IntEnum):
    """Which splits a column has: code <= b; that, or missing values on the right; code == b; the
    same for b > 0, one of the bundled features.
    """

    NUMBERS = 0
    NUMBERS_OR_MISSING = 1
    LEVELS = 2
    BUNDLE = 3


class CodeCounts(NamedTuple):
    """What the layout depends on, of some rows: their number and, of each feature, the lowest and
    highest code, and the rows with code 2 if it has two values.
    """

    n_rows: int
    lowest: Bytes
    highest: Bytes
    n_twos: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Bytes, n_codes: NDArray[np.int32]) -> "CodeCounts":
        """Count codes (n_features, n_rows)."""
        n_twos = np.zeros(len(columns), dtype=np.int64)
        for feature in np.flatnonzero(n_codes == 3).tolist():
            n_twos[feature] = np.count_nonzero(columns[feature] == 2)
        lowest, highest = columns.min(axis=1, initial=1), columns.max(axis=1, initial=0)
        return cls(columns.shape[1], lowest, highest, n_twos)

    def plus(self, other: "CodeCounts") -> "CodeCounts":
        """Return the counts of these and other rows."""
        return CodeCounts(
            self.n_rows + other.n_rows,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.n_twos + other.n_twos,
        )


# Bundles the features with these numbers, by the counts of all rows.
FindBundles = Callable[[NDArray[np.intp], CodeCounts], Bundles | None]


@dataclass(frozen=True)
class CodeLayout:
    """The columns of the search: their codes and kinds, and how they are features if bundled."""

    n_codes: NDArray[np.int32]
    kinds: Bytes  # see SplitKind
    bundles: Bundles | None = None

    @classmethod
    def decide(
        cls,
        n_codes: NDArray[np.int32],
        counts: CodeCounts,
        find_bundles: FindBundles,
        *,
        is_level: NDArray[np.bool_] | None = None,
    ) -> "CodeLayout":
        """Decide by the counts of all rows; `is_level` marks features whose codes have no order."""
        if counts.n_rows > MOST_ROWS:
            raise ValueError(f"at most {MOST_ROWS} rows can be trained on, not {counts.n_rows}")
        n_codes = np.ascontiguousarray(n_codes, dtype=np.int32)
        too_large = counts.highest >= n_codes
        if too_large.any():  # the histograms have no room for them
            feature = int(np.argmax(too_large))
            raise ValueError(f"feature {feature} has a code above {n_codes[feature] - 1}")
        kinds = np.where(
            counts.lowest == 0, SplitKind.NUMBERS_OR_MISSING, SplitKind.NUMBERS
        ).astype(np.uint8)
        if is_level is not None:
            kinds[is_level] = SplitKind.LEVELS
        two_values = (n_codes == 3) & (kinds == SplitKind.NUMBERS)
        bundles = find_bundles(np.flatnonzero(two_values), counts)
        if bundles is not None:
            n_codes = np.concatenate([n_codes[bundles.alone], bundles.n_codes])
            kinds = np.pad(
                kinds[bundles.alone], (0, len(bundles.groups)), constant_values=SplitKind.BUNDLE
            )
        return cls(n_codes, kinds, bundles)

    @property
    def stride(self) -> int:
        """Bytes from a row to the next."""
        return -(-len(self.n_codes) // 8) * 8

    def rows(self, columns: Bytes, n_threads: int = 1) -> Bytes:
        """Return codes (n_features, n_rows) row by row, (n_rows, stride), as the search reads them.

        Rows of a part are those of the whole.
        """
        if self.bundles is not None:
            columns = self.bundles.columns(columns)
        code_rows = np.empty((columns.shape[1], self.stride), dtype=np.uint8)
        _core.to_rows(columns, code_rows, n_threads)
        return code_rows
