"""How far the training rows lie from their predictions: the noise that a regressor knows of."""

from sglb.chain import Chain
from sglb.ensemble import Ensemble
from sglb.losses import Loss

# Losses whose prediction is the mean of y, so that residuals have a variance about it.
MEAN_LOSSES = ("squared", "poisson")


def predicts_means(loss: Loss) -> bool:
    """Whether the residuals of a loss have a variance."""
    return loss.task == "regression" and loss.name in MEAN_LOSSES


def residual_variance(chain: Chain, trace: Ensemble) -> float | None:
    """Weighted mean squared residual of the training rows, None if predictions are not means.

    The rows are taken as the chain saw them: in prediction a training row's mean by category would
    know its own y. A chain that was cut back to `trace` is replayed.
    """
    rows = chain.rows
    if not predicts_means(rows.loss):
        return None
    cut_back = len(trace) < len(chain.trace)
    squares = rows.squared_residuals(trace if cut_back else None)
    return squares.value() / rows.totals.total_weight
