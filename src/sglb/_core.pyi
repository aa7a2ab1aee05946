"""The native kernels: arrays in, arrays out.

Every argument marked OUT is allocated by the caller and filled here; IN/OUT is updated in place.
Arrays must have exactly the dtype and C order stated; nothing is copied or converted. Codes are
uint8 with 0 for a missing value. `n_threads` changes the time a call takes, never its result.
Each section is a file of `src/bindings`.

Shapes: N rows, F features, K outputs, D depth, L leaves, M draws, T trees, S states, d parts of a
state.
"""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

# --- threads (bindings/module.cpp)

def available_threads() -> int:
    """Cores this process may use: the least of affinity and OMP_NUM_THREADS, both as they are at
    the call, and of the cgroup's CPU quota, as it was within the last second.
    """

# --- sums and elementary functions (bindings/numbers.cpp)

class ExactSum:
    """A sum of floats that is rounded only when it is read: the same bits in any order.

    Sums of shards of the rows are merged into that of all rows; pickling keeps all digits.
    """

    def __init__(self) -> None: ...
    def add(self, values: Floats, weight: Floats | None) -> None:
        """Add values (N,), or the rounded products weight * values."""

    def merge(self, other: ExactSum) -> None:
        """Add what another sum holds."""

    def value(self) -> float:
        """Return the nearest float; infinity and NaN as in a sum of floats."""

def total(values: Floats, weight: Floats | None) -> float:
    """Value of the exact sum of values (N,), or of the rounded products weight * values."""

def running_totals(values: Floats, sums: Floats) -> None:
    """Sums of the first 1, 2, ... values (N,), none negative, rounded once: OUT sums (N,)."""

def exp(values: Floats, out: Floats) -> None:
    """e^x of values (N,): OUT out (N,)."""

def log(values: Floats, out: Floats) -> None:
    """Natural logarithm of values (N,): OUT out (N,)."""

def log1p(values: Floats, out: Floats) -> None:
    """log(1 + x) of values (N,): OUT out (N,)."""

def expm1(values: Floats, out: Floats) -> None:
    """e^x - 1 of values (N,): OUT out (N,)."""

def exp_of(value: float) -> float:
    """e^x of one number, with the bits that `exp` gives."""

def cosine_turn_of(turns: float) -> float:
    """cos(2 pi turns), of 0 to 1 turn."""

def log_of(value: float) -> float:
    """Natural logarithm of one number, with the bits that `log` gives."""

# --- noise (bindings/noise.cpp)

class Role:
    """What noise is drawn for: two roles never share a number."""

    STRUCTURE: int
    LEAF: int
    SUBSAMPLE: int
    ROWS: int
    SCORE: int
    PERMUTATION: int
    CHAIN: int
    TEST: int
    THRESHOLDS: int
    OUTPUTS: int
    FOLD: int
    PARTITION: int
    PRIOR: int
    DRAW: int
    RANKING: int
    CURVATURE: int
    RELEVANCE: int
    SHUFFLE: int
    SWAP: int

def words(
    seed: int, step: int, role: int, output: int, first: int, out: NDArray[np.uint32]
) -> None:
    """Philox4x32-10 words of counters first, first + 1, ...; OUT out (n, 4)."""

# --- feature values to codes (bindings/bins.cpp)

def threshold_rows(n_rows: int, seed: int, rows: NDArray[np.int64]) -> None:
    """Which of n_rows rows thresholds are found on: OUT rows (n,), never falling."""

def find_thresholds(
    x: NDArray[Any],
    max_bins: int,
    sample_rows: int,
    seed: int,
    thresholds: Floats,
    n_thresholds: Ints,
    n_threads: int,
) -> None:
    """Thresholds of x (N, F) by column: OUT thresholds (F, max_bins - 1), n_thresholds (F,)."""

def encode(
    x: NDArray[Any], thresholds: Floats, n_thresholds: Ints, columns: Bytes, n_threads: int
) -> None:
    """Codes of x (N, F): OUT columns (F, N)."""

def first_infinity(x: NDArray[Any], n_threads: int) -> int:
    """Position of the first infinite value of x (N, F), row * F + column; -1 without one."""

def to_rows(columns: Bytes, rows: Bytes, n_threads: int) -> None:
    """Transpose codes (F, N) to OUT rows (N, F padded)."""

