"""The interface of a ranking loss: rows of a query are compared with one another.

A row's y is its relevance, 0 or more; only differences of raw scores within a query matter, so that
a chain starts at 0. Weights are those of rows, and multiply their gradients as everywhere.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sglb import _core
from sglb.losses.base import LEAST_WIDTH, Floats, Loss, Refresh
from sglb.target import Target


class QuerySlopes(NamedTuple):
    """What a ranking loss is asked for: arrays (n_rows,) in the order of the target's rows.

    Without draws a random gradient is replaced by its mean.
    """

    raw: Floats
    gradient: Floats  # OUT
    hessian: Floats | None  # OUT
    draws: _core.Draws | None = None
    n_threads: int = 1


FillSlopes = Callable[[QuerySlopes], None]

# Gains are 2^relevance - 1: beyond this a single row would outweigh all others.
MOST_RELEVANCE = 50.0


class RankingLoss(Loss):
    """A loss whose rows depend on the other rows of their query.

    Where a method has no target but y, the rows are a single query.
    """

    task = "ranking"
    independent = False
    row_wise = False
    by_group = True
    starts_at_zero = True
    uses_gain = False  # whether relevances count as 2^relevance - 1

    @abstractmethod
    def slopes_on(self, target: Target) -> FillSlopes:
        """Return what computes gradient and curvature on a target, whose layout is found once."""

    def check_target(self, target: Target) -> None:
        """Reject relevances that are not finite, negative or too large for gains."""
        y = target.values
        self._require(np.isfinite(y), y, "a finite number")
        self._require(y >= 0.0, y, "a relevance of 0 or more (subtract the lowest grade)")
        if self.uses_gain:
            domain = f"a relevance of at most {MOST_RELEVANCE:g} (gains are 2^relevance - 1)"
            self._require(y <= MOST_RELEVANCE, y, domain)

    def is_residual(self, y: Floats) -> bool:
        """Whether raw scores are in the unit of y: those of ranking losses are not."""
        return False

    def init(self, target: Target) -> Floats:
        """0: the same number added to all raw scores changes nothing."""
        return np.zeros(1)

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """Return the loss of each row of a single query."""
        return self.losses(single_query(y), raw)

    def derivatives(self, y: Floats, raw: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature of each row of a single query."""
        return self._mean_slopes(single_query(y), raw)

    def gradients(self, target: Target, raw: Floats) -> Floats:
        """Return dL/dz; of a random gradient its mean."""
        return self._mean_slopes(target, raw)[0]

    def curvatures(self, target: Target, raw: Floats, length: float) -> Floats:
        """Return the curvature of each row."""
        return self._mean_slopes(target, raw)[1]

    def _mean_slopes(self, target: Target, raw: Floats) -> tuple[Floats, Floats]:
        raw = np.ascontiguousarray(raw, dtype=np.float64)
        gradient, hessian = np.empty_like(raw), np.empty_like(raw)
        self.slopes_on(target)(QuerySlopes(raw, gradient, hessian))
        return gradient, hessian

    def slopes(self, target: Target, raw: Floats, *, newton: bool) -> None:
        """Return None: gradients are those of whole queries, and stored."""
        return

    def stored_slopes(
        self, target: Target, raw: Floats, gradient: Floats, hessian: Floats | None
    ) -> tuple[_core.Slopes, Refresh]:
        """Return slopes stored in arrays, and a function that fills the arrays."""
        fill, second = self.slopes_on(target), None if hessian is None else hessian[0]

        def refresh(n_threads: int, draws: _core.Draws) -> tuple[float, float]:
            fill(QuerySlopes(raw[0], gradient[0], second, draws, n_threads))
            bound = 0.0 if hessian is None else _core.largest(hessian, n_threads)
            return _core.largest(gradient, n_threads), bound

        return _core.Slopes(gradient, hessian), refresh


def check_shift(loss: RankingLoss, mu: float) -> None:
    """Reject a shift per relevance that makes scores overflow, with any width that is valid."""
    if not abs(mu) <= 1.0 / LEAST_WIDTH:
        raise ValueError(f"mu of loss '{loss.name}' must be within -1e100 and 1e100, got {mu!r}")


def once(target: Target, loss: RankingLoss, compute: Callable[[], Floats]) -> Floats:
    """Return compute(), values of rows that depend on the target and on the stated loss alone.

    A fit asks for them when it adapts the loss, when it resolves "auto" and at each chain's steps.
    """
    for key, values in target.computed:
        if key == loss:
            return values
    values = compute()
    values.flags.writeable = False
    target.computed.append((loss, values))
    return values


def single_query(y: Floats) -> Target:
    """Return relevances of rows that are ranked together."""
    return Target.of(y, groups=np.zeros(len(y), dtype=np.int64))
