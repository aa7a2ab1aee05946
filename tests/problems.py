"""Small random problems with everything awkward in them, and the sizes to try."""

import numpy as np
from hypothesis import strategies as st

import reference
from sglb import _core
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.chain import Chain
from sglb.cluster import DealtRows, SerialComm, Server
from sglb.losses import Squared
from sglb.posterior import PosteriorDriver
from sglb.samplers import Move
from sglb.shard import Shard
from sglb.structure import Structure
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet
from sglb.transition import Transition

# Empty, single, around a vector register, around a tile (256) and around a block (2048) of rows.
SMALL_SIZES = (0, 1, 2, 31, 32, 33, 100, 257)
BLOCK_SIZES = (2047, 2048, 2049, 8193)
THREADS = (1, 2, 3, 8, 12)

sizes = st.sampled_from(SMALL_SIZES)
generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)
seeds = st.integers(0, 2**64 - 1)
steps = st.integers(0, 2**32 - 1)


def make_codes(rng, n_rows, n_codes):
    """Codes (F, N) below n_codes (F,), and which features have a missing value."""
    columns = np.empty((len(n_codes), n_rows), dtype=np.uint8)
    for f, n in enumerate(n_codes):
        # Every other feature has no missing values.
        columns[f] = rng.integers(f % 2 if n > 1 else 0, n, n_rows)
    return columns, (columns == 0).any(axis=1)


WEIGHTS = {
    "whole": [0.0, 1.0, 2.0, 7.0],
    "odd": [0.0, 0.5, 1.0, 2.0, 3.7],
    "huge": [0.0, 1e9, 3e12],
    "wide": [0.0, 1e-9, 1.0],
}