# --- levels of categorical columns (bindings/categories.cpp)

def permutation(seed: int, copy: int, order: NDArray[np.uint32]) -> None:
    """Order number `copy` of rows 0..N - 1, every order equally likely: OUT order (N,)."""

class Levels:
    """Level numbers (C, N) of C columns, below n_levels (C,). Holds on to the arrays."""

    def __init__(self, levels: Ints, n_levels: NDArray[np.int64]) -> None: ...

class LevelTargets:
    """What is averaged by level: values (K, N), weight (N,) or None. Holds on to the arrays."""

    def __init__(self, values: Floats, weight: Floats | None) -> None: ...

class Prior:
    """What a level without rows has: means (K,), which count as `unit` rows. Holds on to means."""

    def __init__(self, means: Floats, unit: float) -> None: ...

def level_sums(
    levels: Levels, targets: LevelTargets, sums: Floats, counts: Floats, n_threads: int
) -> None:
    """Weighted sums of targets and weights by level, in any order.

    Summands are whole multiples of a unit 2^-95 times the largest one or less, the rest cut off.
    The table of column c begins at the sum of the n_levels before it. OUT sums (K, L), counts (L,).
    """

def ordered_codes(
    levels: Levels,
    targets: LevelTargets,
    orders: NDArray[np.uint32],
    prior: Prior,
    thresholds: Floats,
    n_thresholds: Ints,
    columns: Bytes,
    n_threads: int,
) -> None:
    """Codes of (s + unit * mean) / (n + unit) over the rows of a level earlier in orders (P, N).

    OUT columns (C * K, P * N), target k by column c at c * K + k.
    """

def combine(
    levels: Levels,
    members: Ints,
    numbers: Ints,
    n_numbers: NDArray[np.int64],
    n_threads: int,
) -> None:
    """Levels of combinations of columns, numbered as they first appear.

    members (M, width), unused places -1 at the end. OUT numbers (M, N), n_numbers (M,).
    """

def combination_gains(
    levels: Levels,
    members: Ints,
    targets: LevelTargets,
    ridge: float,
    gains: Floats,
    errors: Floats,
    n_threads: int,
) -> None:
    """Share of the targets that level means explain when rows are left out of their own mean.

    OUT gains (M,); errors (M,): the standard deviation of a gain if the targets' signs are coins.
    """

def number_keys(keys: NDArray[np.uint64], numbers: Ints) -> int:
    """Number keys as they first appear: OUT numbers. Returns how many there are."""

def place_keys(keys: NDArray[np.uint64], slots: Ints) -> None:
    """Hash table of keys: OUT slots, a power of two above the number of keys."""

def find_keys(
    wanted: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    slots: Ints,
    numbers: Ints,
    n_threads: int,
) -> None:
    """Numbers of wanted keys among those placed in slots, -1 for others: OUT numbers."""

# --- gradients and links (bindings/losses.cpp)

class Slopes:
    """Where gradients come from: arrays (K, N), or a built-in loss at the raw scores (K, N), which
    may fill such arrays on demand.

    Holds on to the arrays and reads them when a step is taken, so they may change in between.
    With `newton`, or with a hessian, leaves are Newton leaves.
    """

    @overload
    def __init__(self, gradient: Floats, hessian: Floats | None) -> None: ...
    @overload
    def __init__(
        self, loss: str, parameters: Sequence[float], y: Floats, raw: Floats, newton: bool
    ) -> None: ...
    @overload
    def __init__(
        self,
        loss: str,
        parameters: Sequence[float],
        y: Floats,
        raw: Floats,
        gradient: Floats,
        hessian: Floats | None,
    ) -> None: ...
    def refresh(self, n_threads: int) -> float:
        """Compute gradient and hessian, OUT, at the current raw scores.

        Returns the largest absolute gradient, infinity if one is not finite.
        """

def gradient(
    loss: str,
    parameters: Sequence[float],
    y: Floats,
    raw: Floats,
    gradient: Floats,
    hessian: Floats | None,
    n_threads: int,
) -> float:
    """Gradient (and Hessian) of a built-in loss at raw (K, N): OUT gradient, hessian (K, N).

    Returns the largest absolute gradient, infinity if one is not finite.
    """

