"""The cross-entropy loss of rankings (Bruch, 2021: XE-NDCG)."""

from dataclasses import dataclass

import numpy as np

from sglb import _core
from sglb.elementary import exp, log
from sglb.gains import powers_of_two
from sglb.losses.base import Floats
from sglb.losses.ranking import FillSlopes, QuerySlopes, RankingLoss
from sglb.noise import Role
from sglb.queries import Queries
from sglb.target import Target


@dataclass(frozen=True)
class XeNdcg(RankingLoss):
    """Cross entropy of a distribution over the rows of a query, by relevance and by raw scores.

    Domain      0 <= y <= 50, the relevance
    Formula     L = -p log q, q = softmax of z over the query, p = phi / (sum of phi over it),
                phi = 2^y - u, u uniform in [0, 1], drawn anew at each step
    Gradient    q - p, the derivative of the sum of L over the query
    Hessian     the larger of q (1 - q), the diagonal, and p (1 - p) at u = 1/2, what it is where
                the scores are best
    Lipschitz   1
    Smoothness  1/2
    Start       0

    Where nothing is drawn, u is its mean 1/2. Far from the optimum q (1 - q) vanishes: a Newton
    step by it alone divides the noise of a leaf by next to nothing, which drives scores apart and
    makes it smaller still.
    """

    name = "xendcg"
    estimated = True
    uses_gain = True

    @property
    def lipschitz(self) -> float:
        """|q - p| <= 1."""
        return 1.0

    @property
    def smoothness(self) -> float:
        """Largest second derivative of a query in any direction: 1/2."""
        return 0.5

    def losses(self, target: Target, raw: Floats) -> Floats:
        """-p log q."""
        queries = target.queries
        shifted, total = _exponents(queries, raw)
        p = _share(queries, powers_of_two(target.values) - 0.5)
        losses: Floats = p * (log(total)[queries.query] - shifted)
        return losses

    def slopes_on(self, target: Target) -> FillSlopes:
        """Return q - p and the curvature."""
        queries, power = target.queries, powers_of_two(target.values)
        words = np.empty((len(target), 4), dtype=np.uint32)
        mean_share = _share(queries, power - 0.5)
        least_curvature = mean_share * (1.0 - mean_share)

        def fill(at: QuerySlopes) -> None:
            p = mean_share
            if at.draws is not None:
                seed, step = at.draws.seed, at.draws.step
                for rows, first in target.numbers.runs(len(words)):
                    _core.words(seed, step, Role.RELEVANCE, 0, first, words[rows])
                p = _share(queries, power - np.ldexp(words[:, 0] + 0.5, -32))
            shifted, total = _exponents(queries, at.raw)
            q = exp(shifted) / total[queries.query]
            np.subtract(q, p, out=at.gradient)
            if at.hessian is not None:
                np.maximum(q * (1.0 - q), least_curvature, out=at.hessian)

        return fill


def _exponents(queries: Queries, raw: Floats) -> tuple[Floats, Floats]:
    """Return raw scores less the largest of their query, and the sum of exp of them by query."""
    shifted = raw - queries.largest(raw)[queries.query]
    return shifted, queries.sums(exp(shifted))


def _share(queries: Queries, values: Floats) -> Floats:
    """Return values as shares of their sum over the query."""
    share: Floats = values / queries.sums(values)[queries.query]
    return share
