"""First and second derivatives of the loss where the chain is."""

import math

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.errors import ChainDiverged, NonFiniteGradient
from sglb.losses import Loss
from sglb.samplers import Move
from sglb.target import Target
from sglb.totals import Totals

Floats = NDArray[np.float64]

# Beyond this many rows gradients do not stay in a cache between the two times that a step reads
# them; a loss of bounded gradient is then evaluated where it is needed instead of stored.
STORED_ROWS = 50_000


# Bounds of |gradient|, as the estimate from a sample of rows has it, and of the hessian.
SlopeBounds = tuple[float, float]


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
        slopes, refresh = None, None
        bounded = loss.lipschitz is not None and (loss.smoothness is not None or not newton)
        if bounded and totals.n_rows * totals.n_copies > STORED_ROWS:
            slopes = loss.slopes(target, raw, newton=newton)
        if slopes is None:
            gradient = np.empty_like(raw)
            hessian = np.empty_like(raw) if newton else None
            slopes, refresh = loss.stored_slopes(target, raw, gradient, hessian)
        self.slopes = slopes
        self._refresh = refresh
        self._bounds = loss.lipschitz or math.inf, loss.smoothness or 0.0

    @property
    def is_stored(self) -> bool:
        """Whether slopes are kept in arrays, rather than evaluated where they are needed."""
        return self._refresh is not None

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
        return bounds if move.subsample == 1.0 else (bounds[0] / move.subsample, bounds[1])
