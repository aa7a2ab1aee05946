"""YetiRank and YetiLoss: neighbours in random orders."""

from dataclasses import dataclass

from sglb import _core
from sglb.losses.base import Floats, check_positive, whole_count
from sglb.losses.ranking import FillSlopes, QuerySlopes
from sglb.losses.ranking_metric import PATIENCE, MetricLoss
from sglb.target import Target

# Orders of a mean gradient, where nothing is drawn.
MANY_ORDERS = 64
FIXED = _core.Draws(0, 0)
# Whether a reader goes on to the next document, of YetiRank's own weights (CatBoost's default).
DECAY = 0.99


@dataclass(frozen=True)
class Yeti(MetricLoss):
    """YetiRank (Gulin et al., 2011); with the weights of a metric YetiLoss (Lyzhin et al., 2023).

    Domain      0 <= y <= 50, the relevance
    Formula     none: weights depend on the raw scores and are not differentiated. A reported loss
                is -M, with YetiRank's own weights that of NDCG
    Gradient    the mean over `n_orders` random orders, by z + power * noise, of the gradient of
                |J| log(1 + exp(-(z_i - z_j))) over neighbours i, j, y_i > y_j; J: what their swap
                does to the metric, or |y_i - y_j| .99^place with metric "decay", the default
    Hessian     that of the logistic losses, the diagonal
    Start       0

    `noise` is "logistic", as in CatBoost, or "gumbel" (orders of Plackett and Luce). A chain of
    this loss has no stationary law that is known.
    """

    metric: str = "decay"
    cutoff: int | None = None
    noise: str = "logistic"
    power: float = 1.0
    n_orders: int = 10

    name = "yeti"
    stationary = False

    def __post_init__(self) -> None:
        """Validate the parameters."""
        super().__post_init__()
        check_positive(self, power=self.power)
        if self.noise not in ("logistic", "gumbel"):
            raise ValueError(
                f"noise of loss '{self.name}' must be 'logistic' or 'gumbel', got {self.noise!r}"
            )
        object.__setattr__(self, "n_orders", whole_count(self, n_orders=self.n_orders))

    def known_metrics(self) -> tuple[str, ...]:
        """Return the metrics and YetiRank's own weights."""
        return ("decay", *super().known_metrics())

    def _value_metric(self) -> str:
        return "ndcg" if self.metric == "decay" else self.metric

    def _gains(self, relevance: Floats, metric: str) -> Floats:
        return relevance if metric == "decay" else super()._gains(relevance, metric)

    def slopes_on(self, target: Target) -> FillSlopes:
        """Return the gradient and the curvature of neighbours."""
        decay = DECAY if self.metric == "decay" else PATIENCE
        ranking = self._ranking(target, self.metric, decay)
        few = _core.Shuffles(self.noise, self.power, self.n_orders)
        many = _core.Shuffles(self.noise, self.power, MANY_ORDERS)

        def fill(at: QuerySlopes) -> None:
            shuffles, draws = (many, FIXED) if at.draws is None else (few, at.draws)
            _core.yeti(ranking, at.raw, shuffles, draws, at.gradient, at.hessian, at.n_threads)

        return fill
