"""Rows to rank within queries."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sglb.callbacks import Callback
from sglb.errors import DividedQuery, warn
from sglb.estimators.absent import Absent
from sglb.estimators.base import Array, ChainEstimator, Floats
from sglb.estimators.constructor import keep
from sglb.estimators.evaluation import EvalSets, StatedSet, list_sets
from sglb.frame import read_groups, read_numbers, read_query_weight, read_weight
from sglb.losses import LOSSES, Loss, RankingLoss, get_loss
from sglb.metrics import MetricSpec
from sglb.prepare import LabelledRows
from sglb.ranking_metrics import mean_over_queries
from sglb.samplers import Sampler
from sglb.schedules import Scheduled
from sglb.settings import check_parameters
from sglb.target import Target


class SGLBRanker(ChainEstimator):
    """Stochastic gradient Langevin boosting for rankings.

    Rows that are ranked together, the documents of a query, have the same id in `group`; y is the
    relevance of a row, 0 or more. Parameters are those of `SGLBClassifier` without `class_weight`,
    `init` and `uncertainty`, and

    loss : "query_squared" (squared differences within a query), "xendcg" (cross entropy),
        "pairwise_logistic", "stochastic_rank", "yeti", "lambdarank", or an object of `sglb.losses`.
        The last three stand for a metric with a cut-off: `losses.StochasticRank("map", 5)`.
    """

    _kind = "ranker"
    uncertainty = False

    def __init__(
        self,
        *,
        loss: Any = "query_squared",
        n_estimators: int | str = "auto",
        learning_rate: Scheduled = "auto",
        max_depth: int | str = "auto",
        max_bins: int | str = "auto",
        sampler: str | Sampler = "langevin",
        temperature: Scheduled = "auto",
        shrink_rate: Scheduled = "auto",
        friction: float | str = "auto",
        structure_noise: float = 1.0,
        subsample: float = 1.0,
        structure_sample: float | str = "auto",
        random_strength: str | float = "auto",
        leaf_method: str = "auto",
        leaf_steps: int | str = "auto",
        l2_regularization: float | str = "auto",
        categorical_features: Any = "from_dtype",
        n_chains: int = 1,
        early_stopping_rounds: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    def fit(  # type: ignore[override]  # what is ranked together must be stated
        self,
        X: Any,
        y: Any,
        group: Any = None,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        eval_set: EvalSets = None,
        eval_group: Sequence[Any] | None = None,
        X_val: Any = None,
        y_val: Any = None,
        group_val: Any = None,
        eval_metric: MetricSpec | Sequence[MetricSpec] | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        resume_from: str | Path | None = None,
        init_model: Any = None,
    ) -> Self:
        """Train a chain on X (n_rows, n_features) and relevances y.

        `group`, also called `qid`, is the id of each row's query, of any type; rows of a query
        need not lie together. If they do, the sizes of the queries in the order of the rows serve
        as well. `sample_weight` are weights of rows or, as many as there are queries, of queries
        in the order in which these first appear. `eval_set` is (X, y) or (X, y, weight), or a list
        of such, and `eval_group` the ids of each; X_val, y_val, group_val is one more set, which a
        pipeline can transform. `eval_metric` is "ndcg" without it; others are "dcg", "map", "mrr",
        "err", "precision", "recall" and "pfound", each with or without a cut-off ("ndcg@10"), and
        "loss". Early stopping watches the first metric on the last set. `callbacks`, `resume_from`
        and `init_model` are as in the other estimators (`SGLBRegressor.fit`).
        """
        check_parameters(self.get_params(deep=False))
        listed = _list_groups(eval_group, list_sets(eval_set, None, None), eval_set)
        sets = list_sets(eval_set, X_val, y_val)
        if X_val is not None:
            listed.append(group_val)
        stated = _with_groups(StatedSet(X, y, sample_weight), _query_ids(group, qid))
        stated_sets = []
        for number, (stated_set, ids) in enumerate(zip(sets, listed, strict=True)):
            try:
                stated_sets.append(_with_groups(stated_set, ids, f"eval_group[{number}]"))
            except ValueError as error:
                raise ValueError(f"eval_set[{number}]: {error}") from error
        try:
            return self._train(
                stated,
                stated_sets,
                eval_metric,
                callbacks,
                resume_from=resume_from,
                init_model=init_model,
            )
        except DividedQuery as error:
            raise _with_id(error, _query_ids(group, qid), stated.groups) from None

    def _read_rows(self, stated: StatedSet) -> LabelledRows:
        rows = super()._read_rows(stated)
        values, queries = rows.target.values, rows.target.queries
        if (queries.largest(values) == -queries.largest(-values)).all():
            warn(
                f"there is nothing to learn: no query of {queries.n_queries} has rows of different"
                " relevance. Does group hold the ids of queries, not of rows?",
            )
        return rows

    def _read_target(self, y: Any, weight: Floats, training: Target | None = None) -> Target:
        return Target.of(read_numbers(self, y, len(weight)), weight)

    def _choose_loss(self, classes: Array) -> Loss:
        loss = get_loss(self.loss, n_classes=2)
        if not isinstance(loss, RankingLoss):
            names = ", ".join(name for name, kind in LOSSES.items() if kind.task == "ranking")
            raise ValueError(f"loss={loss.name!r} is not a ranking loss; known: {names}")
        return loss

    def _predict_from(self, raw: Floats) -> Floats:
        return raw

    def predict(self, X: Any, n_estimators: int | None = None) -> Floats:
        """Return the score of each row: within a query, the higher the better.

        Scores of different queries are not comparable. With `n_estimators`, after so many steps.
        """
        return self._after(n_estimators)._predictions(X)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Yield the scores after each step."""
        yield from self.staged_predict_raw(X)

    def rank(self, X: Any, group: Any = None, *, qid: Any = None) -> NDArray[np.int64]:
        """Return the place of each row in its query, 1 for the best.

        Rows with equal scores are placed in the order of the table.
        """
        score = self.predict(X)
        groups = read_groups(_query_ids(group, qid), len(score))
        queries = Target.of(score, groups=groups).queries if len(groups) else None
        rank = np.empty(len(score), dtype=np.int64)
        if queries is not None:
            order = np.lexsort((-score, queries.query))
            first = np.repeat(queries.starts[:-1], queries.sizes)
            rank[order] = np.arange(len(score)) - first + 1
        return rank

    def score(
        self, X: Any, y: Any, group: Any = None, sample_weight: Any = None, *, qid: Any = None
    ) -> float:
        """Return the mean NDCG of queries with a relevant row; gains are 2^y - 1.

        `sglb.metrics.ranking_score` computes other metrics, and cut-offs.
        """
        raw = self.predict(X)
        stated = _with_groups(StatedSet(X, y, sample_weight), _query_ids(group, qid))
        weight = read_weight(stated.weight, raw)
        target = self._read_target(y, weight).in_groups(stated.groups)
        # A model file does not hold a loss of the user's own.
        loss = self._model.recipe.loss or get_loss("query_squared")
        loss.check_target(target)
        return mean_over_queries("ndcg", target, raw)

    predict_interval = predict_quantiles = predict_distribution = Absent(
        "scores of a ranker have no unit and no distribution of y; predict_raw_chains returns the"
        " scores of several chains (n_chains)"
    )
    predict_uncertainty = conformalize = cross_conformalize = Absent(
        "a ranking loss is not minus a log likelihood; predict_raw_chains returns the scores of"
        " several chains (n_chains)"
    )
    posterior = predict_uncertainty


