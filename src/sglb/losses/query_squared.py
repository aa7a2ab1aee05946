"""The squared loss within queries."""

from dataclasses import dataclass

import numpy as np

from sglb.losses.base import Floats
from sglb.losses.ranking import FillSlopes, QuerySlopes, RankingLoss
from sglb.target import Target


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

        def fill(at: QuerySlopes) -> None:
            at.gradient[:] = _centred(target, at.raw)
            if at.hessian is not None:
                at.hessian[:] = 1.0

        return fill


def _centred(target: Target, raw: Floats) -> Floats:
    residual = raw - target.values
    queries = target.queries
    centred: Floats = residual - queries.means(residual, target.weight)[queries.query]
    return centred
