"""Named metrics for evaluation sets: a value and a direction.

A metric sees what the chain sees, y and raw scores, and turns them into one number by the weighted
mean over rows, sum w_i m(y_i, raw_i) / sum w_i, or what its name says. `raw` has shape (n,), or
(n, n_outputs) with several outputs; classes are their indices 0., 1., ...
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.elementary import log

Floats = NDArray[np.float64]


class ScoredLoss(Protocol):
    """What a metric asks of a loss."""

    def loss(self, y: Floats, raw: Floats) -> Floats:
        """Return the loss of each row."""
        ...

    def link(self, raw: Floats) -> Floats:
        """Return the prediction: mean, quantile or probability."""
        ...


MetricFunction = Callable[[Floats, Floats, ScoredLoss, Floats | None], float]


@dataclass(frozen=True)
class Metric:
    """A named number for an evaluation set; `tasks` are the tasks it has a meaning for."""

    name: str
    greater_is_better: bool
    function: MetricFunction
    tasks: tuple[str, ...] = ("regression", "binary", "multiclass")

    def __call__(self, y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
        """Return the metric's value on one set."""
        return float(self.function(y, raw, loss, weight))

    def better(self, value: float, than: float) -> bool:
        """Tell whether `value` beats `than`; NaN beats nothing and is beaten by every number."""
        if np.isnan(than):
            return not np.isnan(value)
        return value > than if self.greater_is_better else value < than


def _loss(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    return sums.mean(loss.loss(y, raw), weight)


def _chosen(raw: Floats) -> NDArray[np.intp]:
    """Class index that the raw scores choose."""
    return (raw > 0).astype(np.intp) if raw.ndim == 1 else raw.argmax(axis=1)


def _error(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    return sums.mean((_chosen(raw) != y).astype(np.float64), weight)


def _accuracy(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    return 1.0 - _error(y, raw, loss, weight)


def _probability_of_truth(y: Floats, raw: Floats, loss: ScoredLoss) -> Floats:
    probability = loss.link(raw)
    if probability.ndim == 1:
        return np.where(y > 0, probability, 1.0 - probability)
    return np.take_along_axis(probability, y.astype(np.intp)[:, None], axis=1)[:, 0]


def _logloss(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    # A probability that rounds to zero would make the whole set's score infinite.
    tiny = np.finfo(np.float64).eps
    return sums.mean(-log(np.clip(_probability_of_truth(y, raw, loss), tiny, 1.0)), weight)


def _brier(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    return sums.mean(np.square(1.0 - _probability_of_truth(y, raw, loss)), weight)


def _auc(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    """Probability that a positive row outranks a negative one, ties counting one half."""
    raw = raw if raw.ndim == 1 else raw[:, 1] - raw[:, 0]
    _, rank = np.unique(raw, return_inverse=True)
    n_ranks = int(rank.max(initial=-1)) + 1
    positive = sums.by_group(rank, y > 0, n_ranks, weight)
    negative = sums.by_group(rank, y <= 0, n_ranks, weight)
    pairs = sums.total(positive) * sums.total(negative)
    if pairs == 0.0:
        return float("nan")
    below = np.append(0.0, sums.running(negative)[:-1])
    return sums.total(below + 0.5 * negative, positive) / pairs


def _rmse(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    return float(np.sqrt(sums.mean(np.square(y - loss.link(raw)), weight)))


def _mae(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    return sums.mean(np.abs(y - loss.link(raw)), weight)


def _r2(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
    spread = sums.mean(np.square(y - sums.mean(y, weight)), weight)
    residual = sums.mean(np.square(y - loss.link(raw)), weight)
    return 1.0 - residual / spread if spread > 0.0 else float("nan")


_CLASSES = ("binary", "multiclass")

METRICS = {
    metric.name: metric
    for metric in (
        Metric("loss", False, _loss),
        Metric("logloss", False, _logloss, _CLASSES),
        Metric("error", False, _error, _CLASSES),
        Metric("accuracy", True, _accuracy, _CLASSES),
        Metric("brier", False, _brier, ("binary",)),
        Metric("auc", True, _auc, ("binary",)),
        Metric("rmse", False, _rmse, ("regression",)),
        Metric("mae", False, _mae, ("regression",)),
        Metric("r2", True, _r2, ("regression",)),
    )
}

MetricSpec = str | Metric | Callable[[Any, Any], float]


def _from_callable(function: Callable[[Any, Any], float]) -> Metric:
    """Wrap metric(y, prediction), the smaller the better unless it says greater_is_better."""
    name = getattr(function, "__name__", type(function).__name__)

    def value(y: Floats, raw: Floats, loss: ScoredLoss, weight: Floats | None) -> float:
        return float(function(y, loss.link(raw)))

    return Metric(name, bool(getattr(function, "greater_is_better", False)), value)


def get_metric(spec: MetricSpec, task: str | None = None) -> Metric:
    """Return the metric that a name, a `Metric` or a callable (y, prediction) stands for.

    With `task` a metric that has no meaning for the task is refused.
    """
    if isinstance(spec, str) and spec in METRICS:
        metric = METRICS[spec]
    elif isinstance(spec, Metric):
        metric = spec
    elif callable(spec):
        metric = _from_callable(spec)
    else:
        raise ValueError(
            f"eval_metric={spec!r} is not a metric; allowed: {', '.join(METRICS)}, "
            "or a function of (y, prediction)"
        )
    if task is not None and task not in metric.tasks:
        fitting = ", ".join(name for name, other in METRICS.items() if task in other.tasks)
        raise ValueError(
            f"eval_metric={metric.name!r} has no meaning for a {task} task; allowed: {fitting}"
        )
    return metric


def get_metrics(spec: MetricSpec | Sequence[MetricSpec] | None, task: str) -> list[Metric]:
    """Return the metrics that eval_metric stands for; the mean loss without it."""
    if spec is None:
        spec = "loss"
    if isinstance(spec, str | Metric) or callable(spec) or not isinstance(spec, Iterable):
        several = [spec]
    else:
        several = list(spec)
    if not several:
        raise ValueError("eval_metric must name at least one metric")
    metrics = [get_metric(one, task) for one in several]
    for name, count in Counter(metric.name for metric in metrics).items():
        if count > 1:
            raise ValueError(
                f"eval_metric has {count} metrics with the name {name!r}, and results are kept by"
                " name; give functions names of their own"
            )
    return metrics