def _query_ids(group: Any, qid: Any) -> Any:
    """Return the ids of queries, by whichever name they were passed."""
    if group is not None and qid is not None:
        raise ValueError("group and qid are the same thing under two names; pass only one of them")
    return qid if group is None else group


def _with_groups(stated: StatedSet, ids: Any, name: str = "group") -> StatedSet:
    """Return stated rows with the numbers of their groups, and weights of rows."""
    groups = read_groups(ids, _n_rows(stated), name)
    return stated._replace(groups=groups, weight=read_query_weight(stated.weight, groups))


def _with_id(error: DividedQuery, ids: Any, groups: NDArray[np.int64]) -> DividedQuery:
    """Return an error with the query's id instead of its number, if queries have ids."""
    if len(ids) != len(groups):
        return error
    query = list(ids)[int(np.argmax(groups == error.query))]
    named = query.item() if isinstance(query, np.generic) else query
    return DividedQuery(named, error.pieces, error.name)


def _n_rows(stated: StatedSet) -> int:
    """Return the number of rows; a lazy frame does not know it before it is read, but y does."""
    for values in (stated.X, stated.y):
        try:
            return len(values)
        except TypeError:
            continue
    raise ValueError("X and y must be tables or vectors of known length")


def _list_groups(eval_group: Any, sets: Sequence[StatedSet], eval_set: Any) -> list[Any]:
    """Return the ids of each evaluation set."""
    if not sets:
        if eval_group is not None:
            raise ValueError("eval_group goes with eval_set, which is missing")
        return []
    if eval_group is None:
        raise ValueError(f"eval_set needs eval_group, a list of the ids of its {len(sets)} set(s)")
    is_single = isinstance(eval_set, tuple) and not isinstance(eval_set[0], tuple | list)
    listed = [eval_group] if is_single and not _is_list_of_one(eval_group) else list(eval_group)
    if len(listed) != len(sets):
        raise ValueError(
            f"eval_group has {len(listed)} entries, eval_set {len(sets)}; pass a list with the ids"
            " of each set"
        )
    return listed


def _is_list_of_one(eval_group: Any) -> bool:
    """Whether a list holds the ids of a single set, rather than being these ids."""
    is_list = isinstance(eval_group, list | tuple) and len(eval_group) == 1
    return is_list and np.ndim(eval_group[0]) > 0
