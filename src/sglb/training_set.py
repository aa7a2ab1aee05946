"""What a chain learns from: codes, targets and weights, fixed before its first step.

Codes are held twice. Histograms read one row's codes together (`code_rows`, padded to a multiple
of eight), leaves and prediction read one feature's codes together (`code_columns`). Where memory is
short the codes by row may be left out: those of a sample are gathered, which takes longer.
"""

from dataclasses import dataclass, replace
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.bundles import Bundles
from sglb.caching import cached_property
from sglb.code_layout import CodeCounts, CodeLayout
from sglb.target import Target


@dataclass(frozen=True)
class TrainingSet:
    """Immutable rows of a problem.

    A set may hold several copies of the rows, one after the other, that differ in features which
    depend on an order of the rows. Structures are searched on one copy at a time.
    """

    code_columns: NDArray[np.uint8]  # (n_features, n_rows)
    code_rows: NDArray[np.uint8]  # (n_rows, stride), columns of the search, or (0, stride)
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
        counts = CodeCounts.of(code_columns, n_codes)
        layout = CodeLayout.decide(
            n_codes, counts, lambda two, _: Bundles.find(code_columns, two), is_level=is_level
        )
        if counts.n_rows % n_copies:
            raise ValueError(f"{counts.n_rows} rows are not {n_copies} copies of the same rows")
        code_rows = layout.rows(code_columns, n_threads)
        return cls.laid_out(code_columns, code_rows, layout, target, n_copies=n_copies)

    @classmethod
    def laid_out(
        cls,
        code_columns: NDArray[np.uint8],
        code_rows: NDArray[np.uint8],
        layout: CodeLayout,
        target: Target,
        *,
        n_copies: int = 1,
    ) -> "TrainingSet":
        """Return codes that a layout has turned into rows, all rows of a problem or a part."""
        return cls(
            code_columns=code_columns,
            code_rows=code_rows,
            n_codes=layout.n_codes,
            kinds=layout.kinds,
            target=target,
            n_copies=n_copies,
            bundles=layout.bundles,
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
            code_rows=np.ascontiguousarray(self.code_rows[rows if len(self.code_rows) else []]),
            target=self.target.take(rows),
        )

    @cached_property
    def turned_rows(self) -> NDArray[np.uint8]:
        """The codes by row, turned now if they are left out."""
        if len(self.code_rows) or self.bundles is not None:
            return self.code_rows
        return CodeLayout(self.n_codes, self.kinds).rows(self.code_columns)

    @property
    def is_mapped(self) -> bool:
        """Whether the codes are in a file that is mapped into memory."""
        owner: Any = self.code_columns
        while isinstance(owner, np.ndarray):
            owner = owner.base
        return isinstance(owner, memoryview) and isinstance(owner.obj, mmap)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.target)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.code_columns)
