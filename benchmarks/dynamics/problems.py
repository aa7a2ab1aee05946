"""Five training problems with many valleys, the same size of everything, and their best losses.

A problem knows its unit of energy, `barrier` (mean loss at the start less the mean of the lowest
loss that each row could have), and its unit of steps, `curvature`; settings of samplers are in
these units, so that one setting means the same in all of them. `best` is the lowest loss that is
known without any of the samplers: by formula, by enumeration, or by boosting from the truth; None
where nothing is known.
"""

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.chain import Chain
from sglb.datasets import synthetic
from sglb.experiments.synthetic import BORDERS, WIDTH
from sglb.leaves import LeafRule
from sglb.losses import Loss, Sla, Squared, StochasticRank, UserLoss
from sglb.noise import chain_seed
from sglb.prepare.rows import size_of
from sglb.samplers import Plain, Sampler
from sglb.settings import Settings, resolve
from sglb.shard import Shard
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet

ESTIMATORS = {
    "regression": SGLBRegressor,
    "binary": SGLBClassifier,
    "ranking": SGLBRanker,
}


@dataclass(frozen=True)
class Problem:
    """Training rows with codes, a loss, where chains start, and units."""

    data: TrainingSet
    bins: Bins
    loss: Loss
    offset: float
    depth: int  # of trees
    barrier: float
    curvature: float
    best: float | None = None

    @classmethod
    def of(cls, X, target, loss, *, offset=0.0, depth, max_bins=128, **units):
        bins = Bins.fit(np.ascontiguousarray(X, dtype=np.float64), max_bins)
        data = TrainingSet.build(bins.encode(X), bins.n_codes, target)
        return cls(data, bins, loss, offset, depth, **units)

    @property
    def n_rows(self):
        return self.data.n_rows

    @property
    def leaf_rows(self):
        """Rows of a leaf, on average."""
        return self.n_rows / (1 << self.depth)

    @property
    def start(self):
        return np.full(1, self.offset)

    def chain(self, sampler: Sampler, seed, *, number=0, state=None):
        """A chain that keeps no trees, so that it may take any number of steps."""
        return self._chain(sampler, GreedySearch(self.depth), LeafRule(), seed, number, state)

    def defaults(self, n_steps) -> Settings:
        """What "auto" means for this loss and these rows, but for the start and depth of trees."""
        target = self.data.target
        loss = self.loss.examine(target, self.start)
        size = size_of(target, self.data.n_features, loss, self.start)
        parameters = ESTIMATORS[loss.task]().get_params()
        stated = {"n_estimators": n_steps, "max_depth": self.depth, "random_state": 0}
        return resolve(parameters | stated, loss, size)

    def default_chain(self, settings: Settings, seed):
        """The chain of an estimator's defaults, its leaves and its search of structures too."""
        newton = settings.leaves.method == "newton"
        rule = GreedySearch(
            self.depth,
            l2=settings.leaves.l2,
            newton=newton,
            structure_rows=settings.structure_rows,
            random_strength=settings.random_strength,
        )
        return self._chain(settings.sampler, rule, settings.leaves, seed, newton=newton)

    def _chain(self, sampler, rule, leaves, seed, number=0, state=None, *, newton=False):
        size = sampler.move(0).transition.size
        trace = Trace(self.bins, self.depth, self.start, size=size, keep_trees=False)
        rows = Shard.start(self.data, self.loss, trace, newton=newton, state=state)
        seed = chain_seed(seed, number) if number else seed
        return Chain(rows, sampler, rule, leaves, trace, seed=seed)

    def loss_of(self, chain):
        """Mean training loss; of rankings 1 - the mean metric of a query."""
        energy = chain.rows.energy().value()
        queries = self.data.target.queries if self.loss.task == "ranking" else None
        return energy / self.n_rows if queries is None else 1.0 + energy / queries.n_queries


class DoubleWell:
    """(z^2 - 1)^2 / 4 - tilt y z, straight beyond |z| = 2; y is -1 or 1, the deeper valley."""

    name, convex, row_wise = "double_well", False, True
    tilt, edge = 0.1, 2.0

    def loss(self, y, raw):
        inside = np.clip(raw, -self.edge, self.edge)
        slope = inside * (np.square(inside) - 1.0)
        well = np.square(np.square(inside) - 1.0) / 4.0 + slope * (raw - inside)
        return well - self.tilt * y * raw

    def gradient(self, y, raw):
        inside = np.clip(raw, -self.edge, self.edge)
        return inside * (np.square(inside) - 1.0) - self.tilt * y


class Truncated:
    """r^2 / 2 up to |r| = 1, constant beyond."""

    name, convex, row_wise = "truncated", False, True

    def loss(self, y, raw):
        return 0.5 * np.minimum(np.square(raw - y), 1.0)

    def gradient(self, y, raw):
        return np.where(np.abs(raw - y) < 1.0, raw - y, 0.0)


