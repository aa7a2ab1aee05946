"""LambdaRank: pairs of documents by what their swap does to NDCG."""

from dataclasses import dataclass

from sglb import _core
from sglb.losses.base import check_positive
from sglb.losses.ranking import FillSlopes, QuerySlopes
from sglb.losses.ranking_metric import GRADED, MetricLoss
from sglb.target import Target


@dataclass(frozen=True)
class LambdaRank(MetricLoss):
    """LambdaRank (Burges et al., 2006), with the truncation and normalisation of LightGBM.

    Domain      0 <= y <= 50, the relevance
    Formula     none: weights depend on the raw scores and are not differentiated. A reported loss
                is -NDCG
    Gradient    that of |change of NDCG| log(1 + exp(-sigma (z_i - z_j))) over pairs y_i > y_j of
                which a row is above the `cutoff` (LightGBM's truncation level)
    Hessian     that of the logistic losses, the diagonal
    Start       0

    With `normalise` a pair is divided by .01 + |z_i - z_j|, and the slopes of a query are
    multiplied by log2(1 + S) / S, S being twice the sum of its pairs' |gradient|. Of rows with
    equal scores the first is above the other. A chain of this loss has no stationary law that is
    known.
    """

    cutoff: int | None = 30
    sigma: float = 1.0
    normalise: bool = True

    name = "lambdarank"
    stationary = False

    def __post_init__(self) -> None:
        """Validate the parameters."""
        super().__post_init__()
        check_positive(self, sigma=self.sigma)
        object.__setattr__(self, "normalise", bool(self.normalise))

    def known_metrics(self) -> tuple[str, ...]:
        """Return NDCG and DCG."""
        return GRADED

    def slopes_on(self, target: Target) -> FillSlopes:
        """Return the gradient and the curvature of pairs."""
        ranking = self._ranking(target, self.metric)

        def fill(at: QuerySlopes) -> None:
            sigma, normalise = self.sigma, self.normalise
            _core.lambdarank(
                ranking, at.raw, sigma, normalise, at.gradient, at.hessian, at.n_threads
            )

        return fill
