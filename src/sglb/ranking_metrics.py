"""How well scores rank the rows of queries: the metrics of learning to rank, in one evaluator.

Conventions, the same for all metrics: the value is the mean over queries, weighted by the mean
weight of their rows. Queries without a relevant row (y > 0) or without weight are left out. Of rows
with equal scores the value is the mean over all their orders, so that the order of the table does
not matter. Up to `cutoff` positions count, all without it. With positions p = 0, 1, ... and
d_p = 1 / log2(p + 2):

    dcg        sum of (2^y - 1) d_p
    ndcg       dcg / dcg of the best order
    precision  relevant rows among the first k, / k (k: the rows of the query without a cut-off)
    recall     relevant rows among the first k, / relevant rows of the query
    map        sum over relevant rows of (relevant rows up to p) / (p + 1), / min(k, relevant rows)
    mrr        1 / (p + 1) of the first relevant row
    err        sum of t / (p + 1) times the product of 1 - t before, t = (2^y - 1) / 2^(largest y)
    pfound     sum of t .85^p times the same product
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.caching import cached_property
from sglb.gains import discounts, gains, powers_of_two
from sglb.queries import Queries
from sglb.target import Target
from sglb.weights import equal_weights

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Queries whose numbers fit into two bytes.
SHORT = 1 << 16
# How many readers of a result that does not help go on to the next (Yandex's pFound).
PFOUND_PATIENCE = 0.85
# Beyond this 2^y, summed over the rows of a query, has no digits left for other rows.
MOST_RELEVANCE = 50.0


@dataclass(frozen=True)
class Ranking:
    """Rows of queries by falling score; `cutoff` positions of each query count, None is all."""

    target: Target
    raw: Floats
    cutoff: int | None

    @property
    def queries(self) -> Queries:
        """Which rows belong to which query."""
        return self.target.queries

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Rows, query after query, by falling score; equal scores in any order."""
        by_score = np.argsort(-self.raw)
        query = self.queries.query[by_score]
        if self.queries.n_queries <= SHORT:
            query = query.astype(np.uint16)  # sorted in linear time
        return by_score[np.argsort(query, kind="stable")]

    @cached_property
    def relevance(self) -> Floats:
        """Relevances in this order."""
        return self.target.values[self.order]

    @cached_property
    def position(self) -> Integers:
        """Place of each row in its query, from 0."""
        starts, sizes = self.queries.starts, self.queries.sizes
        return np.arange(len(self.order), dtype=np.int64) - np.repeat(starts[:-1], sizes)

    @cached_property
    def counts(self) -> NDArray[np.bool_]:
        """Which rows are above the cut-off."""
        limit = np.iinfo(np.int64).max if self.cutoff is None else self.cutoff
        return self.position < limit

    @cached_property
    def ties(self) -> Queries:
        """Blocks of rows of a query with equal scores."""
        score = self.raw[self.order]
        begins = self.position == 0
        begins[1:] |= score[1:] != score[:-1]
        block = np.add.accumulate(begins) - 1
        starts = np.append(np.flatnonzero(begins), len(score)).astype(np.int64)
        return Queries(np.arange(len(score)), starts, block)

    @cached_property
    def n_relevant(self) -> Floats:
        """Relevant rows of each query."""
        return self.queries.sums((self.target.values > 0.0).astype(np.float64))

    @cached_property
    def k(self) -> Integers:
        """Places of each query that count, of those it has without a cut-off."""
        sizes = self.queries.sizes
        return sizes if self.cutoff is None else np.full_like(sizes, self.cutoff)

    def add_up(self, values: Floats) -> Floats:
        """Return the sum of values at positions above the cut-off, by query."""
        by_query = Queries(np.arange(len(self.order)), self.queries.starts, self.queries.query)
        return by_query.sums(np.where(self.counts, values, 0.0))

    def tie_means(self, values: Floats) -> Floats:
        """Return values, in ranked order, as their means over ties."""
        means: Floats = self.ties.means(values, equal_weights(len(values)))[self.ties.query]
        return means


def _dcg(ranking: Ranking) -> Floats:
    gain = ranking.tie_means(gains(ranking.relevance))
    return ranking.add_up(gain * discounts(ranking.position))


def _ndcg(ranking: Ranking) -> Floats:
    best = _dcg(Ranking(ranking.target, ranking.target.values, ranking.cutoff))
    return _dcg(ranking) / np.where(best > 0.0, best, 1.0)


def _hits(ranking: Ranking) -> Floats:
    """Return the relevant rows above the cut-off."""
    return ranking.add_up(ranking.tie_means((ranking.relevance > 0.0).astype(np.float64)))


def _precision(ranking: Ranking) -> Floats:
    return _hits(ranking) / ranking.k


def _recall(ranking: Ranking) -> Floats:
    return _hits(ranking) / np.maximum(ranking.n_relevant, 1.0)