def core_shard(columns, n_codes=None, weight=None, kinds=None, *, n_copies=1, n_threads=1):
    """All rows, codes (n_features, n_rows), as the kernels take them; numbers unless `kinds` says
    else.
    """
    n_rows = columns.shape[1]
    n_codes = np.full(len(columns), 256) if n_codes is None else n_codes
    return _core.Shard(
        columns,
        reference.to_rows(columns),
        np.asarray(n_codes, dtype=np.int32),
        np.asarray(np.zeros(len(columns)) if kinds is None else kinds, dtype=np.uint8),
        _core.Weights(weight, *reference.weight_facts(weight, n_rows)),
        (0, n_rows // n_copies, n_copies),
        n_threads,
    )


def shard_without_codes(n_rows, weight=None, **options):
    """Rows whose codes do not matter."""
    return core_shard(np.zeros((1, n_rows), dtype=np.uint8), None, weight, **options)


def make_weight(rng, n_rows, kind="odd"):
    """Weights with zeros, never all zero."""
    weight = rng.choice(WEIGHTS[kind], n_rows)
    weight[:1] = WEIGHTS[kind][1]
    return weight


def make_splits(rng, n_codes, depth):
    """Random intervals of codes, some of them empty of rows."""
    features = rng.integers(0, len(n_codes), depth).astype(np.int32)
    ends = rng.integers(0, np.asarray(n_codes)[features][:, None], (depth, 2))
    ends.sort(axis=1)
    return features, ends[:, 0].astype(np.uint8), ends[:, 1].astype(np.uint8)


def make_trees(rng, n_codes, n_trees, max_depth, n_outputs):
    """Arrays of trees of all depths up to max_depth: features, lows, highs, depths, values."""
    depths = rng.integers(0, max_depth + 1, n_trees).astype(np.int32)
    features = np.zeros((n_trees, max_depth), dtype=np.int32)
    lows, highs = np.zeros((2, n_trees, max_depth), dtype=np.uint8)
    for t, depth in enumerate(depths):
        splits = make_splits(rng, n_codes, depth)
        features[t, :depth], lows[t, :depth], highs[t, :depth] = splits
    values = rng.normal(size=(n_trees, 1 << max_depth, n_outputs))
    return features, lows, highs, depths, values


def make_table(rng, n_rows, n_features):
    """Columns of all sorts: smooth, few values, constant, heavy tails, all or partly missing."""
    columns = [
        rng.normal(size=n_rows),
        rng.integers(0, 3, n_rows).astype(float),
        np.full(n_rows, 7.0),
        rng.standard_cauchy(n_rows) * 1e30,
        np.where(rng.random(n_rows) < 0.3, np.nan, rng.normal(size=n_rows)),
        np.full(n_rows, np.nan),
    ]
    return np.stack([columns[f % len(columns)] for f in range(n_features)], axis=1)


def make_problem(rng, n_rows=500, n_features=6, *, weighted=False, max_bins=16, n_outputs=1):
    """A table, its bins and a training set whose target depends on the table."""
    X = make_table(rng, n_rows, n_features)
    bins = Bins.fit(X, max_bins)
    signal = np.where(np.isnan(X), 0.5, np.tanh(X)).sum(axis=1) + 0.3 * rng.normal(size=n_rows)
    y = signal
    if n_outputs > 1:
        y = np.digitize(signal, np.quantile(signal, np.arange(1, n_outputs) / n_outputs))
    weight = make_weight(rng, n_rows) if weighted else None
    return (
        X,
        bins,
        TrainingSet.build(bins.encode(X), bins.n_codes, Target.of(y.astype(float), weight)),
    )


N_CODES = [5, 9, 2, 256, 3]  # of codes that trees are applied to
MAX_DEPTH = 4  # of the trees of a random chain


def make_transition(rng, size=1):
    """A shrink by some factor, or a state of several parts mixed at random."""
    if size == 1:
        return Transition.shrink(rng.uniform(0.7, 1.0))
    return Transition(rng.normal(size=(size, size)) / size, rng.normal(size=size))


def make_trace(rng, n_trees, n_outputs=1, n_features=6, size=1):
    """A chain of random trees, with another transition at each step."""
    bins = Bins.fit(make_table(rng, 100, n_features), 16)
    trace = Trace(bins, MAX_DEPTH, rng.normal(size=n_outputs), size=size)
    for _ in range(n_trees):
        depth = rng.integers(0, MAX_DEPTH + 1)
        structure = Structure(*make_splits(rng, bins.n_codes, depth))
        values = rng.normal(size=(1 << depth, n_outputs))
        gains = rng.random(depth)
        trace.append(structure, values, Move(0.1, transition=make_transition(rng, size)))
        trace.arrays()["gains"][-1, :depth] = gains
    return trace


def boosted(rows, loss, sampler, rule, leaves, trace, *, n_steps, seed, n_threads=1, callbacks=()):
    """Take steps of a chain on all rows, from the state that a trace leads to; its trace."""
    newton = leaves.method == "newton"
    shard = Shard.start(rows, loss, trace, newton=newton, n_threads=n_threads)
    return boost(Chain(shard, sampler, rule, leaves, trace, seed=seed), n_steps, callbacks)


def dealt(data, comm, pieces):
    """What a chain knows of a training set whose pieces are on servers."""
    return DealtRows(
        comm, sorted(pieces), data.n_codes, data.kinds, data.bundles, data.target, data.n_copies
    )


def hands(pieces, n_servers):
    """The pieces of each of some servers, which do not lie together."""
    return [
        {number: piece for number, piece in pieces.items() if number % n_servers == server}
        for server in range(n_servers)
    ]


def served(data, pieces, n_threads=1):
    """Rows on servers in this process: two or three pieces on each, and none on the last."""
    servers = [Server(held, n_threads) for held in hands(pieces, -(-len(pieces) // 2))]
    return dealt(data, SerialComm([*servers, Server()]), pieces)


def grow(rule, rows, gradient, move, seed, step, hessian=None):
    """The structure that a rule chooses on gradients (n_outputs, n_rows) of a training set."""

    class Given(Squared):
        def stored_slopes(self, target, raw, to, to_hessian):
            bounds = np.abs(gradient).max(), 0.0 if hessian is None else np.abs(hessian).max()
            return _core.Slopes(gradient, hessian), lambda n_threads, draws: bounds

    state = np.zeros((1, *gradient.shape))
    shard = Shard(rows, Given(), state, np.zeros(len(gradient)), newton=hessian is not None)
    bounds = shard.refresh_slopes(move, _core.Draws(seed, step))
    plan = rule.plan(shard.totals.n_rows, len(gradient))
    return rule.search(shard.draw(plan, bounds, move, _core.Draws(seed, step)))


def core_trees(features, lows, highs, depths, values):
    """Trees as the kernels keep them; gains, cover and moves are 0."""
    n_trees, n_leaves = values.shape[:2]
    zeros = np.zeros(features.shape), np.zeros((n_trees, n_leaves)), np.zeros((n_trees, 3))
    return _core.Trees(features, lows, highs, depths, zeros[0], values, zeros[1], zeros[2])


def core_predictor(thresholds, n_thresholds, trees, ends, factors, offset):
    """States of trees whose values are weighted already; factors (S,)."""
    weights, factors = np.ones((len(trees[0]), 1)), np.reshape(factors, (-1, 1, 1))
    return _core.Predictor(
        thresholds, n_thresholds, core_trees(*trees), weights, ends, factors, offset
    )


def draw_posterior(energy, partitions, plan, n_draws, *, seed=0, **options):
    """Draw from one posterior."""
    return PosteriorDriver(energy, partitions, seed=seed).draw(plan, n_draws, **options)