def cross_entropy(y: Floats, raw: Floats, out: Floats) -> None:
    """Minus the log-probability of class y (N,), raw being log-odds (1, N) or scores (K, N).

    OUT out (N,).
    """

def link(link: str, parameter: float, raw: Floats, out: Floats, n_threads: int) -> None:
    """Predictions from raw scores (K, N): OUT out (N, C), C = K, or 2 for both sigmoids of a score.

    Links: identity, sigmoid (of raw / parameter), softmax, exponential (straight from there on).
    """

# --- rows, samples and the search of structures (bindings/structure.cpp)

class Draws:
    """Which numbers of all noise a step uses: those of a seed and the step."""

    def __init__(self, seed: int, step: int) -> None: ...
    @property
    def seed(self) -> int: ...
    @property
    def step(self) -> int: ...

class Weights:
    """Weights (N,) of the rows of a shard, or None for 1 each; and of those of all shards the unit
    and, in it, the largest and the sum, and the typical weight (sum of squares / sum).
    """

    def __init__(
        self, weight: Floats | None, unit: float, largest: float, total: float, typical: float
    ) -> None: ...

class Shard:
    """Rows of a chain: code_columns (F, N), code_rows (N, C padded to 8), n_codes and kinds (C,) of
    the C columns that are searched. Without bundles code_rows may have no rows: the codes of a
    sample are then gathered from the columns. numbers: that of the first row in the whole table,
    rows of a copy of the table, copies.

    Holds on to the arrays, which must not change any more, and has scratch memory.
    """

    def __init__(
        self,
        code_columns: Bytes,
        code_rows: Bytes,
        n_codes: Ints,
        kinds: Bytes,
        weights: Weights,
        numbers: tuple[int, int, int],
        n_threads: int,
    ) -> None: ...

class Structure:
    """The splits of one oblivious tree: features, lows, highs (D,), at most 16 of them.

    Does not change. The three are copied to an array whenever they are asked for; to unpack a
    structure gives all three.
    """

    def __init__(self, features: Ints, lows: Bytes, highs: Bytes) -> None: ...
    @property
    def depth(self) -> int:
        """How many splits there are."""
    @property
    def n_leaves(self) -> int:
        """2 to the depth."""
    @property
    def features(self) -> Ints: ...
    @property
    def lows(self) -> Bytes: ...
    @property
    def highs(self) -> Bytes: ...
    def __iter__(self) -> Iterator[Any]: ...

class SamplePlan:
    """How many rows and outputs of all shards a structure is searched on; with `newton`, by scores
    G^2 / (H + l2) instead of G^2 / (W + l2).
    """

    def __init__(self, n_rows: int, n_outputs: int, newton: bool) -> None: ...

class SearchedColumns:
    """n_codes and kinds (C,) of the columns that structures are searched on."""

    def __init__(self, n_codes: Ints, kinds: Bytes) -> None: ...

class Sample:
    """The rows that a structure is searched on, with noisy gradients as integers.

    One shard of all rows draws it by `draw`. Several draw their parts in stages: `begin`; `pilot`;
    `draw_part` from the sum of the pilots, which returns the number of rows; `squares` from the
    number of rows in the shards before and in all; `pack` from the sum of the squares; `write`; and
    another sample that has them `join`. bounds: of |gradient| and of the second derivatives.
    """

    def __init__(self) -> None: ...
    def draw(
        self,
        shard: Shard,
        slopes: Slopes,
        plan: SamplePlan,
        noise: float,
        subsample: float,
        bounds: tuple[float, float],
        draws: Draws,
    ) -> None: ...
    def begin(
        self,
        shard: Shard,
        slopes: Slopes,
        plan: SamplePlan,
        noise: float,
        subsample: float,
        bounds: tuple[float, float],
        draws: Draws,
    ) -> None: ...
    def pilot(self) -> Floats: ...
    def draw_part(self, pilot: Floats) -> int: ...
    def squares(self, before: int, n_in_all: int) -> NDArray[np.int64]: ...
    def pack(self, squares: NDArray[np.int64]) -> None: ...
    @property
    def planned_rows(self) -> int:
        """Rows in all shards if as many are drawn as planned, for which words can be packed."""
    @property
    def packed_for(self) -> tuple[int, int]:
        """From how many to how many rows in all shards these words are right."""
    @property
    def part_shape(self) -> tuple[int, int, int]:
        """Rows N, codes of a row C and outputs K of a part."""
    def write(self, codes: Bytes, words: NDArray[np.int64]) -> Floats:
        """Write codes (N, C) and words (K, N) of a part; return how the words are packed, (5,)."""
    def join(
        self,
        codes: Sequence[Bytes],
        words: Sequence[NDArray[np.int64]],
        packing: Floats,
        columns: SearchedColumns,
        n_in_all: int,
        n_copies: int,
        draws: Draws,
    ) -> None:
        """Become the sample of all parts, packed alike, of a table of so many rows and copies."""
    @property
    def bundles(self) -> object:
        """How columns that are searched are features, kept for the rule; None if they are."""
    @bundles.setter
    def bundles(self, value: object) -> None: ...
    @property
    def time(self) -> float:
        """The chain's time, the sum of its learning rates, kept for the rule."""
    @time.setter
    def time(self, value: float) -> None: ...
    @property
    def n_table_rows(self) -> int:
        """Rows of a copy of the table."""
    @property
    def n_rows(self) -> int:
        """Rows of the sample."""
    @property
    def seed(self) -> int: ...
    @property
    def step(self) -> int: ...

