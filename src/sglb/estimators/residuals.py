"""How far the training rows lie from their predictions: the noise that a regressor knows of."""

import math
from collections.abc import Sequence

from sglb.chain import Chain
from sglb.trace import Trace


def residual_variance(chain: Chain, traces: Sequence[Trace]) -> float | None:
    """Weighted mean squared residual of the training rows, None if predictions are not means or
    the squares of such large y are not finite.

    The rows are taken as a chain saw them: in prediction a training row's mean by category would
    know its own y. Several chains, and a single one that was cut back, are replayed on its rows.
    """
    rows = chain.rows
    if not rows.loss.predicts_mean:
        return None
    is_current = len(traces) == 1 and len(traces[0]) == len(chain.trace)
    squares = rows.squared_residuals(() if is_current else traces)
    variance = squares.value() / rows.totals.total_weight
    return variance if math.isfinite(variance) else None
