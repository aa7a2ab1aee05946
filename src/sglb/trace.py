"""The trace of a chain: every state it went through can be read from its arrays.

Leaf values are stored as they were drawn, the transitions of the steps beside them. In the model
after k steps tree t has the weight e' C_k ... C_{t+1} b_t (`transition`), so early stopping, staged
prediction and draws are all other weights over the same leaves.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.bins import Bins
from sglb.samplers import Move
from sglb.structure import Structure
from sglb.transition import product, tree_weights

Floats = NDArray[np.float64]


class Trace:
    """Trees of at most `max_depth` splits over `bins`, for `offset.size` outputs.

    `size` is the number of parts d of the state. Without `keep_trees` steps are counted, but only
    the chain knows its last state: a chain of a million steps needs no memory.
    """

    def __init__(
        self,
        bins: Bins,
        max_depth: int,
        offset: Floats,
        *,
        size: int = 1,
        keep_trees: bool = True,
    ) -> None:
        self.bins = bins
        self.max_depth = max_depth
        self.offset = np.ascontiguousarray(offset, dtype=np.float64)
        self.size = size
        self.keep_trees = keep_trees
        self._n_trees = 0
        self._reserve(0)

    def _reserve(self, capacity: int) -> None:
        """Make room for trees; other threads may go on reading the trees there are."""
        n, leaves, size = self._n_trees, 1 << self.max_depth, self.size

        def larger(name: str, *shape: int, dtype: Any = np.float64) -> NDArray[Any]:
            array = np.zeros((capacity, *shape), dtype)
            if n:
                array[:n] = getattr(self, f"_{name}")[:n]
            return array

        self._features = larger("features", self.max_depth, dtype=np.int32)
        self._lows = larger("lows", self.max_depth, dtype=np.uint8)
        self._highs = larger("highs", self.max_depth, dtype=np.uint8)
        self._depths = larger("depths", dtype=np.int32)
        self._gains = larger("gains", self.max_depth)
        self._values = larger("values", leaves, self.n_outputs)
        self._cover = larger("cover", leaves)
        self._moves = larger("moves", size * (size + 1) + 1)
        self._capacity = capacity
        # One call that writes a row of all eight takes a third of the time of eight assignments.
        self._rows = _core.Trees(*(getattr(self, f"_{name}") for name in self._NAMES))

    _NAMES = ("features", "lows", "highs", "depths", "gains", "values", "cover", "moves")

    def _check_trees(self) -> None:
        if not self.keep_trees:
            raise ValueError("this trace keeps no trees: make it with keep_trees=True")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the trees there are, as arrays."""
        return Trace.from_arrays, (self.bins, self.offset, self.arrays())

    @classmethod
    def from_arrays(cls, bins: Bins, offset: Floats, arrays: dict[str, NDArray[Any]]) -> "Trace":
        """Build a trace from the arrays of another one."""
        size = arrays["b"].shape[1]
        trace = cls(bins, arrays["features"].shape[1], offset, size=size)
        n_trees = len(arrays["features"])
        trace._reserve(n_trees)
        trace._n_trees = n_trees
        for name in cls._NAMES[:-1]:
            getattr(trace, f"_{name}")[:] = arrays[name]
        trace._moves[:, : size * size] = arrays["C"].reshape(-1, size * size)
        trace._moves[:, size * size : -1] = arrays["b"]
        trace._moves[:, -1] = arrays["temperatures"]
        return trace

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of all trees: features, lows, highs, gains (T, D), depths (T,), values
        (T, 2^D, K), cover (T, 2^D), the transitions C (T, d, d) and b (T, d), temperatures (T,).
        """
        self._check_trees()
        kept = {name: getattr(self, f"_{name}")[: self._n_trees] for name in self._NAMES[:-1]}
        return kept | {"C": self.C, "b": self.b, "temperatures": self.temperatures}

    @property
    def C(self) -> Floats:  # noqa: N802
        """What each step multiplied the state with, (n_trees, d, d)."""
        self._check_trees()
        n, size = self._n_trees, self.size
        return self._moves[:n, : size * size].reshape(n, size, size)

    @property
    def b(self) -> Floats:
        """How much of its tree each step added to the parts of the state, (n_trees, d)."""
        self._check_trees()
        return self._moves[: self._n_trees, self.size * self.size : -1]

    @property
    def temperatures(self) -> Floats:
        """Temperature of each step."""
        self._check_trees()
        return self._moves[: self._n_trees, -1]

    def __len__(self) -> int:
        return self._n_trees

    @property
    def n_outputs(self) -> int:
        """Number of raw scores per row."""
        return len(self.offset)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.bins.n_features

    @property
    def depths(self) -> NDArray[np.int32]:
        """Depth of each tree."""
        self._check_trees()
        return self._depths[: self._n_trees]

    @property
    def values(self) -> Floats:
        """Leaf values as they were drawn, (n_trees, 2^max_depth, n_outputs)."""
        self._check_trees()
        return self._values[: self._n_trees]

    def append(
        self,
        structure: Structure,
        values: Floats,
        move: Move,
        sums: _core.LeafSums | None = None,
        l2: float = 0.0,
        first_sums: _core.LeafSums | None = None,
    ) -> None:
        """Add one step: a structure, its leaf values (2^depth, n_outputs), the move.

        The sums over the leaves' rows give cover and gains, the latter with `l2` and by the first
        sums of several.
        """
        t = self._n_trees
        if self.keep_trees:
            if t == self._capacity:
                self._reserve(max(16, 2 * t))
            by, first = move.transition.core, first_sums or sums
            self._rows.write(t, structure, values, sums, first, l2, by, move.temperature)
        self._n_trees = t + 1

    def append_from(self, other: "Trace") -> None:
        """Add the step that another trace has at this place."""
        self._check_trees()
        t = self._n_trees
        if t == self._capacity:
            self._reserve(max(len(other), 2 * t))
        for name in self._NAMES:
            getattr(self, f"_{name}")[t] = getattr(other, f"_{name}")[t]
        self._n_trees = t + 1

    def is_finite(self) -> bool:
        """Whether all leaf values there are are finite."""
        return bool(np.isfinite(self._values[: self._n_trees]).all())

    def structure(self, t: int) -> Structure:
        """Return the splits of tree t."""
        self._check_trees()
        if t >= self._n_trees:
            raise ValueError(f"tree {t} does not exist: the chain has {self._n_trees} steps")
        return self._rows.structure(t)

    def at(self, k: int) -> "Trace":
        """Return the chain after its first k steps: exactly the iterate it was then."""
        self._check_state(k)
        first = {name: array[:k].copy() for name, array in self.arrays().items()}
        return Trace.from_arrays(self.bins, self.offset, first)

    def _check_state(self, k: int) -> None:
        if not 0 <= k <= self._n_trees:
            raise ValueError(f"state {k} does not exist: the chain has {self._n_trees} steps")

    def weights(self, k: int | None = None, first: int = 0) -> Floats:
        """Return the weights (k - first, d) of trees first .. k - 1 in the state after k steps.

        Those in the model are the first column.
        """
        k = self._n_trees if k is None else k
        self._check_state(k)
        return tree_weights(self.C[first:k], self.b[first:k])

    def advance(
        self, columns: NDArray[np.uint8], state: Floats, t: int, n_threads: int = 1
    ) -> None:
        """Take step t on a state (d, n_outputs, n_rows) of codes, in place, as training did."""
        _core.add_tree(
            columns,
            self.structure(t),
            self._values[t],
            self._rows.transition(t),
            self.offset,
            state,
            n_threads,
        )

    def start(self, n_rows: int) -> Floats:
        """Return the state before the first step, (d, n_outputs, n_rows): the offset alone."""
        state = np.zeros((self.size, self.n_outputs, n_rows))
        state[0] = self.offset[:, None]
        return state

    def replay(self, columns: NDArray[np.uint8], n_threads: int = 1) -> Floats:
        """Run the chain again on codes (n_features, n_rows): training's state bit for bit."""
        state = self.start(columns.shape[1])
        for t in range(self._n_trees):
            self.advance(columns, state, t, n_threads)
        return state

    def staged(self, X: NDArray[Any], n_threads: int = 1) -> Iterator[Floats]:
        """Yield the raw scores (n_outputs, n_rows) after each step."""
        columns = self.bins.encode(X, n_threads)
        state = self.start(len(X))
        for t in range(self._n_trees):
            self.advance(columns, state, t, n_threads)
            yield state[0].copy()

    def states(self, numbers: Sequence[int]) -> "States":
        """Return the states after these numbers of steps (rising), ready for prediction."""
        return States.of([self], [numbers])

    def predict(
        self, X: NDArray[Any], n_threads: int = 1, states: Sequence[int] | None = None
    ) -> Floats:
        """Return raw scores (n_outputs, n_rows) of X, or of several states in one traversal.

        With `states`, numbers of steps, the result is (n_states, n_outputs, n_rows).
        """
        if states is None:
            final: Floats = self.states([self._n_trees]).predict(X, n_threads)[0]
            return final
        order = np.argsort(states, kind="stable")
        raw = np.empty((len(order), self.n_outputs, len(X)))
        raw[order] = self.states([states[index] for index in order]).predict(X, n_threads)
        return raw

    def feature_gains(self) -> Floats:
        """Return what the splits of each feature added to the scores, summed over trees."""
        trees = self.arrays()
        used = np.arange(self.max_depth) < trees["depths"][:, None]
        gains = np.bincount(
            trees["features"][used],
            weights=np.maximum(trees["gains"][used], 0.0),
            minlength=self.n_features,
        )
        return gains.astype(np.float64)


