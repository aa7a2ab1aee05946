"""Draws of a fitted model, as users see them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sglb.estimators.arviz import to_arviz
from sglb.estimators.drawn import draws_at
from sglb.estimators.fitted import write_model
from sglb.estimators.sources import Source
from sglb.estimators.summary import PosteriorSummary, summarise
from sglb.losses.shapes import user_shape
from sglb.posterior import AnyPosterior, PosteriorPlan
from sglb.uncertainty import Uncertainty, of_means, of_probabilities

if TYPE_CHECKING:
    from sglb.estimators.base import ChainEstimator

Floats = NDArray[np.float64]


class Posterior:
    """Draws from the posterior of a fitted model: each draw is a model of its own.

    Made by `model.posterior(X, y)`, and for models of other libraries by `sglb.posterior_of`. The
    draws of all methods share one traversal of the trees, and rows are computed block by block, so
    that memory grows with what is returned only.
    """

    def __init__(self, source: Source, posterior: AnyPosterior) -> None:
        self._source = source
        self._posterior = posterior
        self._draws = draws_at(source, posterior)

    def __repr__(self) -> str:
        plan = self.plan
        return (
            f"Posterior(kind={plan.kind!r}, n_draws={plan.n_draws}, prior_variance="
            f"{plan.prior_variance:g}, temperature={plan.temperature:g})"
        )

    @property
    def plan(self) -> PosteriorPlan:
        """What was drawn: kind, draws, prior variance, temperature, steps, seed."""
        return self._posterior.plan

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return self._posterior.n_draws

    @property
    def model(self) -> "ChainEstimator | None":
        """The fitted estimator that was drawn from, None for a model of another library."""
        return self._source.estimator

    def save(self, path: str | Path) -> None:
        """Write draws and model to a file, whole or not at all; `sglb.load` reads both.

        The loaded posterior predicts the same bits, and has the estimator as `model`. Of a loss of
        your own the file holds as little as that of a model does.
        """
        model = self.model
        if model is None:
            raise TypeError(
                "files of sglb do not store a model of another library: save that model with its"
                " library, load it and call sglb.posterior_of(model, X, y) again; the same"
                " random_state gives the same draws"
            )
        write_model(model._fitted(), path, self._posterior)

    def predict_raw(self, X: Any) -> Floats:
        """Return the raw scores of all draws, (n_draws, n_rows[, n_outputs])."""
        return np.concatenate(list(self._raw_blocks(X)), axis=1)

    def predict(self, X: Any) -> Floats:
        """Return the predictions of all draws, (n_draws, n_rows[, n_outputs or n_classes]).

        Numbers in regression, probabilities of classes otherwise.
        """
        return np.concatenate(list(self._blocks(X)), axis=1)

    def mean(self, X: Any) -> Floats:
        """Return the mean of the predictions of the draws."""
        return np.concatenate([draws.mean(axis=0) for draws in self._blocks(X)])

    def std(self, X: Any) -> Floats:
        """Return the standard deviation of the predictions of the draws."""
        return np.concatenate([draws.std(axis=0) for draws in self._blocks(X)])

    def interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return quantiles of the predictions of the draws, (n_rows, ..., 2).

        An interval for the prediction, that is for the mean or the probability, not for y.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must be in (0, 1), got {coverage!r}")
        levels = [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]
        parts = [np.quantile(draws, levels, axis=0) for draws in self._blocks(X)]
        return np.moveaxis(np.concatenate(parts, axis=1), 0, -1)

    def uncertainty(self, X: Any) -> Uncertainty:
        """Return the mean prediction, and knowledge, data and total uncertainty of each row.

        Of classes entropies in nats. Of numbers variances: `total` is that of y about the
        prediction, learned out of fold, where fit had uncertainty=True; `data` is the rest of it.
        Of counts `data` is the variance of Poisson's law, their mean, and `total` the sum.
        Of another library's model with the squared loss `data` is the temperature. Both are None
        where they are not known.
        """
        if len(self._source.classes):
            parts = [of_probabilities(draws) for draws in self._blocks(X)]
            return Uncertainty(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        moments = [of_means(draws, None)[:2] for draws in self._blocks(X)]
        mean, knowledge = (np.concatenate(arrays) for arrays in zip(*moments, strict=True))
        total = self._source.total_variance(X, knowledge)
        if total is None:
            return Uncertainty(mean, knowledge, None, None)
        return Uncertainty(mean, knowledge, total - knowledge, total)

    def to_arviz(self, X: Any) -> Any:
        """Return raw scores and predictions of all draws at rows as ArviZ has them.

        An `InferenceData` of ArviZ 0.2x, a `DataTree` of ArviZ 1. The group `posterior` has the
        four chains of kind "paper". Of other kinds it has one chain, as draws are independent of
        each other but for their mirror images: in a posterior of kind "laplace" draw
        n_draws / 2 + m is draw m, mirrored at the model.
        """
        raw = self.predict_raw(X)
        prediction = self._predict_from(raw)
        return to_arviz(raw, prediction, self._source.classes, self._draws.n_chains)

    def summary(self) -> PosteriorSummary:
        """Return whether the draws can be trusted: prints as a table with advice."""
        loss = self._source.loss
        return summarise(self._posterior, None if loss is None else loss.smoothness)

    def _raw_blocks(self, X: Any) -> Iterator[Floats]:
        """Yield raw scores (n_draws, rows of a block[, n_outputs])."""
        for raw in self._draws.blocks(X):
            yield np.stack([user_shape(raw[:, :, m]) for m in range(raw.shape[2])])

    def _blocks(self, X: Any) -> Iterator[Floats]:
        for raw in self._raw_blocks(X):
            yield self._predict_from(raw)

    def _predict_from(self, raw: Floats) -> Floats:
        """Return the predictions that raw scores of draws (n_draws, n_rows[, ...]) lead to."""
        shape = raw.shape[:2]
        flat = self._source.predict_from(raw.reshape(-1, *raw.shape[2:]))
        return flat.reshape(*shape, *flat.shape[1:])
