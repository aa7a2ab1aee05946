"""What a chain learns from: codes, targets and weights, fixed before its first step.

Codes are held twice. Histograms read one row's codes together (`code_rows`, padded to a multiple
of eight), leaves and prediction read one feature's codes together (`code_columns`).
"""

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.bundles import Bundles
from sglb.target import Target


class SplitKind(IntEnum):
    """Which splits a column has: code <= b; that, or missing values on the right; code == b; the
    same for b > 0, one of the bundled features.
    """

    NUMBERS = 0
    NUMBERS_OR_MISSING = 1
    LEVELS = 2
    BUNDLE = 3


@dataclass(frozen=True)
class TrainingSet:
    """Immutable rows of a problem.

    A set may hold several copies of the rows, one after the other, that differ in features which
    depend on an order of the rows. Structures are searched on one copy at a time.
    """

    code_columns: NDArray[np.uint8]  # (n_features, n_rows)
    code_rows: NDArray[np.uint8]  # (n_rows, stride), columns of the search
    n_codes: NDArray[np.int32]  # of these columns
    kinds: NDArray[np.uint8]  # how their codes may be split: see SplitKind
    target: Target  # of n_rows rows
    n_copies: int = 1
    bundles: Bundles | None = None  # how columns of the search are features, if they are not

    @classmethod
    def build(
        cls,
        code_columns: NDArray[np.uint8],
        n_codes: NDArray[np.int32],
        target: Target,
        n_threads: int = 1,
        *,
        is_level: NDArray[np.bool_] | None = None,
        n_copies: int = 1,
    ) -> "TrainingSet":
        """Lay out codes (n_features, n_rows) for a chain.

        `is_level` marks features whose codes are levels without an order. Rows of `n_copies`
        copies lie copy after copy.
        """
        n_rows = code_columns.shape[1]
        if n_rows >= 2**31:
            raise ValueError(f"at most {2**31 - 1} rows can be trained on, not {n_rows}")
        n_codes = np.ascontiguousarray(n_codes, dtype=np.int32)
        too_large = code_columns.max(axis=1, initial=0) >= n_codes
        if too_large.any():  # the histograms have no room for them
            feature = int(np.argmax(too_large))
            raise ValueError(f"feature {feature} has a code above {n_codes[feature] - 1}")
        if n_rows % n_copies:
            raise ValueError(f"{n_rows} rows are not {n_copies} copies of the same rows")
        has_missing = code_columns.min(axis=1, initial=1) == 0
        kinds = np.where(has_missing, SplitKind.NUMBERS_OR_MISSING, SplitKind.NUMBERS).astype(
            np.uint8
        )
        if is_level is not None:
            kinds[is_level] = SplitKind.LEVELS
        two_values = (n_codes == 3) & (kinds == SplitKind.NUMBERS)
        bundles = Bundles.find(code_columns, np.flatnonzero(two_values))
        columns = code_columns
        if bundles is not None:
            columns = bundles.columns(code_columns)
            n_codes = np.concatenate([n_codes[bundles.alone], bundles.n_codes])
            kinds = np.pad(
                kinds[bundles.alone], (0, len(bundles.groups)), constant_values=SplitKind.BUNDLE
            )
        code_rows = np.empty((n_rows, -(-len(columns) // 8) * 8), dtype=np.uint8)
        _core.to_rows(columns, code_rows, n_threads)
        return cls(
            code_columns=code_columns,
            code_rows=code_rows,
            n_codes=n_codes,
            kinds=kinds,
            target=target,
            n_copies=n_copies,
            bundles=bundles,
        )

    def first_copy(self) -> "TrainingSet":
        """Return the rows of the first copy, with their share of the weight."""
        if self.n_copies == 1:
            return self
        first = np.arange(self.n_rows) < self.n_rows // self.n_copies
        return replace(self.take(first), n_copies=1)

    def take(self, kept: NDArray[np.bool_]) -> "TrainingSet":
        """Return some of the rows; of several copies the same rows of each."""
        rows = np.flatnonzero(kept)
        return replace(
            self,
            code_columns=np.ascontiguousarray(self.code_columns[:, rows]),
            code_rows=np.ascontiguousarray(self.code_rows[rows]),
            target=self.target.take(rows),
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.target)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.code_columns)
