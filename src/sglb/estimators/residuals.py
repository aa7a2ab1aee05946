"""How far the training rows lie from their predictions: the noise that a regressor knows of."""

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.callbacks import BaseCallback, StepInfo
from sglb.ensemble import Ensemble
from sglb.losses import Loss
from sglb.losses.shapes import user_shape
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]


class LastScores(BaseCallback):
    """Keeps the raw scores of the training rows, (n_outputs, n_rows), where the chain ended."""

    def __init__(self) -> None:
        self.n_steps = -1
        self.raw: Floats = np.empty((0, 0))

    def finish(self, info: StepInfo) -> None:
        """Keep the loop's own array: nobody writes to it any more."""
        self.n_steps, self.raw = info.step, info.raw


def residual_variance(
    training_set: TrainingSet, loss: Loss, ensemble: Ensemble, last: LastScores, threads: int
) -> float | None:
    """Weighted mean squared residual of the training rows, None if predictions are not means.

    The rows are taken as the chain saw them: in prediction a training row's mean by category would
    know its own y. A chain that was cut back is replayed; else `last` has the same numbers.
    """
    if not loss.predicts_mean:
        return None
    whole = last.n_steps == len(ensemble)
    raw = last.raw if whole else ensemble.replay(training_set.code_columns, threads)[0]
    residual = training_set.y - loss.link(user_shape(raw))
    return sums.mean(np.square(residual), training_set.weight)
