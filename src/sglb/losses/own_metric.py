"""StochasticRank of a user's metric: exact for any function of the relevances in ranked order."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.elementary import exp
from sglb.losses.base import Floats, read_positive
from sglb.losses.ranking import FillSlopes, QuerySlopes, RankingLoss, check_shift, once
from sglb.noise import Role
from sglb.schedules import Scheduled, last_of, value_at
from sglb.target import Target

# Samples of the curvature, in pairs of mirror images, and of a mean gradient where nothing is
# drawn. Each costs up to n² values of the metric in a query of n rows.
SAMPLES = 8
FIXED = _core.Draws(0, 0)
# Calls of the metric in a step, of a microsecond or more each, that nobody waits for.
MOST_CALLS = 1e8


@dataclass(frozen=True)
class OwnMetric(RankingLoss):
    """`StochasticRank` of metric(relevances in ranked order) -> number, higher being better.

    `metric` gets the relevances of one query, the best-scored row first. A step calls it up to n²
    times for a query of n rows, always in one thread. A model file does not contain it.
    """

    metric: Callable[[Floats], float]
    sigma: Scheduled = 1.0
    mu: float = 0.0
    unit: float | None = None

    name = "own_metric"
    estimated = True
    convex = False
    storable = False
    thread_safe = False
    default_learning_rate = 0.1

    def __post_init__(self) -> None:
        """Validate the parameters."""
        if not callable(self.metric):
            raise TypeError(f"metric of loss '{self.name}' must be a function, got {self.metric!r}")
        object.__setattr__(self, "sigma", read_positive(self, "sigma", self.sigma))
        check_shift(self, self.mu)

    def parameters(self) -> dict[str, Any]:
        """Return nothing, because a user's metric is not stored."""
        return {}

    def check_target(self, target: Target) -> None:
        """Reject relevances outside of the domain, and queries too long for a metric in Python."""
        super().check_target(target)
        sizes = target.queries.sizes.astype(np.float64)
        if sums.total(sizes, sizes) > MOST_CALLS:
            raise ValueError(
                f"loss '{self.name}' would call the metric up to {sums.total(sizes, sizes):,.0f}"
                f" times a step, n² for each query of n rows; the longest has {sizes.max():,.0f}."
                " Use losses.StochasticRank, whose metrics are native, or shorter queries"
            )

    def adapt(self, target: Target, n_threads: int = 1) -> Self:
        """Return the loss with the mean curvature of the target as its unit."""
        if self.unit is not None:
            return self
        curvature = self._curvature(target)
        unit = sums.mean(curvature, target.weight) if len(target) else 0.0
        return replace(self, unit=unit if unit > 0.0 else 1.0)

    def losses(self, target: Target, raw: Floats) -> Floats:
        """-M / (rows of the query); of equal scores the less relevant row is above."""
        losses = np.empty(len(target))
        for rows in _queries(target, smallest=1):
            y = target.values[rows]
            losses[rows] = -self._value(y[np.lexsort((y, -raw[rows]))]) / len(rows)
        return losses

    def slopes_on(self, target: Target) -> FillSlopes:
        """Return the estimated gradient and the fixed curvature."""
        unit = 1.0 if self.unit is None else self.unit
        last = last_of(self.sigma)

        def fill(at: QuerySlopes) -> None:
            sigma = last if at.draws is None else value_at(self.sigma, at.draws.step)
            now = self._with(sigma)
            x, gradient = now._shifted(target, at.raw), np.zeros(len(at.raw))
            n_samples = SAMPLES if at.draws is None else 1
            for sample in range(n_samples):
                noise = _normals(at.draws or _core.Draws(0, sample), Role.RANKING, target)
                for rows in _queries(target):
                    terms, _ = now._boundaries(target.values[rows], x[rows], noise[rows])
                    total = np.add.reduce(terms, axis=1)
                    gradient[rows] -= total - np.add.reduce(total) / len(rows)
            at.gradient[:] = gradient / (unit * (last / sigma) ** 2 * n_samples)
            if at.hessian is not None:
                np.divide(self._curvature(target), unit, out=at.hessian)

        return fill

    def _with(self, sigma: float) -> Self:
        return replace(self, sigma=sigma)

    def curvatures(self, target: Target, raw: Floats, length: float) -> Floats:
        """Return the curvature of each row, which does not depend on the raw scores."""
        return self._curvature(target) / (self.unit or 1.0)

    def _curvature(self, target: Target) -> Floats:
        """Return the curvature of each row, not divided by the unit."""
        last = replace(self, sigma=last_of(self.sigma), unit=None)
        return once(target, last, lambda: last._sampled_curvature(target))

    def _sampled_curvature(self, target: Target) -> Floats:
        total = np.zeros(len(target))
        x = self._shifted(target, np.zeros(len(target)))
        for sample in range(SAMPLES):
            noise = _normals(_core.Draws(0, sample // 2), Role.CURVATURE, target)
            for rows in _queries(target):
                mirrored = noise[rows] if sample % 2 == 0 else -noise[rows]
                terms, width = self._boundaries(target.values[rows], x[rows], mirrored)
                total[rows] += np.add.reduce(np.abs(terms), axis=1) / width
        return total / SAMPLES

    def _shifted(self, target: Target, raw: Floats) -> Floats:
        sigma = last_of(self.sigma)
        return np.asarray(raw, dtype=np.float64) - sigma * self.mu * target.values

    def _boundaries(self, y: Floats, x: Floats, noise: Floats) -> tuple[Floats, float]:
        """Return effect times density at the boundaries of each row to the others, and the width.

        The formula is that of ranking_stochastic.h.
        """
        n, sigma = len(y), last_of(self.sigma)
        score = x + sigma * noise
        order = np.argsort(-score, kind="stable")
        width = sigma * math.sqrt(n / (n - 1))
        total = sigma * np.add.reduce(noise)
        terms = np.zeros((n, n - 1))
        for position, i in enumerate(order):
            others = np.delete(order, position)
            middle = x[i] + (total - sigma * noise[i]) / (n - 1)
            t = (score[others] - middle) / width
            density = exp(-0.5 * t * t) / (width * math.sqrt(2.0 * math.pi))
            terms[i] = self._effects(y[others], y[i]) * density
        return terms, width

    def _effects(self, others: Floats, relevance: float) -> Floats:
        """Metric with a row just above minus just below each of the others."""
        effects = np.zeros(len(others))
        ranked = np.insert(others, 0, relevance)
        above: float | None = None  # past a row of equal relevance the metric is what it was
        for q in (others != relevance).nonzero()[0]:
            ranked[:q], ranked[q], ranked[q + 1 :] = others[:q], relevance, others[q:]
            above = self._value(ranked) if above is None else above
            ranked[q], ranked[q + 1] = others[q], relevance
            below = self._value(ranked)
            effects[q], above = above - below, below
        return effects

    def _value(self, ranked: Floats) -> float:
        value = float(self.metric(ranked.copy()))
        if not math.isfinite(value):
            raise ValueError(f"metric of loss '{self.name}' returned {value!r} for {ranked}")
        return value


def _queries(target: Target, smallest: int = 2) -> Iterator[NDArray[np.intp]]:
    """Rows of each query; a single row has nothing to rank."""
    queries = target.queries
    for begin, end in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        if end - begin >= smallest:
            yield queries.order[begin:end]


def _normals(draws: _core.Draws, role: int, target: Target) -> Floats:
    """Return the normal of each row's number, as the native kernel draws it."""
    normals = np.empty(len(target))
    for rows, first in target.numbers.runs(len(target)):
        _core.draw_normals(draws, role, first, normals[rows].reshape(1, 1, -1))
    return normals