class GreedySearch:
    """The greedy search for oblivious structures of at most max_depth splits; l2 in weights."""

    def __init__(self, max_depth: int, l2: float, n_threads: int) -> None: ...
    def run(self, sample: Sample, random_strength: float) -> Structure:
        """Search on a sample, with noise on the roots of the scores."""

# --- leaf sums, leaf values and the move of a state (bindings/leaves.cpp)

class NewtonPath:
    """Where several Newton steps in the leaves of a tree have come to, (2^D, K) each: the sum of
    the steps, 0 before the first; the last one, infinite before the first; the curvature at the
    first, without l2, per weight. Steps look at one of row_stride lines of 64 rows, others in each
    tree.

    Holds on to the arrays.
    """

    def __init__(self, sum: Floats, last: Floats, curvature: Floats, row_stride: int) -> None: ...

class LeafSums:
    """Sums over the rows of each leaf, in integers: those of shards add up."""

    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, other: LeafSums) -> None: ...
    def sum(
        self,
        shard: Shard,
        structure: Structure,
        slopes: Slopes,
        subsample: float,
        bounds: tuple[float, float],
        draws: Draws,
        path: NewtonPath | None,
    ) -> None:
        """Make these the sums of a shard's rows.

        A loss is evaluated where the path has come to; slopes in arrays are those there already.
        """
    def add(self, other: LeafSums) -> None:
        """Add the sums of another shard."""
    @property
    def shape(self) -> tuple[int, int]:
        """Leaves and outputs."""

class LeafRule:
    """l2 is added to the curvature of a leaf; no Newton step is longer than trust_radius but the
    only one of a leaf, of which the learning rate leaves half of that.
    """

    def __init__(self, l2: float, trust_radius: float) -> None: ...

class Transition:
    """How a state moves, S <- C S + b (x) tree: C (d, d), b (d,)."""

    def __init__(self, C: Floats, b: Floats) -> None: ...

def largest(values: Floats, n_threads: int) -> float:
    """Largest absolute value; infinity if any value is not finite."""

def leaf_values(
    sums: LeafSums,
    rule: LeafRule,
    learning_rate: float,
    noise: float,
    draws: Draws,
    path: NewtonPath | None,
    values: Floats,
) -> None:
    """Leaf values -eps (G + noise sqrt(C) xi) / C, or after a path its end: OUT values (2^D, K)."""

def advance_path(sums: LeafSums, rule: LeafRule, path: NewtonPath) -> None:
    """Take a Newton step that is not the last one of a tree, in the leaves that know enough."""

def look_ahead(
    shard: Shard, structure: Structure, path: NewtonPath, raw: Floats, ahead: Floats
) -> None:
    """Raw scores (K, N) where a path leads: OUT ahead (K, N)."""

def advance(
    shard: Shard,
    structure: Structure,
    values: Floats,
    transition: Transition,
    offset: Floats,
    state: Floats,
) -> None:
    """Take a step on a shard's state, S <- C S + b (x) tree: IN/OUT state (d, K, N).

    The first part holds raw scores, offset (K,) + S[0].
    """