def _map(ranking: Ranking) -> Floats:
    """Average precision.

    At step j of a block of m ties, r of them relevant, a row is relevant with probability r / m,
    and then j (r - 1) / (m - 1) relevant rows of the block are expected before it.
    """
    ties, relevant = ranking.ties, ranking.relevance > 0.0
    up_to = np.append(0, np.add.accumulate(relevant.astype(np.int64)))
    before_query = np.repeat(up_to[ranking.queries.starts[:-1]], ranking.queries.sizes)
    first = ties.starts[:-1][ties.query]
    m = ties.sizes[ties.query].astype(np.float64)
    r = (up_to[ties.starts[1:]] - up_to[ties.starts[:-1]])[ties.query].astype(np.float64)
    j = np.arange(len(relevant)) - first
    expected = up_to[first] - before_query + 1.0 + j * (r - 1.0) / np.maximum(m - 1.0, 1.0)
    total = ranking.add_up(r / m * expected / (ranking.position + 1.0))
    return total / np.maximum(np.minimum(ranking.k, ranking.n_relevant), 1.0)


def _mrr(ranking: Ranking) -> Floats:
    return _cascade(ranking, (ranking.relevance > 0.0).astype(np.float64), _reciprocal(ranking))


def _err(ranking: Ranking) -> Floats:
    return _cascade(ranking, _satisfaction(ranking), _reciprocal(ranking))


def _pfound(ranking: Ranking) -> Floats:
    patience = np.full(int(ranking.position.max(initial=0)) + 1, PFOUND_PATIENCE)
    patience[0] = 1.0
    discount = np.multiply.accumulate(patience)[ranking.position]
    return _cascade(ranking, _satisfaction(ranking), discount)


def _reciprocal(ranking: Ranking) -> Floats:
    return np.reciprocal(ranking.position.astype(np.float64) + 1.0)


def _satisfaction(ranking: Ranking) -> Floats:
    """Return the probability that a row ends the search of a reader."""
    largest = powers_of_two(ranking.relevance.max(initial=0.0, keepdims=True))
    return gains(ranking.relevance) / largest


def _cascade(ranking: Ranking, stops: Floats, discount: Floats) -> Floats:
    """Return the sum of discount_p times the probability that a reader stops at position p.

    That is the expected product of 1 - stops before p, less that up to p.
    """
    before, after = np.ones(len(stops)), 1.0 - stops
    ties = ranking.ties
    for block in np.flatnonzero(ties.sizes > 1):
        rows = slice(ties.starts[block], ties.starts[block + 1])
        n_positions = int(np.count_nonzero(ranking.counts[rows]))
        means = np.zeros(len(stops[rows]) + 1)  # 0 below the cut-off, where nothing counts
        means[: n_positions + 1] = _mean_products(1.0 - stops[rows], n_positions)
        before[rows], after[rows] = means[:-1], means[1:]
    reached = np.ones(len(ties.sizes))
    ends = after[ties.starts[1:] - 1] if len(after) else after
    blocks = ties.query[ranking.queries.starts[:-1]] if len(after) else np.empty(0, np.intp)
    for first, last in zip(blocks, [*blocks[1:], len(ends)], strict=True):
        np.multiply.accumulate(ends[first : last - 1], out=reached[first + 1 : last])
    return ranking.add_up(discount * reached[ties.query] * (before - after))


def _mean_products(values: Floats, n_positions: int) -> Floats:
    """Return the mean product of j of the values over all choices, j = 0 ... n_positions."""
    means = np.zeros(n_positions + 1)
    means[0] = 1.0
    if (values == values[0]).all():
        np.multiply.accumulate(values[:n_positions], out=means[1:])
        return means
    j = np.arange(1, n_positions + 1)
    for n, value in enumerate(np.sort(values), start=1):
        share = j / n
        means[1:] = np.maximum(1.0 - share, 0.0) * means[1:] + share * value * means[:-1]
    return means


RANKING_METRICS: dict[str, Callable[[Ranking], Floats]] = {
    "ndcg": _ndcg,
    "dcg": _dcg,
    "map": _map,
    "mrr": _mrr,
    "err": _err,
    "precision": _precision,
    "recall": _recall,
    "pfound": _pfound,
}


def by_query(name: str, target: Target, raw: Floats, cutoff: int | None = None) -> Floats:
    """Return the metric of each query, NaN for queries without a relevant row."""
    largest = target.values.max(initial=0.0)
    if largest > MOST_RELEVANCE:
        raise ValueError(
            f"a relevance of {largest:g} has no gain 2^relevance - 1 that other rows could be"
            f" compared with; divide relevances so that the largest is {MOST_RELEVANCE:g} or less"
        )
    ranking = Ranking(target, raw, cutoff)
    values = RANKING_METRICS[name](ranking)
    return np.where(ranking.n_relevant > 0.0, values, np.nan)


def mean_over_queries(name: str, target: Target, raw: Floats, cutoff: int | None = None) -> float:
    """Return the mean of a metric over the queries with a relevant row, NaN without any.

    Queries whose rows all weigh 0 are left out.
    """
    values = by_query(name, target, raw, cutoff)
    weight = target.queries.means(target.weight, equal_weights(len(target)))
    known = ~np.isnan(values) & (weight > 0.0)
    if not known.any():
        return float("nan")
    return sums.mean(values[known], weight[known])
