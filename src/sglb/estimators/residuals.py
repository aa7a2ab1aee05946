"""How far the training rows lie from their predictions: the noise that a regressor knows of."""

from sglb.chain import Chain
from sglb.trace import Trace


def residual_variance(chain: Chain, trace: Trace) -> float | None:
    """Weighted mean squared residual of the training rows, None if predictions are not means.

    The rows are taken as the chain saw them: in prediction a training row's mean by category would
    know its own y. A chain that was cut back to `trace` is replayed.
    """
    rows = chain.rows
    if not rows.loss.predicts_mean:
        return None
    cut_back = len(trace) < len(chain.trace)
    squares = rows.squared_residuals(trace if cut_back else None)
    return squares.value() / rows.totals.total_weight