def add_tree(
    columns: Bytes,
    structure: Structure,
    values: Floats,
    transition: Transition,
    offset: Floats,
    state: Floats,
    n_threads: int,
) -> None:
    """The same on the state of other rows, codes (F, N): IN/OUT state (d, K, N)."""

# --- trees and prediction (bindings/ensemble.cpp)

class Trees:
    """Arrays to keep trees in, a row a tree: features, lows, highs, gains (T, D), depths (T,),
    values (T, 2^D, K), cover (T, 2^D), moves (T, d d + d + 1): C, b and the
    temperature of the step.

    Holds on to the arrays.
    """

    def __init__(
        self,
        features: Ints,
        lows: Bytes,
        highs: Bytes,
        depths: Ints,
        gains: Floats,
        values: Floats,
        cover: Floats,
        moves: Floats,
    ) -> None: ...
    def write(
        self,
        t: int,
        structure: Structure,
        values: Floats,
        sums: LeafSums | None,
        first: LeafSums | None,
        l2: float,
        transition: Transition,
        temperature: float,
    ) -> None:
        """Make row t a tree: values (2^depth, K), cover by its sums, gains by its first ones."""

    def structure(self, t: int) -> Structure:
        """Return the splits of row t."""

    def transition(self, t: int) -> Transition:
        """Return the transition of row t."""

class Predictor:
    """S states of a chain, ready for prediction. Holds on to thresholds.

    State s is factors[s] (d, d) times the one before it plus the trees from its end to ends[s],
    weighted by weights (T, d); offset (K,) is added to the first part of every state.
    """

    def __init__(
        self,
        thresholds: Floats,
        n_thresholds: Ints,
        trees: Trees,
        weights: Floats,
        ends: NDArray[np.int64],
        factors: Floats,
        offset: Floats,
    ) -> None: ...

def predict(predictor: Predictor, x: NDArray[Any], out: Floats, n_threads: int) -> None:
    """Raw scores of all states at feature values x (N, F): OUT out (S * K, N)."""

def predict_linked(
    predictor: Predictor, x: NDArray[Any], link: str, parameter: float, out: Floats, n_threads: int
) -> None:
    """`predict` of a single state, then `link`: OUT out (N, C)."""

def predict_entropies(
    predictor: Predictor,
    x: NDArray[Any],
    link: str,
    parameter: float,
    mean: Floats,
    parts: Floats,
    n_threads: int,
) -> None:
    """Mean class probabilities of the states and the parts of their entropy in nats.

    OUT mean (N, C), parts (3, N): knowledge, data and total.
    """

def predict_variance(
    predictor: Predictor,
    x: NDArray[Any],
    link: str,
    parameter: float,
    mean: Floats,
    variance: Floats,
    n_threads: int,
) -> None:
    """Mean and variance of the predictions of the states: OUT mean, variance (N, K)."""

# --- draws on frozen partitions (bindings/posterior.cpp)

def sum_curvature(
    state: Floats,
    diagonal: Floats,
    factor: Floats | None,
    leaf: Ints,
    magic: Floats,
    sums: Floats,
    n_threads: int,
) -> None:
    """Sums by leaf (N,) of H state (K, N, M) over rows, H = diag(diagonal) - factor factor'.

    diagonal and factor are (K, N) and weighted. A summand of draw m is rounded to a multiple of
    magic[m] / 1.5 * 2^-52, so that the sums are exact. OUT sums (L, K, M).
    """

def sum_gradient(
    gradient: Floats,
    weight: Floats | None,
    leaf: Ints,
    magic: Floats,
    sums: Floats,
    n_threads: int,
) -> None:
    """The same of weight (N,) times gradient (K, N, M): OUT sums (L, K, M)."""

def advance_draws(
    leaf: Ints, values: Floats, shrink: float, state: Floats, largest: Floats, n_threads: int
) -> None:
    """Take a step of M draws, state <- shrink * state + values[leaf], values (L, K, M).

    IN/OUT state (K, N, M), OUT largest (M,): the largest absolute state of each draw.
    """

