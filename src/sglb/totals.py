"""What a shard knows of all rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sglb import _core, sums
from sglb.target import Target, weight_unit
from sglb.weights import are_equal


class Weighed(Protocol):
    """Rows with weights, in one copy or several."""

    @property
    def target(self) -> Target:
        """Values and weights of `n_rows` rows."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows, copies included."""
        ...

    @property
    def n_copies(self) -> int:
        """Number of copies."""
        ...


@dataclass(frozen=True)
class Totals:
    """What a shard knows of all rows: their number, copies and weights."""

    n_rows: int  # of one copy
    n_copies: int = 1
    unit: float = 1.0  # weight of an ordinary row
    largest: float = 1.0  # weight, in units
    weight: float = 1.0  # sum of weights, in units
    typical: float = 1.0  # sum of squared weights / sum of weights
    total_weight: float = 1.0  # sum of weights as they are
    has_weights: bool = False

    @property
    def n_rows_with_copies(self) -> int:
        """Rows of all copies."""
        return self.n_rows * self.n_copies

    @property
    def mean_weight(self) -> float:
        """Weight of a row on average."""
        return self.total_weight / self.n_rows_with_copies

    def core_weights(self, target: Target) -> _core.Weights:
        """Return the weights of a shard's rows for kernels, which measure them in units.

        Whether there are any is known of all rows: a shard may have none.
        """
        weight = np.ascontiguousarray(target.weight) if self.has_weights else None
        return _core.Weights(weight, self.unit, self.largest, self.weight, self.typical)

    @classmethod
    def of(cls, parts: Sequence[Weighed]) -> "Totals":
        """Return the totals of the rows of all parts."""
        n_copies = parts[0].n_copies
        n_rows = sum(part.n_rows for part in parts)
        if all(are_equal(part.target.weight) for part in parts):
            all_rows = float(n_rows)
            return cls(n_rows // n_copies, n_copies, weight=all_rows, total_weight=all_rows)
        weight = np.concatenate([part.target.weight for part in parts])
        largest = float(weight.max(initial=0.0))
        unit = weight_unit(weight, n_copies)
        typical = 1.0
        if largest > 0.0:  # in shares of the largest, whose square may be too large for a double
            share = weight / largest
            typical = sums.total(share, share) / sums.total(share) * largest
        return cls(
            n_rows // n_copies,
            n_copies,
            unit,
            largest / unit,
            sums.total(weight / unit),
            typical,
            sums.total(weight),
            has_weights=True,
        )
