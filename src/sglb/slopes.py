"""First and second derivatives of the loss where the chain is."""

import math

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.errors import ChainDiverged, NonFiniteGradient
from sglb.losses import Loss
from sglb.noise import Role
from sglb.samplers import Move
from sglb.target import Target
from sglb.totals import Totals

Floats = NDArray[np.float64]

# Beyond this many rows gradients do not stay in a cache between the two times that a step reads
# them; a loss of bounded gradient is then evaluated where it is needed instead of stored.
STORED_ROWS = 50_000


# Bounds of |gradient|, as the estimate from a sample of rows has it, and of the hessian.
SlopeBounds = tuple[float, float]


class WholeQueries:
    """Queries that stay in a sample of the rows, or leave it, as a whole.

    A query is drawn by the number of its first row.
    """

    def __init__(self, target: Target, gradient: Floats) -> None:
        queries = target.queries
        self._gradient = gradient  # (n_outputs, n_rows)
        self._query, self._first = queries.query, queries.order[queries.starts[:-1]]
        self._runs = list(target.numbers.runs(len(target)))
        self._words = np.empty((len(target), 4), dtype=np.uint32)

    def sample(self, rate: float, draws: _core.Draws) -> None:
        """Divide the gradients of the queries drawn by the rate; those of the others are 0."""
        for rows, first in self._runs:
            _core.words(draws.seed, draws.step, Role.SUBSAMPLE, 0, first, self._words[rows])
        kept = np.ldexp(self._words[self._first, 0].astype(np.float64), -32) < rate
        self._gradient *= kept[self._query]
        self._gradient /= rate


class SlopesAt:
    """First and second derivatives of the loss at raw scores that change."""

    def __init__(
        self,
        raw: Floats,
        target: Target,
        loss: Loss,
        totals: Totals,
        *,
        newton: bool,
        n_threads: int,
    ) -> None:
        self.raw = raw
        self._n_threads = n_threads
        self._queries: WholeQueries | None = None
        slopes, refresh = None, None
        bounded = loss.lipschitz is not None and (loss.smoothness is not None or not newton)
        if bounded and totals.n_rows_with_copies > STORED_ROWS:
            slopes = loss.slopes(target, raw, newton=newton)
        if slopes is None:
            gradient = np.empty_like(raw)
            hessian = np.empty_like(raw) if newton else None
            slopes, refresh = loss.stored_slopes(target, raw, gradient, hessian)
            if loss.by_group:
                self._queries = WholeQueries(target, gradient)
        self.slopes = slopes
        self._refresh = refresh
        self._bounds = loss.lipschitz or math.inf, loss.smoothness or 0.0

    @property
    def is_stored(self) -> bool:
        """Whether slopes are kept in arrays, rather than evaluated where they are needed."""
        return self._refresh is not None

    def row_rate(self, move: Move) -> float:
        """Return the probability with which kernels keep a row: 1 of rows in sampled queries."""
        return move.subsample if self._queries is None else 1.0

    def update(self, move: Move, draws: _core.Draws) -> SlopeBounds:
        """Make the slopes those of the current raw scores, and return bounds of them.

        A loss whose gradient is a random estimate takes its noise from `draws`.
        """
        bounds = self._bounds
        try:
            if self._refresh is not None:
                bounds = self._refresh(self._n_threads, draws)
        except NonFiniteGradient as error:
            raise NonFiniteGradient(error.row, error.output, draws.step) from error
        if not math.isfinite(bounds[0]):
            raise ChainDiverged(draws.step)
        if self._queries is not None and move.subsample < 1.0:
            self._queries.sample(move.subsample, draws)
        return bounds if move.subsample == 1.0 else (bounds[0] / move.subsample, bounds[1])
