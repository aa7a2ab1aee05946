"""The native kernels: arrays in, arrays out.

Every argument marked OUT is allocated by the caller and filled here; IN/OUT is updated in place.
Arrays must have exactly the dtype and C order stated; nothing is copied or converted. Codes are
uint8 with 0 for a missing value. `n_threads` changes the time a call takes, never its result.

Shapes: N rows, F features, K outputs, D depth, T trees, S stride of a row of codes (F padded to 4).
"""

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

class Workspace:
    """Scratch memory that one chain reuses from step to step; holds no state between calls."""

    def __init__(self) -> None: ...

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

class Slopes:
    """Where gradients come from: arrays (K, N), or a built-in loss at the raw scores (K, N), which
    may fill such arrays when it is told to.

    Holds on to the arrays and reads them when a step is taken, so they may change in between.
    With `newton`, or with a hessian, leaves are Newton leaves.
    """

    @overload
    def __init__(self, gradient: Floats, hessian: Floats | None) -> None: ...
    @overload
    def __init__(
        self, loss: str, parameters: tuple[float, float], y: Floats, raw: Floats, newton: bool
    ) -> None: ...
    @overload
    def __init__(
        self,
        loss: str,
        parameters: tuple[float, float],
        y: Floats,
        raw: Floats,
        gradient: Floats,
        hessian: Floats | None,
    ) -> None: ...
    def refresh(self, n_threads: int) -> float:
        """Compute gradient and hessian, OUT, at the current raw scores.

        Returns the largest absolute gradient, infinity if one is not finite.
        """

