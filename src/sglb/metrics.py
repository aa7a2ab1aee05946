"""Named metrics for evaluation sets: a value and a direction.

A metric turns a target y and raw scores into a number: the weighted mean over rows,
sum w_i m(y_i, raw_i) / sum w_i, unless its name says otherwise. `raw` has shape (n,), or
(n, n_outputs) with several outputs; classes are their indices 0., 1., ... Metrics of rankings are
those of `ranking_metrics`, with a cut-off by name: "ndcg@10". Those of `capacity` are of a table
as one ranking: "precision@1000", or of a share of the rows, "precision@5%".
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import sums
from sglb.capacity import AT_CAPACITY, Capacity, expected_savings
from sglb.capacity import best_k as best_k
from sglb.capacity import precision_at_k as precision_at_k
from sglb.capacity import profit_at_k as profit_at_k
from sglb.capacity import recall_at_k as recall_at_k
from sglb.costs import cheapest, read_costs, realised_costs
from sglb.elementary import log
from sglb.errors import require_rows
from sglb.frame import read_groups, read_query_weight, read_weight
from sglb.ranking_metrics import RANKING_METRICS, mean_over_queries
from sglb.target import Target

Floats = NDArray[np.float64]


class ScoredLoss(Protocol):
    """The methods of a loss that metrics call."""

    @property
    def proper(self) -> bool:
        """Whether predictions of classes are probabilities."""
        ...

    def losses(self, target: Target, raw: Floats) -> Floats:
        """Return the loss of each row."""
        ...

    def link(self, raw: Floats) -> Floats:
        """Return the predictions: means, quantiles or probabilities."""
        ...


MetricFunction = Callable[[Target, Floats, ScoredLoss], float]


@dataclass(frozen=True)
class Metric:
    """A named score of an evaluation set.

    `tasks` are the tasks for which it is defined; `one_prediction` says that it compares y with a
    single prediction of each row, `needs_costs` that it needs the costs of decisions.
    """

    name: str
    greater_is_better: bool
    function: MetricFunction
    tasks: tuple[str, ...] = ("regression", "binary", "multiclass", "ranking")
    one_prediction: bool = False
    needs_costs: bool = False

    def __call__(self, target: Target, raw: Floats, loss: ScoredLoss) -> float:
        """Return the value of the metric."""
        return float(self.function(target, raw, loss))

    def better(self, value: float, than: float) -> bool:
        """Whether `value` is better than `than`; every number is better than NaN."""
        if np.isnan(than):
            return not np.isnan(value)
        return value > than if self.greater_is_better else value < than


def _loss(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    return target.mean(loss.losses(target, raw))


def _class_index(raw: Floats) -> NDArray[np.intp]:
    """Return the index of the predicted class."""
    return (raw > 0).astype(np.intp) if raw.ndim == 1 else raw.argmax(axis=1)


def _error(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    return target.mean(_class_index(raw) != target.values)


def _accuracy(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    return 1.0 - _error(target, raw, loss)


def _probability_of_truth(y: Floats, raw: Floats, loss: ScoredLoss) -> Floats:
    probability = loss.link(raw)
    if probability.ndim == 1:
        return np.where(y > 0, probability, 1.0 - probability)
    return np.take_along_axis(probability, y.astype(np.intp)[:, None], axis=1)[:, 0]


def _logloss(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    # A probability that rounds to zero would make the score of the whole set infinite.
    tiny = np.finfo(np.float64).eps
    return target.mean(-log(np.clip(_probability_of_truth(target.values, raw, loss), tiny, 1.0)))


def _brier(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    return target.mean(np.square(1.0 - _probability_of_truth(target.values, raw, loss)))


def _auc(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    """Return the probability that a positive row outranks a negative one; ties count one half."""
    raw = raw if raw.ndim == 1 else raw[:, 1] - raw[:, 0]
    _, rank = np.unique(raw, return_inverse=True)
    n_ranks = int(rank.max(initial=-1)) + 1
    positive = sums.by_group(rank, target.values > 0, n_ranks, target.weight)
    negative = sums.by_group(rank, target.values <= 0, n_ranks, target.weight)
    pairs = sums.total(positive) * sums.total(negative)
    if pairs == 0.0:
        return float("nan")
    below = np.append(0.0, sums.running(negative)[:-1])
    return sums.total(below + 0.5 * negative, positive) / pairs


def _rmse(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    return float(np.sqrt(target.mean(np.square(target.values - loss.link(raw)))))


def _mae(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    return target.mean(np.abs(target.values - loss.link(raw)))


def _r2(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    y = target.values
    spread = target.mean(np.square(y - target.mean(y)))
    residual = target.mean(np.square(y - loss.link(raw)))
    return 1.0 - residual / spread if spread > 0.0 else float("nan")


def _expected_cost(target: Target, raw: Floats, loss: ScoredLoss) -> float:
    """Return the mean cost of the decisions that a model makes.

    Those are the cheapest by its probabilities, or its classes where it has no probabilities.
    """
    decision = _class_index(raw)
    if loss.proper:
        decision = cheapest(target.costs, _probabilities(raw, loss))
    return target.mean(np.take_along_axis(target.realised_costs, decision[:, None], axis=1))


def _probabilities(raw: Floats, loss: ScoredLoss) -> Floats:
    probability = loss.link(raw)
    return np.stack([1.0 - probability, probability], 1) if raw.ndim == 1 else probability


def _of_queries(
    target: Target, raw: Floats, loss: ScoredLoss | None, *, name: str, cutoff: int | None
) -> float:
    return mean_over_queries(name, target, raw, cutoff)


def _ranking_metric(name: str, cutoff: int | None = None) -> Metric:
    """Return the mean over queries of a ranking metric at a cut-off."""
    full_name = name if cutoff is None else f"{name}@{cutoff}"
    return Metric(full_name, True, partial(_of_queries, name=name, cutoff=cutoff), ("ranking",))


def _at_capacity(target: Target, raw: Floats, loss: ScoredLoss, *, name: str, k: Capacity) -> float:
    """Return a metric of the first k rows by raw scores; profits are ranked by expected ones."""
    score = raw if raw.ndim == 1 else raw[:, 1] - raw[:, 0]
    if name == "profit" and len(target.costs) and loss.proper:
        score = expected_savings(target, _probabilities(raw, loss))
    return AT_CAPACITY[name](target, score, k)


def _capacity_metric(spec: str, name: str, k: Capacity, task: str | None) -> Metric:
    """Return a metric of the first k rows of a table, or of each group of it."""
    return Metric(
        spec,
        True,
        partial(_at_capacity, name=name, k=k),
        ("regression", "binary", "ranking"),
        one_prediction=task == "regression",
        needs_costs=name == "profit" and task == "binary",
    )


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
        Metric("expected_cost", False, _expected_cost, _CLASSES, needs_costs=True),
        Metric("rmse", False, _rmse, ("regression",), True),
        Metric("mae", False, _mae, ("regression",), True),
        Metric("r2", True, _r2, ("regression",), True),
        *(_ranking_metric(name) for name in RANKING_METRICS),
    )
}

MetricSpec = str | Metric | Callable[[Any, Any], float]


def _from_callable(function: Callable[[Any, Any], float]) -> Metric:
    """Return metric(y, prediction) as a Metric; lower is better unless it has greater_is_better."""
    name = getattr(function, "__name__", type(function).__name__)

    def value(target: Target, raw: Floats, loss: ScoredLoss) -> float:
        return float(function(target.values, loss.link(raw)))

    return Metric(name, bool(getattr(function, "greater_is_better", False)), value)


def _at_cutoff(spec: str) -> tuple[str, int | None] | None:
    """Return name and cut-off of a ranking metric such as "ndcg@10", None if it is not one."""
    name, separator, cutoff = spec.partition("@")
    if name not in RANKING_METRICS:
        return None
    if not separator:
        return name, None
    return (name, int(cutoff)) if cutoff.isdecimal() and int(cutoff) > 0 else None


def _with_capacity(spec: str, task: str | None) -> Metric | None:
    """Return a metric such as "profit@1000" or "precision@5%", None if it is not one.

    With a whole number, precision and recall of rankings are means over their queries.
    """
    name, _, stated = spec.partition("@")
    of_queries = task in ("ranking", None) and name in RANKING_METRICS and not stated.endswith("%")
    if name not in AT_CAPACITY or not stated or of_queries:
        return None
    try:
        k = float(stated[:-1]) / 100.0 if stated.endswith("%") else int(stated)
    except ValueError:
        return None
    is_share = isinstance(k, float)
    return _capacity_metric(spec, name, k, task) if k > 0 and not (is_share and k > 1) else None


def ranking_score(
    metric: str, y: ArrayLike, score: ArrayLike, group: Any, sample_weight: Any = None
) -> float:
    """Return a metric of rankings by name, such as "ndcg@10": the mean over queries.

    y are relevances of rows, `score` any scores that rank them, `group` the ids of queries or
    their sizes, `sample_weight` weights of rows or of queries.
    """
    relevance = np.asarray(y, dtype=np.float64)
    raw = np.asarray(score, dtype=np.float64)
    if relevance.ndim != 1 or raw.shape != relevance.shape:
        raise ValueError(f"y and score must be vectors, not {relevance.shape} and {raw.shape}")
    require_rows("y", relevance, np.isfinite(relevance) & (relevance >= 0.0), "a relevance >= 0")
    require_rows("score", raw, ~np.isnan(raw), "a number")
    groups = read_groups(group, len(relevance))
    weight = read_weight(read_query_weight(sample_weight, groups), relevance)
    target = Target.of(relevance, weight, groups=groups)
    known = _at_cutoff(metric)
    if known is None:
        raise ValueError(
            f"{metric!r} is not a ranking metric; known: {', '.join(RANKING_METRICS)}, each"
            " with a cut-off, such as 'ndcg@10', or without"
        )
    name, cutoff = known
    return mean_over_queries(name, target, raw, cutoff)


def get_metric(spec: MetricSpec, task: str | None = None) -> Metric:
    """Return a name, a `Metric` or a callable (y, prediction) as a `Metric`.

    With `task` a metric that is not defined for the task is rejected.
    """
    if isinstance(spec, str) and spec in METRICS:
        metric = METRICS[spec]
    elif isinstance(spec, str) and (capacity := _with_capacity(spec, task)) is not None:
        metric = capacity
    elif isinstance(spec, str) and (known := _at_cutoff(spec)) is not None:
        metric = _ranking_metric(*known)
    elif isinstance(spec, Metric):
        metric = spec
    elif callable(spec):
        metric = _from_callable(spec)
    else:
        raise ValueError(
            f"eval_metric={spec!r} is not a metric; allowed: {', '.join(METRICS)}, "
            "those of rankings with a cut-off, such as 'ndcg@10', those of the best rows, such as"
            " 'precision@1000', 'recall@5%' and 'profit@1000', or a function of (y, prediction)"
        )
    if task is not None and task not in metric.tasks:
        allowed = ", ".join(name for name, other in METRICS.items() if task in other.tasks)
        raise ValueError(
            f"eval_metric={metric.name!r} has no meaning for a {task} task; allowed: {allowed}"
        )
    return metric


def get_metrics(
    spec: MetricSpec | Sequence[MetricSpec] | None, task: str, n_outputs: int = 1
) -> list[Metric]:
    """Return the metrics of eval_metric, a single one or several.

    None is the mean loss, of rankings NDCG. A metric that is not defined for the task or for so
    many outputs is rejected.
    """
    if spec is None:
        spec = "ndcg" if task == "ranking" else "loss"
    if isinstance(spec, str | Metric) or callable(spec) or not isinstance(spec, Iterable):
        spec = [spec]
    metrics = [get_metric(item, task) for item in spec]
    if not metrics:
        raise ValueError("eval_metric must name at least one metric")
    for metric in metrics:
        if metric.one_prediction and n_outputs > 1:
            raise ValueError(
                f"eval_metric={metric.name!r} compares y with one prediction of each row, and the"
                f" loss has {n_outputs}; use 'loss' or a function of (y, predictions)"
            )
    for name, count in Counter(metric.name for metric in metrics).items():
        if count > 1:
            raise ValueError(
                f"eval_metric has {count} metrics with the name {name!r}, and results are kept by"
                " name; give each function another name"
            )
    return metrics


def expected_cost(
    y: ArrayLike, decision: ArrayLike, costs: ArrayLike, sample_weight: Any = None
) -> float:
    """Return the mean cost of decisions about rows of classes y, both labels.

    costs[y, d] is the cost of decision d where the class is y, classes in sorted order; or there is
    such a matrix for each row. The matrix says how many classes there are; labels are as many, or
    the numbers 0, 1, ...
    """
    truth, chosen = np.asarray(y), np.asarray(decision)
    if truth.ndim != 1 or chosen.shape != truth.shape:
        raise ValueError(
            f"y and decision must be vectors of the same length, not {truth.shape} and"
            f" {chosen.shape}"
        )
    matrix = np.asarray(costs)
    n_classes = matrix.shape[-1] if matrix.ndim else 0
    both = np.concatenate([truth, chosen])
    classes = np.unique(both)
    index = np.searchsorted(classes, both)
    if len(classes) != n_classes:
        index, classes = _numbered(both, n_classes), np.arange(n_classes)
    known = read_costs(costs, len(truth), classes)
    weight = read_weight(sample_weight, truth)
    of_decision = realised_costs(known, index[: len(truth)].astype(np.float64))
    paid = np.take_along_axis(of_decision, index[len(truth) :, None], axis=1)
    return sums.mean(paid, weight)


def _numbered(labels: NDArray[Any], n_classes: int) -> NDArray[np.intp]:
    """Return labels that are class numbers already."""
    if labels.dtype.kind in "biuf" and np.isin(labels, np.arange(n_classes)).all():
        return labels.astype(np.intp)
    raise ValueError(
        f"costs are those of {n_classes} classes, and y and decision have the labels"
        f" {np.unique(labels).tolist()[:10]}; number the classes 0, 1, ... as costs does"
    )
