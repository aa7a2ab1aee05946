"""Draws of a fitted model, as users see them."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from sglb import diagnostics
from sglb.estimators.arviz import to_arviz
from sglb.estimators.fitted import write_model
from sglb.estimators.sources import Source
from sglb.losses.shapes import user_shape
from sglb.posterior import ChainPosterior, PosteriorPlan
from sglb.uncertainty import Uncertainty, of_means, of_probabilities

if TYPE_CHECKING:
    from sglb.estimators.base import ChainEstimator

Floats = NDArray[np.float64]

# R-hat of a row is too large above LARGEST_RHAT, or where chance makes it so only RARELY. Draws of
# a batch share their partitions, so that chance does so more often: up to 4 % of the rows of chains
# that are long enough. More than MANY of them are a sign of short chains.
LARGEST_RHAT, RARELY, MANY = 1.01, 0.01, 0.1
# Change of the variance that chains which are long enough do not show.
STILL = 0.1


class Posterior:
    """Draws from the posterior of a fitted model: each draw is a model of its own.

    Made by `model.posterior(X, y)`, and for models of other libraries by `sglb.posterior_of`. The
    draws of all methods share one traversal of the trees, and rows are computed block by block, so
    that memory grows with what is returned only.
    """

    def __init__(self, source: Source, posterior: ChainPosterior) -> None:
        self._source = source
        self._posterior = posterior

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
        return self._posterior.draws.n_draws

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
                "a file of this library does not hold a model of another one: save the model by"
                " its own means, load it and call sglb.posterior_of(model, X, y) again; the same"
                " random_state gives the same draws"
            )
        write_model(model._fitted(), path, self._posterior, stacklevel=2)

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

        An `InferenceData` of ArviZ 0.2x, a `DataTree` of ArviZ 1. The group `posterior` has one
        chain, as draws are independent of each other but for their mirror images: in a posterior of
        kind "laplace" draw n_draws / 2 + m is draw m, mirrored at the model.
        """
        raw = self.predict_raw(X)
        return to_arviz(raw, self._predict_from(raw), self._source.classes)

    def summary(self) -> "PosteriorSummary":
        """Return whether the draws can be trusted: prints as a table with advice."""
        return PosteriorSummary(self._posterior)

    def _raw_blocks(self, X: Any) -> Iterator[Floats]:
        """Yield raw scores (n_draws, rows of a block[, n_outputs])."""
        source, draws = self._source, self._posterior.draws
        partitions, centre = source.rows(X)
        for rows, values in draws.blocks(partitions, source.n_threads):
            raw = centre[:, rows, None] + values
            yield np.stack([user_shape(raw[:, :, m]) for m in range(raw.shape[2])])
        if not partitions.n_rows:
            yield np.empty((draws.n_draws, *user_shape(centre).shape))

    def _blocks(self, X: Any) -> Iterator[Floats]:
        for raw in self._raw_blocks(X):
            yield self._predict_from(raw)

    def _predict_from(self, raw: Floats) -> Floats:
        """Return the predictions that raw scores of draws (n_draws, n_rows[, ...]) lead to."""
        shape = raw.shape[:2]
        flat = self._source.predict_from(raw.reshape(-1, *raw.shape[2:]))
        return flat.reshape(*shape, *flat.shape[1:])


class PosteriorSummary:
    """Whether draws can be trusted, measured at up to 500 training rows.

    rhat          R-hat of the draws halfway through their chains against those at the end, one
                  value a row and output: near 1 where the chains have forgotten their start
    ess           effective draws a row: draws are independent, so that this is near their number
    knowledge     mean variance of the raw scores over draws
    change        of that variance in the second half of the chains, relative: near 0 where they are
                  long enough; more sensitive than R-hat, as it is over all rows
    """

    def __init__(self, posterior: ChainPosterior) -> None:
        stages = posterior.draws.stages
        _, n_outputs, n_rows, n_draws = stages.shape
        draws = np.moveaxis(stages, 3, 1).reshape(2, n_draws, n_outputs * n_rows)
        if posterior.draws.mirror:  # a draw and its mirror image are one draw to a test of a law
            draws = draws[:, : n_draws // 2]
        self.plan = posterior.plan
        self.n_draws, self.ess_draws = n_draws, draws.shape[1]
        self.rhat: Floats = diagnostics.rhat(draws)
        self.ess: Floats = diagnostics.ess_bulk(draws[1:])
        halfway, self.knowledge = (float(stage.var(axis=2).mean()) for stage in stages)
        self.change = self.knowledge / halfway - 1.0 if halfway > 0.0 else 0.0

    @property
    def share_converged(self) -> float:
        """Share of the rows with an R-hat below 1.01, or below what is chance for so few draws."""
        # R-hat^2 is 1 + (F - 1) / n for a ratio F of mean squares of m = 4 halves of n draws, and
        # the larger of two such numbers: one of ranks, one of their distances from the middle.
        n = self.ess_draws // 2
        by_chance = math.sqrt(1.0 + (f.ppf(1.0 - RARELY / 4.0, 3, 4 * (n - 1)) - 1.0) / n)
        return float((self.rhat < max(LARGEST_RHAT, by_chance)).mean())

    @property
    def warnings(self) -> list[str]:
        """What is wrong, and what to do."""
        found = []
        if self.share_converged < 1.0 - MANY:
            found.append(
                f"R-hat is too large at {1.0 - self.share_converged:.1%} of the rows: the chains"
                f" have not forgotten their start; use more than n_steps={self.plan.n_steps}"
            )
        if abs(self.change) > STILL:
            found.append(
                f"the variance of the draws changed by {self.change:.0%} in the second half of"
                f" their chains; use more than n_steps={self.plan.n_steps}"
            )
        if self.n_draws < 50:
            found.append(
                f"{self.n_draws} draws: an average over them is off by knowledge / {self.n_draws}"
                " in the loss; use 100 or more"
            )
        return found

    def __str__(self) -> str:
        plan = self.plan
        median, high = np.quantile(self.rhat, (0.5, 0.99))
        rows = [
            ("kind", plan.kind),
            ("draws", f"{self.n_draws}"),
            ("steps of a chain", f"{plan.n_steps}"),
            ("prior variance", f"{plan.prior_variance:g}"),
            ("temperature", f"{plan.temperature:.4g}"),
            ("variance of raw scores", f"{self.knowledge:.4g}"),
            ("its change, second half", f"{self.change:+.1%}"),
            ("error of a mean", f"{self.knowledge / self.n_draws:.2g} in the loss"),
            ("R-hat, median and 99 %", f"{median:.3f}, {high:.3f}"),
            ("effective draws, median", f"{np.median(self.ess):.0f}"),
        ]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    __repr__ = __str__