def add_partitions(
    leaves: Ints,
    first: NDArray[np.int64],
    values: Floats,
    first_row: int,
    state: Floats,
    n_threads: int,
) -> None:
    """Add the values of leaves (T, n) of rows first_row, ... in T partitions to their draws.

    Partition t has leaf j at values[first[t] + j], values (L, K, M). IN/OUT state (K, N, M).
    """

def draw_normals(draws: Draws, role: int, first_draw: int, out: Floats) -> None:
    """Standard normals of leaves and draws first_draw, first_draw + 1, ...: OUT out (L, K, M)."""

def tree_leaves(
    columns: Bytes, structures: Sequence[Structure], first_row: int, leaves: Ints, n_threads: int
) -> None:
    """Leaves of rows first_row, ... of codes (F, N) in T trees: OUT leaves (T, n)."""

def add_leaf_draws(
    leaves: Ints,
    first: NDArray[np.int64],
    values: NDArray[np.float32],
    out: Floats,
    n_threads: int,
) -> None:
    """Sums over T partitions of values (L, K, M) of the rows' leaves (T, N).

    The leaves of partition t begin at first[t]. OUT out (K, N, M).
    """

# --- ranking losses (bindings/ranking.cpp)

class Queries:
    """Rows sorted into Q queries: order (N,), rows of the first query first; starts (Q + 1,), where
    a query begins in order. numbers: as those of a `Shard`, default all rows.

    Holds on to the arrays, which must not change any more.
    """

    @overload
    def __init__(self, order: NDArray[np.uint32], starts: NDArray[np.int64]) -> None: ...
    @overload
    def __init__(
        self,
        order: NDArray[np.uint32],
        starts: NDArray[np.int64],
        numbers: tuple[int, int, int],
    ) -> None: ...

class RankingTarget:
    """Relevance and gain (N,) of the documents of queries, and the metric of their order.

    Metrics: dcg, ndcg (gains of any kind), precision, recall, map, mrr (0 or 1), err, pfound (in
    [0, 1]); "decay" are YetiRank's weights decay^q. Only the best `cutoff` documents count. `decay`
    matters to pfound and decay. Holds on to the arrays, which must not change any more.
    """

    def __init__(
        self,
        queries: Queries,
        relevance: Floats,
        gain: Floats,
        metric: str,
        cutoff: int,
        decay: float,
    ) -> None: ...

class Smoothing:
    """Noise of StochasticRank: scores raw - sigma * mu * relevance + sigma * normal."""

    def __init__(self, sigma: float, mu: float, n_samples: int) -> None: ...

class Shuffles:
    """Orders of YetiRank: those of raw + power * noise, which is "logistic" or "gumbel"."""

    def __init__(self, noise: str, power: float, n_orders: int) -> None: ...

def ranking_values(target: RankingTarget, raw: Floats, value: Floats, n_threads: int) -> None:
    """The metric of each query at raw (N,): OUT value (Q,), NaN with a score that is not finite.

    Of equal scores the document of less gain is above.
    """

def stochastic_rank(
    target: RankingTarget,
    raw: Floats,
    smoothing: Smoothing,
    draws: Draws,
    gradient: Floats,
    n_threads: int,
) -> float:
    """Unbiased estimate of the gradient of minus the smoothed metric at raw (N,).

    Centred in each query; the mean over n_samples. OUT gradient (N,), NaN in a query with a score
    that is not finite. Returns the largest absolute gradient, infinity if one is not finite.
    """

def rank_curvature(
    target: RankingTarget, smoothing: Smoothing, draws: Draws, hessian: Floats, n_threads: int
) -> None:
    """Curvature of each document at raw = 0, the mean over n_samples in mirrored pairs.

    It is the sum over the boundaries to the others of |effect on the metric| times the density of
    its score over the density's width. OUT hessian (N,).
    """

def lambdarank(
    target: RankingTarget,
    raw: Floats,
    sigma: float,
    normalise: bool,
    gradient: Floats,
    hessian: Floats | None,
    n_threads: int,
) -> float:
    """LambdaRank at raw (N,), for metrics dcg and ndcg: OUT gradient, hessian (N,).

    The target's cutoff is LightGBM's truncation level, `normalise` its lambdarank_norm. Returns the
    largest absolute gradient, infinity if one is not finite.
    """

