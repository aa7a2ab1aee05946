"""Metrics of rankings against hand-computed values, all orders of ties, and scikit-learn."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    dcg_score,
    label_ranking_average_precision_score,
    ndcg_score,
)

from sglb import metrics
from sglb.losses import QuerySquared
from sglb.metrics import METRICS, get_metric, get_metrics, ranking_score
from sglb.ranking_metrics import RANKING_METRICS, by_query, mean_over_queries
from sglb.target import Target

every_metric = pytest.mark.parametrize("name", RANKING_METRICS)
every_cutoff = pytest.mark.parametrize("cutoff", [None, 1, 2, 4])
LOG3 = np.log2(3.0)

# One query ranked as relevances 2, 0, 1: gains 3, 0, 1, t = 3/4, 0, 1/4.
BY_HAND = {
    "dcg": 3.0 + 1.0 / 2.0,
    "dcg@2": 3.0,
    "ndcg": 3.5 / (3.0 + 1.0 / LOG3),
    "ndcg@1": 1.0,
    "precision": 2 / 3,
    "precision@2": 1 / 2,
    "precision@10": 1 / 5,
    "recall": 1.0,
    "recall@2": 1 / 2,
    "map": (1.0 + 2 / 3) / 2,
    "map@2": 1 / 2,
    "map@1": 1.0,
    "mrr": 1.0,
    "err": 3 / 4 + 1 / 4 * 1 / 4 / 3,
    "err@2": 3 / 4,
    "pfound": 3 / 4 + 1 / 4 * 1 / 4 * 0.85**2,
}


@pytest.mark.parametrize(("metric", "value"), BY_HAND.items())
def test_a_query_by_hand(metric, value):
    assert ranking_score(metric, [1, 2, 0], [0.1, 9.0, 0.5], [4, 4, 4]) == pytest.approx(value)


@pytest.mark.parametrize("n_queries", [300, 2**16, 2**16 + 1])
def test_many_queries_are_told_apart(n_queries):
    """Two rows each, a relevant one first or second: their numbers take one, two or four bytes."""
    raw = np.random.default_rng(n_queries).permutation(2 * n_queries).astype(float)
    y, group = np.tile([1, 0], n_queries), np.repeat(np.arange(n_queries), 2)
    expected = np.where(raw[::2] > raw[1::2], 1.0, 0.5).mean()
    assert ranking_score("mrr", y, raw, group) == pytest.approx(expected, rel=1e-12)


# A query with a tie: relevances 0, {1, 0}, 2 by falling score, t = 1/4 and 3/4. The orders 0 1 0 2
# and 0 0 1 2 are equally likely.
TIES_BY_HAND = {
    "dcg": (1.0 / LOG3 + 1.0 / 2.0) / 2.0 + 3.0 / np.log2(5.0),
    "precision@2": 1 / 4,
    "recall@3": 1 / 2,
    "map": ((1 / 2 + 2 / 4) / 2 + (1 / 3 + 2 / 4) / 2) / 2,
    "mrr": (1 / 2 + 1 / 3) / 2,
    "err": ((1 / 4) / 2 + (1 / 4) / 3) / 2 + 3 / 4 * 3 / 4 / 4,
    "pfound": 1 / 4 * (0.85 + 0.85**2) / 2 + 3 / 4 * 3 / 4 * 0.85**3,
}


@pytest.mark.parametrize(("metric", "value"), TIES_BY_HAND.items())
def test_a_query_with_ties_by_hand(metric, value):
    score, group = [1.0, 5.0, 3.0, 3.0], [7, 7, 7, 7]
    assert ranking_score(metric, [2, 0, 1, 0], score, group) == pytest.approx(value)


def in_order(name, y, cutoff, largest):
    """A metric of relevances in ranked order, from its definition."""
    k = len(y) if cutoff is None else cutoff
    a, t = y > 0, (2.0**y - 1.0) / 2.0**largest
    places = range(min(k, len(y)))
    reached = [np.prod(1.0 - t[:p]) for p in range(len(y))]
    gain = [sum((2.0 ** z[p] - 1.0) / np.log2(p + 2) for p in places) for z in (y, -np.sort(-y))]
    first = int(np.argmax(a))
    return {
        "dcg": gain[0],
        "ndcg": gain[0] / gain[1],
        "precision": a[:k].sum() / k,
        "recall": a[:k].sum() / a.sum(),
        "map": sum(a[p] * a[: p + 1].sum() / (p + 1) for p in places) / min(k, a.sum()),
        "mrr": 1.0 / (first + 1) if first < k else 0.0,
        "err": sum(t[p] / (p + 1) * reached[p] for p in places),
        "pfound": sum(t[p] * 0.85**p * reached[p] for p in places),
    }[name]


@every_metric
@every_cutoff
def test_ties_count_as_the_mean_over_all_their_orders(name, cutoff):
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 3, 30).astype(float), rng.integers(0, 3, 30).astype(float)
    groups = np.arange(30) % 6
    result = by_query(name, Target.of(y, groups=groups), score, cutoff)
    for query in range(6):
        rows = np.flatnonzero(groups == query)
        orders = [rows[list(order)] for order in permutations(range(len(rows)))]
        falling = [order for order in orders if (np.diff(score[order]) <= 0).all()]
        wanted = np.mean([in_order(name, y[order], cutoff, y.max()) for order in falling])
        assert result[query] == pytest.approx(wanted)


@every_cutoff
def test_dcg_and_ndcg_agree_with_scikit_learn(cutoff):
    rng = np.random.default_rng(1)
    y, score = rng.integers(0, 5, 200).astype(float), np.round(rng.normal(size=200), 1)
    groups = rng.integers(0, 12, 200)
    target = Target.of(y, groups=groups)
    for name, oracle in (("dcg", dcg_score), ("ndcg", ndcg_score)):
        result = by_query(name, target, score, cutoff)
        for query in range(12):
            rows = groups == query
            wanted = oracle([2.0 ** y[rows] - 1.0], [score[rows]], k=cutoff, ignore_ties=False)
            assert result[query] == pytest.approx(wanted)


def test_map_agrees_with_scikit_learn():
    rng = np.random.default_rng(4)
    y, groups = rng.integers(0, 2, 200).astype(float), rng.integers(0, 12, 200)
    score = rng.permutation(200).astype(float)  # without ties, which scikit-learn takes together
    measured = by_query("map", Target.of(y, groups=groups), score)
    for query in range(12):
        rows = groups == query
        wanted = label_ranking_average_precision_score([y[rows]], [score[rows]])
        assert measured[query] == pytest.approx(wanted)
        assert measured[query] == pytest.approx(average_precision_score(y[rows], score[rows]))


@every_metric
def test_queries_without_a_relevant_row_are_left_out(name):
    y, score, group = [1, 0, 0, 0, 2, 1], [1, 2, 1, 2, 3, 1], [0, 0, 1, 1, 2, 2]
    kept = [0, 1, 4, 5]
    result = ranking_score(name, y, score, group)
    assert result == ranking_score(name, *(np.array(v)[kept] for v in (y, score, group)))
    assert np.isnan(ranking_score(name, [0, 0], [1, 2], [0, 0]))


@every_metric
@every_cutoff
def test_the_order_of_the_rows_changes_no_bit(name, cutoff):
    rng = np.random.default_rng(2)
    y, score = rng.integers(0, 4, 300).astype(float), np.round(rng.normal(size=300), 1)
    groups, weight = rng.integers(0, 20, 300), rng.uniform(0.1, 3.0, 300)
    target = Target.of(y, weight, groups=groups)
    value = mean_over_queries(name, target, score, cutoff)
    for _ in range(5):
        order = rng.permutation(300)
        assert mean_over_queries(name, target.take(order), score[order], cutoff) == value


@every_metric
def test_queries_count_by_their_weights(name):
    y, score, group = [2, 1, 0, 1, 0, 1], [1, 2, 3, 1, 2, 0], [0, 0, 0, 1, 1, 1]
    first, second = (
        ranking_score(name, y[part], score[part], group[part]) for part in (slice(3), slice(3, 6))
    )
    if name in ("err", "pfound"):  # t depends on the largest relevance of all rows
        second = by_query(name, Target.of(y, groups=group), np.array(score, dtype=float))[1]
    result = ranking_score(name, y, score, group, sample_weight=[3.0, 1.0])
    assert result == pytest.approx((3.0 * first + second) / 4.0)


@every_metric
def test_queries_without_weight_are_left_out(name):
    y, score, group = [2, 1, 0, 0, 0], [1, 3, 2, 5, 4], [0, 0, 1, 1, 1]
    result = ranking_score(name, y, score, group, sample_weight=[3.0, 0.0])
    assert result == pytest.approx(ranking_score(name, y, score, group), rel=1e-15)
    assert np.isnan(ranking_score(name, y, score, group, sample_weight=[0.0, 3.0]))
    with pytest.raises(ValueError, match="sample_weight is zero in every row"):
        ranking_score(name, y, score, group, sample_weight=[0.0, 0.0])


@every_metric
def test_a_single_row_and_many_equal_scores(name):
    assert 0.0 < ranking_score(name, [1], [0.0], [0]) <= 1.0
    n = 20_000
    y = np.zeros(n)
    y[7] = 1.0
    value = ranking_score(f"{name}@10", y, np.zeros(n), np.zeros(n))
    assert 0.0 < value < 10.5 / n


def test_metrics_are_found_by_name_for_rankings_alone():
    target = Target.of([1.0, 0.0, 2.0], groups=[0, 0, 0])
    metric = get_metric("ndcg@2", "ranking")
    assert (metric.name, metric.greater_is_better) == ("ndcg@2", True)
    raw = np.array([0.3, 0.2, 0.1])
    assert metric(target, raw, QuerySquared()) == mean_over_queries("ndcg", target, raw, 2)
    assert [m.name for m in get_metrics(None, "ranking")] == ["ndcg"]
    assert [m.name for m in get_metrics("loss", "ranking")] == ["loss"]
    assert set(RANKING_METRICS) < set(METRICS)
    with pytest.raises(ValueError, match="'ndcg@2' has no meaning for a binary task"):
        get_metric("ndcg@2", "binary")
    with pytest.raises(ValueError, match="'auc' has no meaning for a ranking task; allowed: loss"):
        get_metric("auc", "ranking")
    for wrong in ("ndcg@0", "ndcg@", "ndcg@-1", "auc@3", "ndcg@2.5"):
        with pytest.raises(ValueError, match=r"is not a metric; allowed: .*'ndcg@10'"):
            get_metric(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("auc", [1], [1], [1]), "'auc' is not a ranking metric; known: ndcg, dcg"),
        (("ndcg", [1, -1], [1, 2], [1, 1]), "y must be a relevance >= 0; row 1 is -1"),
        (("ndcg", [1, 0], [1, np.nan], [1, 1]), "score must be a number; row 1 is nan"),
        (("ndcg", [1, 0], [1], [1, 1]), r"y and score must be vectors, not \(2,\) and \(1,\)"),
        (("ndcg", [60, 0], [1, 1], [1, 1]), "a relevance of 60 has no gain"),
    ],
)
def test_what_cannot_be_ranked_is_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.ranking_score(*arguments)
