"""Rows dealt to several servers give the model of one shard that holds them all, byte for byte."""

from dataclasses import replace

import numpy as np
import pytest

from dealing import deal
from problems import boosted, served
from sglb import _core, leaves, slopes
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.chain import Chain
from sglb.leaves import LeafRule
from sglb.losses import get_loss
from sglb.samplers import Langevin, Stochastic
from sglb.shard import Shard
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.totals import Totals
from sglb.trace import Trace
from sglb.training_set import TrainingSet

N_ROWS = 1003  # a multiple of nothing


class Problem:
    """Rows, in one or several copies, and how to run a chain on them."""

    def __init__(self, loss="logistic", *, weighted=False, n_copies=1, n_rows=N_ROWS):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(n_rows, 5))
        X[::7, 2] = np.nan
        score = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n_rows)
        labels = {"squared": score, "softmax": np.digitize(score, [-1, 0, 1, 2])}
        y = np.asarray(labels.get(loss, score > 0.5), dtype=float)
        n_classes = {"softmax": 5, "cost": 2}.get(loss, 0)
        self.loss = get_loss(loss, n_classes=n_classes)
        self.bins = Bins.fit(X, 32)
        weight = rng.uniform(0.2, 3.0, n_rows) if weighted else None
        codes = self.bins.encode(X)
        if n_copies > 1:
            codes = np.tile(codes, n_copies)
            codes[4] = rng.integers(1, 9, codes.shape[1])  # a column that differs between copies
            weight = np.tile(np.ones(n_rows) if weight is None else weight, n_copies) / n_copies
            y = np.tile(y, n_copies)
        target = Target.of(y, weight)
        if self.loss.uses_costs:
            target = target.with_costs(rng.normal(size=(len(y), n_classes, n_classes)))
            self.loss = self.loss.adapt(target)
        self.data = TrainingSet.build(codes, self.bins.n_codes, target, n_copies=n_copies)

    def pieces(self, n_shards):
        """The rows in that many pieces, the last one the smallest."""
        n_rows = self.data.n_rows // self.data.n_copies
        cuts = [n_rows * (k + 1) // n_shards + k % 3 for k in range(n_shards - 1)]
        return deal(self.data, [0, *cuts])

    def run(self, n_shards, sampler, rule, rules_of_leaves, n_steps=8, n_threads=1):
        offset = np.linspace(-0.2, 0.3, self.loss.n_outputs)
        trace = Trace(self.bins, 4, offset)
        data = served(self.data, self.pieces(n_shards), n_threads)
        rows = data.start_rows(self.loss, trace, newton=rules_of_leaves.method == "newton")
        return boost(Chain(rows, sampler, rule(), rules_of_leaves, trace, seed=7), n_steps), rows

    def alone(self, sampler, rule, rules_of_leaves, n_steps=8):
        trace = Trace(self.bins, 4, np.linspace(-0.2, 0.3, self.loss.n_outputs))
        arguments = self.data, self.loss, sampler, rule(), rules_of_leaves, trace
        return boosted(*arguments, n_steps=n_steps, seed=7)


def assert_same(result, expected):
    for name, array in expected.arrays().items():
        assert result.arrays()[name].tobytes() == array.tobytes(), name


LANGEVIN = Langevin(0.3, 0.5, 0.2)
RULES = {
    "all rows": lambda: GreedySearch(4, l2=1.0, newton=True),
    "few rows": lambda: GreedySearch(4, l2=1.0, newton=True, structure_rows=100),
    "most rows": lambda: GreedySearch(4, l2=1.0, newton=True, structure_rows=700),
    "some outputs": lambda: GreedySearch(
        4, l2=1.0, newton=True, structure_rows=300, structure_outputs=2
    ),
    "noisy scores": lambda: GreedySearch(4, l2=1.0, newton=True, random_strength=1.0),
}
NEWTON = LeafRule("newton", 1.0)


@pytest.mark.parametrize("n_shards", [1, 2, 3, 7])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared", "cost"])
def test_shards_give_the_same_model(n_shards, rule, weighted, loss):
    problem = Problem(loss, weighted=weighted)
    expected = problem.alone(LANGEVIN, RULES[rule], NEWTON)
    result, rows = problem.run(n_shards, LANGEVIN, RULES[rule], NEWTON)
    assert_same(result, expected)
    assert np.array_equal(rows.raw, expected.replay(problem.data.code_columns)[0])


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("rule", RULES)
def test_shards_without_codes_by_row_gather_them(n_shards, rule):
    problem = Problem(n_copies=2)
    expected = problem.alone(LANGEVIN, RULES[rule], NEWTON)
    stride = problem.data.code_rows.shape[1]
    problem.data = replace(problem.data, code_rows=np.empty((0, stride), dtype=np.uint8))
    assert_same(problem.alone(LANGEVIN, RULES[rule], NEWTON), expected)
    assert_same(problem.run(n_shards, LANGEVIN, RULES[rule], NEWTON)[0], expected)


@pytest.mark.parametrize("n_shards", [2, 3, 7])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_shards_of_copies_hold_the_same_rows_of_each(n_shards, rule, weighted):
    problem = Problem(weighted=weighted, n_copies=4)
    expected = problem.alone(LANGEVIN, RULES[rule], NEWTON)
    result, rows = problem.run(n_shards, LANGEVIN, RULES[rule], NEWTON)
    assert_same(result, expected)
    assert np.array_equal(rows.raw, expected.replay(problem.data.code_columns)[0])


@pytest.mark.parametrize("n_shards", [2, 3, 7])
@pytest.mark.parametrize("sampler", [Stochastic(0.3, 0.4), Langevin(0.3, 2.0, 0.1, 0.6)])
def test_rows_are_sampled_by_their_number_in_the_whole_table(n_shards, sampler):
    problem = Problem()
    rule, gradient = RULES["few rows"], LeafRule("newton")
    expected = problem.alone(sampler, rule, gradient)
    assert_same(problem.run(n_shards, sampler, rule, gradient)[0], expected)


@pytest.mark.parametrize("n_shards", [2, 3, 7])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "evaluated"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_shards_take_the_same_newton_paths(n_shards, stored, weighted, monkeypatch):
    monkeypatch.setattr(slopes, "STORED_ROWS", 10**9 if stored else 0)
    monkeypatch.setattr(leaves, "PART_ROWS", 3_000)  # one line of 64 rows in three, if evaluated
    problem = Problem(weighted=weighted, n_rows=10_007)
    several = LeafRule("newton", 1.0, steps=4)
    expected = problem.alone(LANGEVIN, RULES["few rows"], several, n_steps=4)
    result, _ = problem.run(n_shards, LANGEVIN, RULES["few rows"], several, n_steps=4)
    assert_same(result, expected)


def test_threads_and_shards_together_change_nothing():
    problem = Problem(n_rows=20_011, weighted=True)
    expected = problem.alone(LANGEVIN, RULES["few rows"], NEWTON, n_steps=3)
    result, _ = problem.run(3, LANGEVIN, RULES["few rows"], NEWTON, n_steps=3, n_threads=3)
    assert_same(result, expected)


def test_a_shard_of_some_rows_does_not_draw_a_sample_alone():
    problem = Problem()
    piece, _ = problem.pieces(2).values()
    totals, trace = Totals.of([problem.data]), Trace(problem.bins, 4, np.zeros(1))
    state = trace.start(piece.data.n_rows)
    shard = Shard(piece.data, problem.loss, state, trace.offset, newton=True, totals=totals)
    bounds = shard.refresh_slopes(LANGEVIN.move(0), _core.Draws(1, 0))
    plan = GreedySearch(2).plan(N_ROWS, 1)
    with pytest.raises(ValueError, match="draws its part of a sample in stages"):
        shard.draw(plan, bounds, LANGEVIN.move(0), _core.Draws(1, 0))
