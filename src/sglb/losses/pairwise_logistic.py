"""The logistic loss of pairs of documents."""

from dataclasses import dataclass

import numpy as np

from sglb import _core
from sglb.losses.base import Floats, check_positive
from sglb.losses.ranking import FillSlopes, QuerySlopes, RankingLoss
from sglb.losses.ranking_metric import core_queries
from sglb.target import Target


@dataclass(frozen=True)
class PairwiseLogistic(RankingLoss):
    """Logistic loss of every pair of rows of a query that differ in relevance (RankNet).

    Domain      y >= 0, the relevance
    Formula     L = 1/2 sum over j of log(1 + exp(-sigma s (z - z_j))), s the sign of y - y_j: half
                of the loss of each of its pairs
    Gradient    of the sum over the query: -sum over j of sigma s / (1 + exp(sigma s (z - z_j)))
    Hessian     its diagonal
    Start       0
    """

    sigma: float = 1.0

    name = "pairwise_logistic"

    def __post_init__(self) -> None:
        """Validate the parameter."""
        check_positive(self, sigma=self.sigma)

    def losses(self, target: Target, raw: Floats) -> Floats:
        """Half of the loss of each of a row's pairs."""
        losses = np.empty(len(target))
        raw = np.ascontiguousarray(raw, dtype=np.float64)
        y = np.ascontiguousarray(target.values)
        _core.pairwise_losses(core_queries(target), y, raw, self.sigma, losses, 1)
        return losses

    def slopes_on(self, target: Target) -> FillSlopes:
        """Return the gradient and the curvature of pairs."""
        queries, y = core_queries(target), np.ascontiguousarray(target.values)

        def fill(at: QuerySlopes) -> None:
            _core.pairwise_logistic(
                queries, y, at.raw, self.sigma, at.gradient, at.hessian, at.n_threads
            )

        return fill