def centred_residuals(
    queries: Queries,
    relevance: Floats,
    weight: Floats | None,
    total: Floats,
    raw: Floats,
    gradient: Floats,
    n_threads: int,
) -> float:
    """Residuals raw - relevance less their weighted mean in the query: OUT gradient (N,).

    `total` (Q,) are the weights of the queries. Returns the largest absolute gradient, infinity if
    one is not finite.
    """

def pairwise_logistic(
    queries: Queries,
    relevance: Floats,
    raw: Floats,
    sigma: float,
    gradient: Floats,
    hessian: Floats | None,
    n_threads: int,
) -> float:
    """Sum over pairs i above j of log(1 + exp(-sigma (raw_i - raw_j))): OUT gradient, hessian (N,).

    Returns the largest absolute gradient, infinity if one is not finite.
    """

def pairwise_losses(
    queries: Queries, relevance: Floats, raw: Floats, sigma: float, loss: Floats, n_threads: int
) -> None:
    """The loss of each document, half of that of its pairs: OUT loss (N,)."""

def yeti(
    target: RankingTarget,
    raw: Floats,
    shuffles: Shuffles,
    draws: Draws,
    gradient: Floats,
    hessian: Floats | None,
    n_threads: int,
) -> float:
    """Logistic loss of neighbours in random orders, by the effect of their swap on the metric.

    The mean over n_orders. OUT gradient, hessian (N,). Returns the largest absolute gradient,
    infinity if one is not finite.
    """

# --- for tests alone (bindings/testing.cpp)

class testing:  # noqa: N801
    """Kernels that only tests call, as functions of a submodule."""

    @staticmethod
    def normals(
        seed: int, step: int, role: int, output: int, first: int, out: Floats, n_threads: int
    ) -> None:
        """Standard normals number first, first + 1, ... of a stream; OUT out (n,)."""

    @staticmethod
    def normals_single(
        seed: int, step: int, role: int, output: int, first: int, out: NDArray[np.float32]
    ) -> None:
        """The same in single precision, as the search of a structure has them; OUT out (n,)."""

    @staticmethod
    def evaluate(
        slopes: Slopes, subsample: float, draws: Draws, gradient: Floats, hessian: Floats | None
    ) -> None:
        """The estimate that a step sees: rows kept with probability `subsample`, times its inverse.

        OUT gradient, hessian (K, N); second derivatives are not sampled.
        """

    @staticmethod
    def draw_rows(
        shard: Shard, slopes: Slopes, subsample: float, noise: float, n: int, draws: Draws
    ) -> tuple[NDArray[np.uint32], Floats, float, float, float]:
        """About n rows, those of large gradient more often: rows, how many each stands for, the
        scale mu and the floor of their chances, the share of the rows looked at.
        """

    @staticmethod
    def quantise(
        shard: Shard,
        slopes: Slopes,
        chosen: tuple[NDArray[np.uint32], Floats | None, float, float] | None,
        rates: tuple[float, float],
        bounds: tuple[float, float],
        newton: bool,
        draws: Draws,
        packed: NDArray[np.int64],
    ) -> tuple[float, float]:
        """Noisy gradient and mass of each structure row as one packed word: OUT packed (K, n).

        chosen: rows, how many each stands for, mu, floor. rates: subsample and noise. Returns two
        scales: packed gradient = scale * weight * gradient, packed mass = scale * mass.
        """

    @staticmethod
    def search(
        shard: Shard,
        packed: NDArray[np.int64],
        rows: NDArray[np.uint32] | None,
        rule: tuple[int, float, float],
        draws: Draws,
    ) -> Structure:
        """Search on packed words. rule: max_depth, l2 in units of packed weights, noise."""

    @staticmethod
    def split_gains(sums: LeafSums, l2: float, gains: Floats) -> None:
        """What each split adds to the sum over leaves of G^2 / (W + l2): OUT gains (D,)."""

    @staticmethod
    def leaf_indices(
        columns: Bytes, structure: Structure, out: NDArray[np.uint16], n_threads: int
    ) -> None:
        """Leaf of each row: OUT out (N,)."""

    @staticmethod
    def swap_effects(target: RankingTarget, query: int, effects: Floats) -> None:
        """Metric with document i above minus below its neighbour, rows being ranked in their order.

        OUT effects (n, n - 1): document i, place of the neighbour among the others.
        """