class Rows:
    """The rows a chain learns from: code_columns (F, N), code_rows (N, C padded to 8), n_codes and
    kinds (C,) of the C columns that are searched, weight (N,), and of the weights the unit and, in
    it, the largest and the sum.

    Holds on to the arrays, which must not change any more.
    """

    def __init__(
        self,
        code_columns: Bytes,
        code_rows: Bytes,
        n_codes: Ints,
        kinds: Bytes,
        weight: Floats | None,
        weight_facts: tuple[float, float, float],
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

class Trees:
    """Arrays to keep trees in, a row a tree: features, lows, highs, gains (T, D), depths, shrinks
    (T,), values (T, 2^D, K). Holds on to the arrays.
    """

    def __init__(
        self,
        features: Ints,
        lows: Bytes,
        highs: Bytes,
        gains: Floats,
        depths: Ints,
        shrinks: Floats,
        values: Floats,
    ) -> None: ...
    def write(
        self, t: int, structure: Structure, values: Floats, gains: Floats, shrink: float
    ) -> None:
        """Make row t a tree: values (2^depth, K), gains (depth,)."""

    def structure(self, t: int) -> Structure:
        """Return the splits of row t."""

class Predictor:
    """S states of a chain, ready for prediction. Holds on to thresholds.

    State s is factors[s] times the one before it plus the trees from its end to ends[s], values
    (T, 2^D, K) weighted as they are there; offset (K,) is added to every state.
    """

    def __init__(
        self,
        thresholds: Floats,
        n_thresholds: Ints,
        features: Ints,
        lows: Bytes,
        highs: Bytes,
        depths: Ints,
        values: Floats,
        ends: NDArray[np.int64],
        factors: Floats,
        offset: Floats,
    ) -> None: ...

def available_threads() -> int:
    """Cores this process may use: the least of affinity and OMP_NUM_THREADS, both as they are at
    the call, and of the cgroup's CPU quota, as it was within the last second.
    """

def total(values: Floats, weight: Floats | None, n_threads: int) -> float:
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

def log_of(value: float) -> float:
    """Natural logarithm of one number, with the bits that `log` gives."""

def words(
    seed: int, step: int, role: int, output: int, first: int, out: NDArray[np.uint32]
) -> None:
    """Philox4x32-10 words of counters first, first + 1, ...; OUT out (n, 4)."""

def normals(
    seed: int, step: int, role: int, output: int, first: int, out: Floats, n_threads: int
) -> None:
    """Standard normals number first, first + 1, ... of a stream; OUT out (n,)."""

def normals_single(
    seed: int, step: int, role: int, output: int, first: int, out: NDArray[np.float32]
) -> None:
    """The same in single precision, as the search of a structure has them; OUT out (n,)."""

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
    """Place of the first infinite value of x (N, F), row * F + column; -1 without one."""

def to_rows(columns: Bytes, rows: Bytes, n_threads: int) -> None:
    """Transpose codes (F, N) to OUT rows (N, S)."""

def largest(values: Floats, n_threads: int) -> float:
    """Largest absolute value; infinity if any value is not finite."""

def gradient(
    loss: str,
    parameters: tuple[float, float],
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

def evaluate(
    slopes: Slopes,
    subsample: float,
    seed: int,
    step: int,
    gradient: Floats,
    hessian: Floats | None,
) -> None:
    """The estimate that a step sees: each row kept with probability `subsample`, times its inverse.

    OUT gradient, hessian (K, N); second derivatives are not sampled.
    """

def draw_rows(
    slopes: Slopes,
    subsample: float,
    weight: Floats | None,
    weight_facts: tuple[float, float, float],
    sigma: float,
    range: tuple[int, int],
    n: int,
    seed: int,
    step: int,
    n_threads: int,
) -> tuple[NDArray[np.uint32], Floats, float, float, float]:
    """About n rows of a range, rows of large gradient more often: rows, how many each stands for
    (lift), the scale mu and the floor of their chances, the share of the rows looked at.
    """

def quantise(
    slopes: Slopes,
    subsample: float,
    weight: Floats | None,
    weight_facts: tuple[float, float, float],
    rows: NDArray[np.uint32] | None,
    lift: Floats | None,
    mu: float,
    floor: float,
    sigma: float,
    largest: tuple[float, float],
    newton: bool,
    seed: int,
    step: int,
    packed: NDArray[np.int64],
    n_threads: int,
) -> tuple[float, float]:
    """Noisy gradient and mass of each structure row as one packed word: OUT packed (K, n).

    Mass is weight, with `newton` weight * hessian. weight_facts: weight of an ordinary row; largest
    weight and sum of weights in that unit. largest: bounds of |gradient| and hessian. mu, floor: of
    the draw that lift comes from. Returns two scales: packed gradient = scale * weight * gradient,
    packed mass = scale * mass.
    """

def search(
    workspace: Workspace,
    code_rows: Bytes,
    n_codes: Ints,
    kinds: Bytes,
    packed: NDArray[np.int64],
    rows: NDArray[np.uint32] | None,
    max_depth: int,
    l2: float,
    random_strength: float,
    seed: int,
    step: int,
    n_threads: int,
) -> Structure:
    """Greedy oblivious structure on packed words, of at most max_depth splits.

    l2 in units of packed weights.
    """

def grow(
    workspace: Workspace,
    rows: Rows,
    slopes: Slopes,
    subsample: float,
    sigma: float,
    largest: tuple[float, float],
    newton: bool,
    range: tuple[int, int],
    n_structure_rows: int,
    n_structure_outputs: int | None,
    max_depth: int,
    l2: float,
    random_strength: float,
    seed: int,
    step: int,
    n_threads: int,
) -> Structure:
    """draw_rows, quantise and search in one call, on scratch memory; l2 in units of mass.

    Fewer structure outputs than K are drawn too; None means all.
    """

def fit_leaves(
    workspace: Workspace,
    rows: Rows,
    structure: Structure,
    slopes: Slopes,
    subsample: float,
    largest: tuple[float, float],
    learning_rate: float,
    sigma: float,
    shrink: float,
    l2: float,
    reach: float,
    offset: Floats,
    seed: int,
    step: int,
    path: Floats | None,
    raw: Floats,
    values: Floats,
    gains: Floats | None,
    n_threads: int,
) -> None:
    """Leaf values of one structure, then raw <- offset + shrink * (raw - offset) + tree.

    offset (K,); IN/OUT raw (K, N); OUT values (2^D, K), gains (D,): what each split adds to the
    sum over leaves of G^2 / (W + l2), on all rows and without noise; not wanted if None. `path` is
    where `approach_leaves` has come to, if it was called; a loss is then evaluated there, and
    slopes in arrays are those at its `ahead`. No Newton step is longer than `reach` but the only
    one of a leaf, of which the learning rate leaves half of that.
    """

def approach_leaves(
    workspace: Workspace,
    rows: Rows,
    structure: Structure,
    slopes: Slopes,
    subsample: float,
    largest: tuple[float, float],
    l2: float,
    reach: float,
    seed: int,
    step: int,
    every: int,
    raw: Floats,
    path: Floats,
    ahead: Floats | None,
    gains: Floats | None,
    n_threads: int,
) -> None:
    """Take a Newton step in the leaves that is not the last one.

    With `every` above 1, which wants no ahead, on one of so many lines of 64 rows, another one in
    the next tree, with that share of l2, and in the leaves alone where these rows have the
    curvature of 64 of the largest one and of typical weight (sum of squares / sum); gains are then
    estimated.

    IN/OUT path (3, 2^D, K): the sum of all steps, 0 before the first; the last one, infinite before
    the first; the curvature at the first, without l2, per weight. OUT ahead (K, N): raw plus the
    sum, where the next step wants its slopes; None with slopes of a loss, which is evaluated there.
    gains as in `fit_leaves`.
    """

def leaf_indices(
    columns: Bytes,
    structure: Structure,
    out: NDArray[np.uint16],
    n_threads: int,
) -> None:
    """Leaf of each row: OUT out (N,)."""

def add_tree(
    columns: Bytes,
    structure: Structure,
    values: Floats,
    shrink: float,
    offset: Floats,
    raw: Floats,
    n_threads: int,
) -> None:
    """raw <- offset + shrink * (raw - offset) + tree: IN/OUT raw (K, N)."""

def link(link: str, parameter: float, raw: Floats, out: Floats, n_threads: int) -> None:
    """Predictions from raw scores (K, N): OUT out (N, C), C = K, or 2 for both sigmoids of a score.

    Links: identity, sigmoid (of raw / parameter), softmax, exponential (straight from there on).
    """

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
    knowledge: Floats,
    data: Floats,
    total: Floats,
    n_threads: int,
) -> None:
    """Mean class probabilities of the states and the parts of their entropy in nats.

    OUT mean (N, C), knowledge, data, total (N,).
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

def permutation(seed: int, copy: int, order: NDArray[np.uint32]) -> None:
    """Order number `copy` of rows 0..N - 1, every order equally likely: OUT order (N,)."""

def level_sums(
    levels: Ints,
    n_levels: NDArray[np.int64],
    targets: Floats,
    weight: Floats | None,
    sums: Floats,
    counts: Floats,
    n_threads: int,
) -> None:
    """Weighted sums of targets (K, N) and weights by level of levels (C, N), in any order.

    Summands are whole multiples of a unit 2^-95 times the largest one or less, the rest cut off.
    The table of column c begins at the sum of the n_levels before it. OUT sums (K, L), counts (L,).
    """

def ordered_codes(
    levels: Ints,
    n_levels: NDArray[np.int64],
    targets: Floats,
    weight: Floats | None,
    orders: NDArray[np.uint32],
    means: Floats,
    unit: float,
    thresholds: Floats,
    n_thresholds: Ints,
    columns: Bytes,
    n_threads: int,
) -> None:
    """Codes of (s + unit * mean) / (n + unit) over the rows of a level earlier in orders (P, N).

    OUT columns (C * K, P * N), target k by column c at c * K + k.
    """

def combine(
    levels: Ints,
    n_levels: NDArray[np.int64],
    members: Ints,
    numbers: Ints,
    n_numbers: NDArray[np.int64],
    n_threads: int,
) -> None:
    """Levels of combinations of columns, numbered as they first appear.

    members (M, width), unused places -1 at the end. OUT numbers (M, N), n_numbers (M,).
    """

def combination_gains(
    levels: Ints,
    n_levels: NDArray[np.int64],
    members: Ints,
    targets: Floats,
    weight: Floats | None,
    ridge: float,
    gains: Floats,
    errors: Floats,
    n_threads: int,
) -> None:
    """Share of targets (K, N) that level means explain when rows are left out of their own mean.

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
    places: Ints,
    n_threads: int,
) -> None:
    """Places of wanted keys among those placed in slots, -1 if not there: OUT places."""
