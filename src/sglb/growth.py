"""Does the chain run away? A look at the loss now and then."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.errors import ChainDiverged
from sglb.samplers import Move

if TYPE_CHECKING:
    from sglb.rows import Rows
    from sglb.trace import Trace

Floats = NDArray[np.float64]

# Steps between two looks at the leaf values: next to nothing, and soon enough.
LOOK_EVERY = 8
# Leaf values are suspicious when they are this many times as large as those of the first tree. A
# chain has run away when its mean loss is this many standard deviations of a row's loss, and this
# many times that loss, above the start.
GROWN, FAR = 30.0, 10.0
# Steps after which the loss is looked at even without suspicion.
LOOKS = frozenset(8 * 2**k + 1 for k in range(20))


class GrowthCheck:
    """Raises ChainDiverged if the mean loss has grown far beyond that of the start.

    Where the gradient is that of the loss, a chain that runs away has ever larger leaf values, so
    that the loss, which takes a pass over the rows, is looked at only then. A user's gradient may
    be anything: there the loss is looked at now and then as well.
    """

    def __init__(self, rows: "Rows", trace: "Trace") -> None:
        self.rows = rows
        self.trace = trace
        self._largest = 0.0  # leaf value of the first tree

    def check(self, values: Floats, move: Move, step: int) -> None:
        """Look at the values of the tree of a step, which counts from 1."""
        size = float(np.abs(values).max())
        if not math.isfinite(size):
            raise ChainDiverged(step)
        self._largest = self._largest or size
        in_doubt = not self.rows.loss.proven and step in LOOKS
        if size <= GROWN * self._largest and not in_doubt:
            return
        self._largest = max(size, self._largest)
        with np.errstate(all="ignore"):
            start, deviation = _moments(*self.rows.losses(self.trace.offset))
            now, _ = _moments(*self.rows.losses())
            # What the noise adds to the loss of a row is of the order of the temperature.
            warmth = move.temperature / self.rows.totals.mean_weight
            far = start + FAR * (deviation + abs(start) + warmth)
        if not now <= far and math.isfinite(far):  # what is not a number is far away, too
            raise ChainDiverged(step, start, now)


def _moments(losses: Floats, weight: Floats) -> tuple[float, float]:
    """Return the weighted mean of losses, and their standard deviation."""
    mean = sums.mean(losses, weight)
    return mean, math.sqrt(sums.mean(np.square(losses - mean), weight))
