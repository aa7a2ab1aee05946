"""StochasticRank: a ranking metric, smoothed by normal noise on the scores."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from sglb import _core, sums
from sglb.losses.base import Floats, read_positive, whole_count
from sglb.losses.ranking import FillSlopes, QuerySlopes, check_shift, once
from sglb.losses.ranking_metric import MetricLoss
from sglb.schedules import Scheduled, last_of, value_at
from sglb.target import Target

# Samples of the curvature, and of a mean gradient where nothing is drawn. A pair of mirror images
# is enough in long queries, where each sample averages over many boundaries.
MANY_SAMPLES = 64
MANY_BOUNDARIES = 1 << 16
FIXED = _core.Draws(0, 0)


@dataclass(frozen=True)
class StochasticRank(MetricLoss):
    """StochasticRank (Ustimenko and Prokhorenkova, 2020).

    Domain      0 <= y <= 50, the relevance
    Formula     L = -E M(z - sigma mu y + sigma e) / unit, e standard normal; M the metric of the
                query
    Gradient    an unbiased estimate from `n_samples` draws of e at each step
    Hessian     a curvature of each row at z = 0, the same in all steps, so that the chain has the
                law of this loss: the sum over the boundaries to the other rows of |change of M|
                times the density of the row's score over the density's width
    Unit        the mean curvature of the training rows, which is therefore 1
    Start       0

    With `mu` 0 `sigma` is only the unit of raw scores. A reported loss has no noise and no unit.
    `sigma` may be a schedule, such as "geometric(3, 1)": the unit follows it, so that the curvature
    of a row is the same at every step. A curvature is the mean over `curvature_samples` draws;
    None: 64, fewer where queries are long.
    """

    sigma: Scheduled = 1.0
    mu: float = 0.0
    n_samples: int = 1
    unit: float | None = None
    curvature_samples: int | None = None

    name = "stochastic_rank"
    estimated = True
    default_learning_rate = 0.1

    def __post_init__(self) -> None:
        """Validate the parameters."""
        super().__post_init__()
        object.__setattr__(self, "sigma", read_positive(self, "sigma", self.sigma))
        check_shift(self, self.mu)
        object.__setattr__(self, "n_samples", whole_count(self, n_samples=self.n_samples))
        if self.curvature_samples is not None:
            count = whole_count(self, curvature_samples=self.curvature_samples)
            object.__setattr__(self, "curvature_samples", count)

    def adapt(self, target: Target, n_threads: int = 1) -> Self:
        """Return the loss with the highest relevance and the mean curvature of the target."""
        loss = super().adapt(target)
        loss = replace(loss, curvature_samples=loss._samples(target))
        if loss.unit is not None:
            return loss
        curvature = loss._curvature(target, n_threads)
        unit = sums.mean(curvature, target.weight) if len(curvature) else 0.0
        return replace(loss, unit=unit if unit > 0.0 else 1.0)

    def curvatures(self, target: Target, raw: Floats, length: float) -> Floats:
        """Return the curvature of each row, which does not depend on the raw scores."""
        return self._curvature(target) / (self.unit or 1.0)

    def _curvature(self, target: Target, n_threads: int = 1) -> Floats:
        """Return the curvature of each row, not divided by the unit."""
        sigma, n_samples = last_of(self.sigma), self._samples(target)

        def compute() -> Floats:
            hessian = np.empty(len(target))
            smoothing = _core.Smoothing(sigma, self.mu, n_samples)
            ranking = self._ranking(target, self.metric)
            _core.rank_curvature(ranking, smoothing, FIXED, hessian, n_threads)
            return hessian

        same = replace(self, sigma=sigma, n_samples=1, unit=None, curvature_samples=n_samples)
        return once(target, same, compute)

    def _samples(self, target: Target) -> int:
        """Return how many samples make a mean: each has as many boundaries as places count."""
        if self.curvature_samples is not None:
            return self.curvature_samples
        longest = int(target.queries.sizes.max(initial=1))
        n_places = min(self.cutoff or longest, longest)
        return min(MANY_SAMPLES, 2 * max(1, MANY_BOUNDARIES // (2 * n_places)))

    def slopes_on(self, target: Target) -> FillSlopes:
        """Return the estimated gradient and the fixed curvature."""
        ranking = self._ranking(target, self.metric)
        unit = 1.0 if self.unit is None else self.unit
        last = last_of(self.sigma)

        def fill(at: QuerySlopes) -> None:
            sigma, n_samples, draws = last, self._samples(target), FIXED
            if at.draws is not None:
                sigma, n_samples = value_at(self.sigma, at.draws.step), self.n_samples
                draws = at.draws
            smoothing = _core.Smoothing(sigma, self.mu, n_samples)
            _core.stochastic_rank(ranking, at.raw, smoothing, draws, at.gradient, at.n_threads)
            # At z = 0 a curvature is that of sigma = 1 over sigma².
            np.divide(at.gradient, unit * (last / sigma) ** 2, out=at.gradient)
            if at.hessian is not None:
                np.divide(self._curvature(target, at.n_threads), unit, out=at.hessian)

        return fill