def double_well(seed):
    """All rows start in the same valley, which is the wrong one for half of them: those with
    x0 != x1. All rows of a leaf have to cross the barrier together.
    """
    rng = np.random.default_rng([1, seed])
    X = rng.integers(0, 2, (200, 2))
    y = np.where(X[:, 0] != X[:, 1], 1.0, -1.0)
    well, z = DoubleWell(), np.linspace(-1.5, 1.5, 300_001)
    best = float(well.loss(1.0, z).min())
    units = {"barrier": float(well.loss(y, -1.0).mean()) - best, "curvature": 2.0, "best": best}
    return Problem.of(X, Target.of(y), UserLoss(well), offset=-1.0, depth=2, **units)


def truncated(seed):
    """35 % of the rows lie 5 to 15 above the truth, and chains start at the median of all."""
    rng = np.random.default_rng([2, seed])
    X = rng.uniform(-3.0, 3.0, (500, 3))
    y = 2.0 * np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=500)
    bad = rng.random(500) < 0.35
    y[bad] += rng.uniform(5.0, 15.0, bad.sum())
    loss, start = UserLoss(Truncated()), float(np.median(y))
    near = float((np.abs(start - y) < 1.0).mean())
    problem = Problem.of(
        X,
        Target.of(y),
        loss,
        offset=start,
        depth=2,
        max_bins=17,
        barrier=float(Truncated().loss(y, start).mean()),
        curvature=max(near, 0.1),
    )
    # From the truth, as squared loss finds it where there are no outliers, straight downhill.
    known = TrainingSet.build(
        problem.data.code_columns, problem.data.n_codes, Target.of(y, np.where(bad, 1e-9, 1.0))
    )
    clean = replace(problem, data=known, loss=Squared()).chain(Plain(0.1), seed)
    boost(clean, 500)
    downhill = problem.chain(Plain(0.5), seed, state=clean.rows.state.copy())
    boost(downhill, 2000)
    return replace(problem, best=problem.loss_of(downhill))


def paper(seed):
    """The paper's synthetic problem: stumps, and classes that no feature tells by itself."""
    x, label = synthetic(1000, [3, seed])
    units = {"barrier": 0.5, "curvature": 0.1 * Sla(WIDTH).smoothness}
    target = Target.of(label.astype(float), classes=(0, 1))
    return Problem.of(x, target, Sla(WIDTH), depth=1, max_bins=BORDERS + 1, **units)


def parity(seed):
    """The class is the parity of three bits, and wrong in 10 % of the rows; trees have two splits.

    Without an interaction of all three bits every choice of signs in the eight cells is possible
    but the parity itself and its opposite. So the best model gives up one cell, the cheapest, and
    makes the others ever larger.
    """
    rng = np.random.default_rng([4, seed])
    X = rng.integers(0, 2, (400, 3))
    wrong = rng.random(400) < 0.1
    y = (X.sum(axis=1) + wrong) % 2
    gain = np.bincount(X @ [1, 2, 4], 1.0 - 2.0 * wrong, minlength=8)
    best = (float(wrong.sum()) + max(float(gain.min()), 0.0)) / 400.0
    units = {"barrier": 0.5, "curvature": 0.1 * Sla(WIDTH).smoothness, "best": best}
    target = Target.of(y.astype(float), classes=(0, 1))
    return Problem.of(X, target, Sla(WIDTH), depth=2, **units)


N_KINDS = 6


def ranking(seed):
    """Six kinds of documents, whose order is the whole model: 720 of them, tried one by one.

    A query has six documents of random kinds, and one that is relevant: of two kinds that every
    query draws anew, the one that is there. The metric is the mean reciprocal rank.
    """
    rng = np.random.default_rng([5, seed])
    kinds = rng.integers(0, N_KINDS, (60, 6))
    relevance = np.zeros(kinds.shape)
    relevance[np.arange(60), rng.integers(0, 6, 60)] = 1.0
    target = Target.of(relevance.ravel(), groups=np.repeat(np.arange(60), 6))
    X, loss = np.eye(N_KINDS)[kinds.ravel()], StochasticRank("mrr", 6).adapt(target)
    orders = np.array(list(permutations(range(N_KINDS))), dtype=float)
    score = np.array([order[kinds.ravel()] for order in orders])
    best = min(float(loss.losses(target, raw).sum()) for raw in score)
    start = float(loss.losses(target, np.zeros(360)).sum())
    return Problem.of(
        X,
        target,
        loss,
        depth=3,
        barrier=(start + 60.0) / 360.0 / loss.unit,
        curvature=1.0,
        best=1.0 + best / 60.0,
    )


PROBLEMS = {
    "double well": double_well,
    "truncated": truncated,
    "paper": paper,
    "parity": parity,
    "ranking": ranking,
}