def join(traces: Sequence[Trace], lengths: Sequence[int] | None = None) -> Trace:
    """Return the trees of several chains as one trace, chain after chain.

    `lengths` are the numbers of their first steps that are kept. States of the result are not
    states of any chain: `States` weights the trees of each chain by itself.
    """
    if len(traces) == 1:
        return traces[0]
    lengths = [len(trace) for trace in traces] if lengths is None else lengths
    arrays = [trace.arrays() for trace in traces]
    parts = {
        name: np.concatenate([of[name][:n] for of, n in zip(arrays, lengths, strict=True)])
        for name in arrays[0]
    }
    return Trace.from_arrays(traces[0].bins, traces[0].offset, parts)


def split(trace: Trace, lengths: Sequence[int]) -> tuple[Trace, ...]:
    """Return the chains of these lengths that `join` made a trace of."""
    if len(lengths) == 1:
        return (trace,)
    ends, arrays = accumulate(lengths), trace.arrays()
    return tuple(
        Trace.from_arrays(
            trace.bins, trace.offset, {name: array[a:b] for name, array in arrays.items()}
        )
        for a, b in pairwise([0, *ends])
    )


def mean_raw(states: Sequence[Floats]) -> Floats:
    """Return the mean raw scores (n_outputs, n_rows) of states, one of each chain."""
    mean: Floats = states[0][0].copy()
    for state in states[1:]:  # in this order for any number of rows
        mean += state[0]
    mean /= len(states)
    return mean


