"""Queries dealt to several servers give the model of one shard that holds them all, byte for byte.

A piece holds whole queries. Noise of a ranking loss belongs to a row's number in the whole table,
and whole queries are sampled by the number of their first row.
"""

import numpy as np
import pytest

from dealing import deal
from nine_queries import GROUPS, RAW, TARGET, N, Y
from problems import boosted, served
from sglb import _core
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.chain import Chain
from sglb.leaves import LeafRule
from sglb.losses import LOSSES, OwnMetric, StochasticRank, get_loss
from sglb.row_numbers import RowNumbers
from sglb.samplers import Langevin, Move, Stochastic
from sglb.slopes import SlopesAt
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.totals import Totals
from sglb.trace import Trace
from sglb.training_set import TrainingSet

N_QUERIES = 53
SIZES = 1 + np.arange(N_QUERIES) * 7 % 31  # 1 to 31 documents
LOSS_CASES = {
    **{name: get_loss(name) for name, kind in LOSSES.items() if kind.by_group},
    "stochastic_rank of err": StochasticRank("err", None, mu=0.5, n_samples=3),
    "own_metric": OwnMetric(lambda ranked: float(ranked[:3].sum())),
}
LANGEVIN = Langevin(0.2, 0.01, 0.1)
RULES = {
    "all rows": lambda: GreedySearch(3, l2=1.0, newton=True),
    "few rows": lambda: GreedySearch(3, l2=1.0, newton=True, structure_rows=200),
    "gradients": lambda: GreedySearch(3, l2=1.0, structure_rows=200),
}
NEWTON, GRADIENT = LeafRule("newton", 1.0), LeafRule("gradient", 1.0)


