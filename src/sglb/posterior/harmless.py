"""How wide draws of classes may be: the largest prior variance that does not harm predictions.

The mean m of the probabilities of the draws lies nearer to the middle than the model's own p. If q
are the true probabilities, predicting m instead of p costs a row

    sum over classes of q log(p / m),

which is compared with the entropy of q, the least loss there is. Two things have to be assumed:

    q   A model that is stopped early is often too cautious, and then m, which is still more so,
        costs most. Here raw scores, log odds, are taken to be 10 % too small.
    m   Draws differ less at a training row than at a new one, because the row itself holds them.
        Without row i of curvature h_i its variance v_i would be v_i / (1 - h_i v_i), exactly so of
        a Gaussian posterior; its draws are stretched to that variance.
"""

from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.elementary import log
from sglb.losses import Loss
from sglb.losses.shapes import user_shape

Floats = NDArray[np.float64]

# From the widest down, each 10^(1/4) of the one before.
PRIOR_VARIANCES = (3.0, 1.7, 1.0, 0.55, 0.3, 0.17, 0.1, 0.055, 0.03, 0.017, 0.01)
# What the mean of the draws may cost, in shares of the loss.
LARGEST_COST = 1e-3
# True raw scores over the model's. On test rows of eleven tables their best factor was .91 to 1.12.
CAUTION = 1.1
# A row that is alone in its leaves has h v near 1: its draws are stretched threefold at most.
LARGEST_LEVERAGE = 0.9


def largest_harmless(
    loss: Loss, raw: Floats, curvature: Floats, draw: Callable[[float], Floats]
) -> float:
    """Return the largest prior variance whose mean probabilities cost at most 0.1 % of the loss.

    `raw` and `curvature` (n_outputs, n_rows) are of some training rows, the curvature weighted;
    `draw` returns draws of a prior variance there, (n_outputs, n_rows, 2 M), of which the last M
    are mirror images of the first.
    """
    p = _probabilities(loss, raw)
    q = _probabilities(loss, CAUTION * raw)
    least = sums.mean(_cross_entropy(q, q))
    cost = sums.mean(_cross_entropy(q, p))

    def is_harmless(variance: float) -> bool:
        # The mean over M pairs of a normal d and -d costs 1 + 2 / M times as much as that over
        # infinitely many, near enough for M = 32: the cost is that of the mean of d^2, squared.
        draws = like_new_rows(draw(variance), curvature)
        n_draws = draws.shape[2]
        m = sum(
            (_probabilities(loss, raw + draws[:, :, k]) for k in range(n_draws)), np.zeros_like(p)
        )
        m /= n_draws
        return sums.mean(_cross_entropy(q, m)) - cost <= LARGEST_COST * least

    # The cost grows with the variance; the least variance is not tried.
    return PRIOR_VARIANCES[bisect_left(PRIOR_VARIANCES[:-1], True, key=is_harmless)]


def like_new_rows(draws: Floats, curvature: Floats) -> Floats:
    """Stretch draws at training rows to the variance that they would have without their row.

    Outputs are taken one by one.
    """
    n_draws = draws.shape[2]
    squares = sum((np.square(draws[:, :, k]) for k in range(n_draws)), np.zeros(draws.shape[:2]))
    leverage = np.minimum(curvature * squares / n_draws, LARGEST_LEVERAGE)
    stretched: Floats = draws / np.sqrt(1.0 - leverage)[:, :, None]
    return stretched


def _cross_entropy(q: Floats, p: Floats) -> Floats:
    """Return minus the mean log of probabilities p (n_rows, n_classes) where q are true."""
    rows: Floats = -sums.over_axis(q * log(np.maximum(p, 1e-300)))
    return rows


def _probabilities(loss: Loss, raw: Floats) -> Floats:
    """Return the probabilities of all classes at raw scores (n_outputs, n_rows)."""
    probability = loss.link(user_shape(raw))
    if probability.ndim == 1:
        probability = np.stack([1.0 - probability, probability], axis=-1)
    return probability