class States:
    """Some states of chains, ready for prediction: trees weighted as they are in the next state.

    State s is a matrix times the state before it plus the trees in between, so that all of them
    cost one traversal. The matrix is zero where a chain begins.
    """

    def __init__(
        self, trees: Trace, weights: Floats, ends: Sequence[int], factors: Sequence[Floats]
    ) -> None:
        size = weights.shape[1]
        self.n_states = len(ends)
        self.n_outputs = trees.n_outputs
        self._predictor = _core.Predictor(
            trees.bins.thresholds,
            trees.bins.n_thresholds,
            trees._rows,
            weights,
            np.array(ends, dtype=np.int64),
            np.array(factors).reshape(-1, size, size),
            trees.offset,
        )

    @classmethod
    def of(cls, traces: Sequence[Trace], numbers: Sequence[Sequence[int]]) -> "States":
        """Return the states of each chain after its numbers of steps, chain after chain."""
        # The model after one stretch of trees needs no other part of the state.
        size = 1 if all(len(steps) <= 1 for steps in numbers) else traces[0].size
        weights, ends, factors = [np.ones((0, size))], [], []
        lengths = [max(steps, default=0) for steps in numbers]
        n_before = 0  # trees of the chains before
        for trace, steps, length in zip(traces, numbers, lengths, strict=True):
            for index, (first, end) in enumerate(pairwise([0, *steps])):
                weights.append(trace.weights(end, first)[:, :size])
                ends.append(n_before + end)
                factors.append(product(trace.C[first:end]) if index else np.zeros((size, size)))
            n_before += length
        return cls(join(traces, lengths), np.concatenate(weights), ends, factors)

    @classmethod
    def mean(cls, traces: Sequence[Trace]) -> "States":
        """Return the mean of the last states of chains: a tree's weight in its chain over their
        number.
        """
        weights = np.concatenate([trace.weights()[:, :1] for trace in traces]) / len(traces)
        return cls(join(traces), weights, [len(weights)], [np.zeros((1, 1))])

    def predict(self, X: NDArray[Any], n_threads: int = 1) -> Floats:
        """Return raw scores (n_states, n_outputs, n_rows) of X."""
        out = np.empty((self.n_states * self.n_outputs, len(X)))
        _core.predict(self._predictor, X, out, n_threads)
        return out.reshape(self.n_states, self.n_outputs, len(X))

    def linked(
        self, X: NDArray[Any], link: str, parameter: float, n_columns: int, n_threads: int = 1
    ) -> Floats:
        """Return predictions (n_rows, n_columns) of a single state through a link of the core."""
        out = np.empty((len(X), n_columns))
        _core.predict_linked(self._predictor, X, link, parameter, out, n_threads)
        return out

    def entropies(
        self, X: NDArray[Any], link: str, parameter: float, n_classes: int, n_threads: int = 1
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return mean (n_rows, n_classes), knowledge, data and total (n_rows,) of the states.

        `uncertainty.of_probabilities` of what `linked` gives for each, without holding it.
        """
        mean = np.empty((len(X), n_classes))
        # Page by page a large block comes cheaper than three of a third.
        parts = np.empty((3, len(X)))
        _core.predict_entropies(self._predictor, X, link, parameter, mean, parts, n_threads)
        knowledge, data, total = parts
        return mean, knowledge, data, total

    def moments(
        self, X: NDArray[Any], link: str, parameter: float, n_threads: int = 1
    ) -> tuple[Floats, Floats]:
        """Return mean and variance, (n_rows, n_outputs), of what `linked` gives for each state."""
        mean, variance = (np.empty((len(X), self.n_outputs)) for _ in range(2))
        _core.predict_variance(self._predictor, X, link, parameter, mean, variance, n_threads)
        return mean, variance