class Problem:
    """Documents of queries that lie together, in one or several copies."""

    def __init__(self, loss, *, weighted=False, n_copies=1, sizes=SIZES):
        rng = np.random.default_rng(3)
        groups = np.repeat(np.arange(len(sizes)), sizes)
        n_rows = len(groups)
        X = rng.normal(size=(n_rows, 4))
        X[::7, 2] = np.nan
        y = np.digitize(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n_rows), [0, 1, 2]).astype(float)
        weight = rng.uniform(0.2, 3.0, n_rows) if weighted else None
        target = Target.of(y, weight, groups=groups)
        self.loss = loss.adapt(target)
        self.bins = Bins.fit(X, 32)
        codes = np.tile(self.bins.encode(X), n_copies)
        if n_copies > 1:
            codes[3] = rng.integers(1, 9, codes.shape[1])  # a column that differs between copies
        self.starts = np.append(0, np.cumsum(sizes))
        self.data = TrainingSet.build(
            codes, self.bins.n_codes, target.copies(n_copies), n_copies=n_copies
        )

    def run(self, n_shards, sampler, rule, leaves, n_steps=6, n_threads=1):
        n_queries = len(self.starts) - 1
        cuts = [int(self.starts[n_queries * k // n_shards]) for k in range(n_shards)]
        trace = Trace(self.bins, 3, np.zeros(1))
        data = served(self.data, deal(self.data, cuts), n_threads)
        rows = data.start_rows(self.loss, trace, newton=leaves.method == "newton")
        return boost(Chain(rows, sampler, rule(), leaves, trace, seed=7), n_steps), rows

    def alone(self, sampler, rule, leaves, n_steps=6):
        trace = Trace(self.bins, 3, np.zeros(1))
        arguments = self.data, self.loss, sampler, rule(), leaves, trace
        return boosted(*arguments, n_steps=n_steps, seed=7)


def assert_same(result, expected):
    assert np.abs(expected.values).max() > 0.0
    for name, array in expected.arrays().items():
        assert result.arrays()[name].tobytes() == array.tobytes(), name


every_loss = pytest.mark.parametrize("loss", LOSS_CASES.values(), ids=LOSS_CASES)


@pytest.mark.parametrize("n_shards", [1, 2, 3, 7])
@pytest.mark.parametrize("rule", ["all rows", "few rows"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@every_loss
def test_shards_of_whole_queries_give_the_same_model(loss, weighted, rule, n_shards):
    sizes = SIZES[:14] if isinstance(loss, OwnMetric) else SIZES  # which takes n³ a query
    problem = Problem(loss, weighted=weighted, sizes=sizes)
    expected = problem.alone(LANGEVIN, RULES[rule], NEWTON)
    result, rows = problem.run(n_shards, LANGEVIN, RULES[rule], NEWTON)
    assert_same(result, expected)
    assert np.array_equal(rows.raw, expected.replay(problem.data.code_columns)[0])


@pytest.mark.parametrize("n_shards", [2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@every_loss
def test_shards_of_copies_hold_the_same_queries_of_each(loss, weighted, n_shards):
    sizes = SIZES[:14] if isinstance(loss, OwnMetric) else SIZES
    problem = Problem(loss, weighted=weighted, n_copies=3, sizes=sizes)
    expected = problem.alone(LANGEVIN, RULES["gradients"], GRADIENT)
    result, rows = problem.run(n_shards, LANGEVIN, RULES["gradients"], GRADIENT)
    assert_same(result, expected)
    assert np.array_equal(rows.raw, expected.replay(problem.data.code_columns)[0])


@pytest.mark.parametrize("n_shards", [2, 3, 7])
@pytest.mark.parametrize("n_copies", [1, 3])
@pytest.mark.parametrize("sampler", [Stochastic(0.3, 0.4), Langevin(0.2, 0.01, 0.1, 0.6)])
@pytest.mark.parametrize("loss", ["query_squared", "stochastic_rank"])
def test_queries_are_sampled_by_their_first_row_in_the_whole_table(
    loss, sampler, n_copies, n_shards
):
    problem = Problem(get_loss(loss), n_copies=n_copies)
    expected = problem.alone(sampler, RULES["few rows"], NEWTON)
    assert_same(problem.run(n_shards, sampler, RULES["few rows"], NEWTON)[0], expected)


@pytest.mark.parametrize("loss", ["lambdarank", "pairwise_logistic", "query_squared", "yeti"])
def test_shards_take_the_same_newton_paths(loss):
    problem, several = Problem(get_loss(loss)), LeafRule("newton", 1.0, steps=3)
    expected = problem.alone(LANGEVIN, RULES["few rows"], several, n_steps=3)
    assert_same(problem.run(3, LANGEVIN, RULES["few rows"], several, n_steps=3)[0], expected)


@every_loss
def test_threads_and_shards_together_change_nothing(loss):
    sizes = SIZES[:14] if isinstance(loss, OwnMetric) else np.tile(SIZES, 5)
    problem = Problem(loss, weighted=True, sizes=sizes)
    expected = problem.alone(LANGEVIN, RULES["few rows"], NEWTON, n_steps=3)
    result, _ = problem.run(3, LANGEVIN, RULES["few rows"], NEWTON, n_steps=3, n_threads=3)
    assert_same(result, expected)


def test_a_long_query_in_one_shard_changes_no_curvature_elsewhere():
    """A curvature is the mean of fewer samples where the longest query of all shards is long."""
    sizes = np.array([1500, *SIZES[:20]])
    problem = Problem(StochasticRank("ndcg", None), sizes=sizes)
    expected = problem.alone(LANGEVIN, RULES["all rows"], NEWTON, n_steps=2)
    assert_same(problem.run(2, LANGEVIN, RULES["all rows"], NEWTON, n_steps=2)[0], expected)


def test_a_query_in_two_pieces_is_rejected():
    problem = Problem(get_loss("query_squared"))
    problem.starts = problem.starts + np.where(np.arange(len(problem.starts)) == 26, 1, 0)
    with pytest.raises(ValueError, match="query 26 has rows in pieces 0 and 1 of X"):
        problem.run(2, LANGEVIN, RULES["all rows"], NEWTON)


# --- samples of whole queries ---


def gradients(target, rate, steps):
    """Sampled gradients (n_steps, n_rows) of query_squared at RAW."""
    loss = get_loss("query_squared")
    totals = Totals(len(target))
    at = SlopesAt(RAW[None].copy(), target, loss, totals, newton=False, n_threads=1)
    stored = np.empty((len(steps), len(target)))
    bounds = []
    for number, step in enumerate(steps):
        move, draws = Move(0.1, subsample=rate), _core.Draws(11, step)
        bounds.append(at.update(move, draws)[0])
        out = np.empty((1, len(target)))
        _core.testing.evaluate(at.slopes, at.row_rate(move), draws, out, None)
        stored[number] = out[0]
    return stored, np.array(bounds)


def test_a_query_is_kept_whole_and_its_gradient_divided_by_the_rate():
    full, rate = get_loss("query_squared").gradients(TARGET, RAW), 0.4
    sampled, bounds = gradients(TARGET, rate, range(50))
    assert (np.abs(sampled).max(axis=1) <= bounds).all()
    for row in sampled:
        for query in np.unique(GROUPS):
            rows = query == GROUPS
            kept = row[rows].any()
            np.testing.assert_array_equal(row[rows], full[rows] / rate if kept else 0.0)


@pytest.mark.parametrize("rate", [0.3, 0.8])
def test_the_sampled_gradient_is_unbiased_and_queries_are_kept_independently(rate):
    """4,000 steps: a query is kept in Binomial(4000, rate) of them, two in Binomial(4000, rate²).
    Within 5 standard errors, 45 comparisons: error rate 45 * 6e-7 = 3e-5.
    """
    n, full = 4000, get_loss("query_squared").gradients(TARGET, RAW)
    first = np.array([np.flatnonzero(query == GROUPS)[0] for query in np.unique(GROUPS)])
    kept = (gradients(TARGET, rate, range(n))[0][:, first] / full[first] * rate).round(12)
    assert set(np.unique(kept)) == {0.0, 1.0}
    for i in range(len(first)):
        for j in range(i + 1):
            p = rate if i == j else rate * rate
            both = (kept[:, i] * kept[:, j]).mean()
            assert abs(both - p) < 5 * np.sqrt(p * (1 - p) / n)


def test_rows_of_independent_losses_are_still_sampled_one_by_one():
    target = Target.of(Y > 2, classes=[0, 1])
    totals, loss = Totals(N), get_loss("logistic")
    at = SlopesAt(RAW[None].copy(), target, loss, totals, newton=False, n_threads=1)
    assert at.row_rate(Move(0.1, subsample=0.4)) == 0.4


def test_numbers_of_rows():
    assert RowNumbers(0, 4).of(4).tolist() == [0, 1, 2, 3]
    assert RowNumbers(3, 10, 2).of(4).tolist() == [3, 4, 13, 14]
    assert Target.of([1.0, 2.0]).copies(3).numbers == RowNumbers(0, 2, 3)
