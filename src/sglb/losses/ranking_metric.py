"""Losses made of a ranking metric: gains of relevances, and the metric's value as a loss."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sglb import _core
from sglb.errors import warn
from sglb.gains import gains, powers_of_two
from sglb.losses.base import Floats
from sglb.losses.ranking import RankingLoss
from sglb.target import Target

# Metrics of graded gains, of relevant (y > 0) or not, and of readers who stop at a document.
GRADED = ("ndcg", "dcg")
BINARY = ("map", "mrr", "precision", "recall")
CASCADES = ("err", "pfound")
# Metrics of the set of the first documents, in whatever order.
SETS = ("precision", "recall")
# How many readers of a result that does not help go on to the next (Yandex's pFound).
PATIENCE = 0.85


@dataclass(frozen=True)
class MetricLoss(RankingLoss):
    """A loss that stands for -M, M being the metric of a query.

    metric    ndcg, dcg, map, mrr, err, pfound, precision or recall
    cutoff    places that count; None: all, which precision and recall do not allow
    gain      of ndcg and dcg: "exponential", 2^y - 1, or "linear", y
    largest   the highest relevance there is, at which a reader of err and pfound stops with
              probability 1 - 2^-largest; None: that of the training rows

    The loss of a row is -M / (rows of its query). Of rows with equal scores the less relevant is
    above the other.
    """

    metric: str = "ndcg"
    cutoff: int | None = 10
    gain: str = "exponential"
    largest: float | None = None

    convex = False
    uses_gain = True

    def __post_init__(self) -> None:
        """Validate the metric."""
        _check_name(self, "metric", self.metric, self.known_metrics())
        _check_name(self, "gain", self.gain, ("exponential", "linear"))
        cutoff = self.cutoff or None  # model files have 0 for none
        if cutoff is not None and (cutoff < 1 or cutoff != int(cutoff)):
            raise ValueError(f"cutoff of loss '{self.name}' must be 1 or more, got {cutoff!r}")
        object.__setattr__(self, "cutoff", None if cutoff is None else int(cutoff))
        if self.metric in SETS and cutoff is None:
            raise ValueError(
                f"metric '{self.metric}' of loss '{self.name}' needs a cutoff: of all rows of a"
                " query it is the same in every order"
            )

    def known_metrics(self) -> tuple[str, ...]:
        """Return the metrics that the loss may stand for."""
        return GRADED + BINARY + CASCADES

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments; a cutoff of None is 0, a schedule a string."""
        stated = {**vars(self), "cutoff": self.cutoff or 0}
        stated |= {name: str(schedule) for name, schedule in self.schedules.items()}
        return {name: value for name, value in stated.items() if value is not None}

    def adapt(self, target: Target, n_threads: int = 1) -> Self:
        """Return the loss with the highest relevance of the target."""
        if self.largest is not None:
            return self
        longest = int(target.queries.sizes.max(initial=0))
        if self.metric in SETS and self.cutoff is not None and self.cutoff >= longest:
            warn(
                f"there is nothing to learn: {self.metric}@{self.cutoff} of at most {longest} rows"
                " is the same in every order; choose a cutoff below the rows of the longest query"
            )
        return replace(self, largest=float(target.values.max(initial=0.0)))

    def losses(self, target: Target, raw: Floats) -> Floats:
        """-M / (rows of the query)."""
        queries = target.queries
        values = np.empty(queries.n_queries)
        raw = np.ascontiguousarray(raw, dtype=np.float64)
        _core.ranking_values(self._ranking(target, self._value_metric()), raw, values, 1)
        losses: Floats = (-values / queries.sizes)[queries.query]
        return losses

    def _value_metric(self) -> str:
        return self.metric

    def _ranking(self, target: Target, metric: str, decay: float = PATIENCE) -> _core.RankingTarget:
        """Return relevances, gains and metric as kernels take them."""
        longest = int(target.queries.sizes.max(initial=1))
        relevance = np.ascontiguousarray(target.values)
        return _core.RankingTarget(
            core_queries(target),
            relevance,
            self._gains(relevance, metric),
            metric,
            self.cutoff or longest,
            decay,
        )

    def _gains(self, relevance: Floats, metric: str) -> Floats:
        if metric in BINARY:
            return (relevance > 0.0).astype(np.float64)
        if metric in CASCADES:
            largest = relevance.max(initial=0.0) if self.largest is None else self.largest
            # Evaluation rows may be more relevant than any training row.
            return np.minimum(gains(relevance) / powers_of_two(np.array([largest])), 1.0)
        return relevance if self.gain == "linear" else gains(relevance)


def core_queries(target: Target) -> _core.Queries:
    """Return the queries of a target as kernels take them."""
    order = target.queries.order.astype(np.uint32)
    return _core.Queries(order, target.queries.starts, target.numbers)


def _check_name(loss: MetricLoss, parameter: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"{parameter} of loss '{loss.name}' must be one of {', '.join(choices)}, got {value!r}"
        )
