"""The squared loss within queries."""

from dataclasses import dataclass

import numpy as np

from sglb import _core
from sglb.losses.base import Floats
from sglb.losses.ranking import FillSlopes, QuerySlopes, RankingLoss
from sglb.losses.ranking_metric import core_queries
from sglb.target import Target
from sglb.weights import are_equal


@dataclass(frozen=True)
class QuerySquared(RankingLoss):
    """Squared loss of differences within a query: a row's mean relevance beside the others'.

    Domain      y >= 0, the relevance
    Formula     L = c² / 2, c = r - (weighted mean of r over the query), r = z - y
    Gradient    c
    Hessian     1, a bound: that of a query is I - 1 1' / n
    Lipschitz   no
    Smoothness  1
    Start       0
    """

    name = "query_squared"

    @property
    def smoothness(self) -> float:
        """Largest second derivative in any direction: 1."""
        return 1.0

    def is_residual(self, y: Floats) -> bool:
        """Raw scores are in the unit of y."""
        return True

    def losses(self, target: Target, raw: Floats) -> Floats:
        """c² / 2."""
        return 0.5 * np.square(_centred(target, raw))

    def slopes_on(self, target: Target) -> FillSlopes:
        """Return the residuals less their mean in the query."""

        queries, relevance = core_queries(target), np.ascontiguousarray(target.values)
        weight = None if are_equal(target.weight) else np.ascontiguousarray(target.weight)
        total = target.queries.totals(target.weight)

        def fill(at: QuerySlopes) -> None:
            _core.centred_residuals(
                queries, relevance, weight, total, at.raw, at.gradient, at.n_threads
            )
            if at.hessian is not None:
                at.hessian[:] = 1.0

        return fill


def _centred(target: Target, raw: Floats) -> Floats:
    residual = raw - target.values
    queries = target.queries
    centred: Floats = residual - queries.means(residual, target.weight)[queries.query]
    return centred
