"""Draws -> mean, knowledge, data and total uncertainty. Pure functions.

Draws are predictions of a model in several states of its chain, shape (n_states, ...). Knowledge
uncertainty, the disagreement of the states, is what more data could remove; data uncertainty is the
noise of the outcome, which no data can remove; total = knowledge + data.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Uncertainty(NamedTuple):
    """A prediction and its uncertainty; `data` and `total` are None where they are not known."""

    mean: Floats
    knowledge: Floats
    data: Floats | None
    total: Floats | None


def entropy(probability: Floats) -> Floats:
    """Return the entropy in nats over the last axis, -sum_c p_c log p_c, with 0 log 0 = 0."""
    positive = np.where(probability > 0.0, probability, 1.0)
    return np.asarray(0.0 - np.sum(probability * np.log(positive), axis=-1), dtype=np.float64)


def of_probabilities(draws: Floats) -> Uncertainty:
    """Split the entropy of class probabilities, draws (n_states, n_rows, n_classes).

    total = H[mean p], data = mean H[p], knowledge = total - data, the mutual information between
    the class and the state: never negative, zero if and only if the states agree.
    """
    mean = draws.mean(axis=0)
    total = entropy(mean)
    # By Jensen's inequality the difference is >= 0, but rounding may violate it.
    data = np.minimum(entropy(draws).mean(axis=0), total)
    return Uncertainty(mean, total - data, data, total)


def of_means(draws: Floats, noise_variance: float | None) -> Uncertainty:
    """Split the variance of a real outcome, draws (n_states, n_rows) of its mean.

    knowledge = variance of the mean over the states, data = `noise_variance`, the variance of the
    outcome about its mean (one number for all rows), total = their sum: the law of total variance.
    """
    return of_moments(draws.mean(axis=0), draws.var(axis=0), noise_variance)


def of_moments(mean: Floats, knowledge: Floats, noise_variance: float | None) -> Uncertainty:
    """Return the uncertainty for a mean and variance over the states, as in `of_means`."""
    if noise_variance is None:
        return Uncertainty(mean, knowledge, None, None)
    data = np.full_like(knowledge, noise_variance)
    return Uncertainty(mean, knowledge, data, knowledge + data)
