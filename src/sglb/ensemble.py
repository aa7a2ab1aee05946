"""The chain as plain arrays: every state it went through can be read from them.

Leaf values are stored as they were drawn, shrink factors beside them. In the state after k steps
tree t has the weight

    w_t(k) = shrink_{t+1} * shrink_{t+2} * ... * shrink_{k-1}        (trees counted from 0)

so early stopping, staged prediction and draws are all other weights over the same leaves.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.bins import Bins
from sglb.structure import Structure

Floats = NDArray[np.float64]


class Ensemble:
    """Trees of at most `max_depth` splits over `bins`, for `offset.size` outputs."""

    def __init__(self, bins: Bins, max_depth: int, offset: Floats) -> None:
        self.bins = bins
        self.max_depth = max_depth
        self.offset = np.ascontiguousarray(offset, dtype=np.float64)
        self._n_trees = 0
        self._allocate(0)

    def _allocate(self, capacity: int) -> None:
        self._capacity = capacity
        self._features = np.zeros((capacity, self.max_depth), dtype=np.int32)
        self._lows = np.zeros((capacity, self.max_depth), dtype=np.uint8)
        self._highs = np.zeros((capacity, self.max_depth), dtype=np.uint8)
        self._gains = np.zeros((capacity, self.max_depth))
        self._depths = np.zeros(capacity, dtype=np.int32)
        self._shrinks = np.ones(capacity)
        self._values = np.zeros((capacity, 1 << self.max_depth, self.n_outputs))
        # One call that writes a row of all seven takes a third of the time of seven assignments.
        self._rows = _core.Trees(*(getattr(self, f"_{name}") for name in self._NAMES))

    _NAMES = ("features", "lows", "highs", "gains", "depths", "shrinks", "values")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the trees there are, as arrays."""
        return Ensemble.from_arrays, (self.bins, self.offset, self.arrays())

    def _reserve(self, capacity: int) -> None:
        old = self.arrays()
        self._allocate(capacity)
        for name, array in old.items():
            getattr(self, f"_{name}")[: self._n_trees] = array

    @classmethod
    def from_arrays(cls, bins: Bins, offset: Floats, arrays: dict[str, NDArray[Any]]) -> "Ensemble":
        """Build an ensemble from the arrays of another one."""
        ensemble = cls(bins, arrays["features"].shape[1], offset)
        ensemble._n_trees = len(arrays["features"])
        ensemble._allocate(ensemble._n_trees)
        for name in cls._NAMES:
            getattr(ensemble, f"_{name}")[:] = arrays[name]
        return ensemble

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of all trees: features, lows, highs, gains (T, D), depths, shrinks
        (T,), values (T, 2^D, K).
        """
        return {name: getattr(self, f"_{name}")[: self._n_trees] for name in self._NAMES}

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
        return self._depths[: self._n_trees]

    @property
    def shrinks(self) -> Floats:
        """Factor that each step multiplied the model with before it added its tree."""
        return self._shrinks[: self._n_trees]

    @property
    def values(self) -> Floats:
        """Leaf values as they were drawn, (n_trees, 2^max_depth, n_outputs)."""
        return self._values[: self._n_trees]

    def append(self, structure: Structure, values: Floats, gains: Floats, shrink: float) -> None:
        """Add one step: a structure, its leaf values (2^depth, n_outputs), what each split gained
        (depth,), the shrink factor.
        """
        t = self._n_trees
        if t == self._capacity:
            self._reserve(max(16, 2 * t))
        self._rows.write(t, structure, values, gains, shrink)
        self._n_trees = t + 1

    def structure(self, t: int) -> Structure:
        """Return the splits of tree t."""
        if t >= self._n_trees:
            raise ValueError(f"tree {t} does not exist: the chain has {self._n_trees} steps")
        return self._rows.structure(t)

    def at(self, k: int) -> "Ensemble":
        """Return the chain after its first k steps: exactly the iterate it was then."""
        self._check_state(k)
        first = {name: array[:k].copy() for name, array in self.arrays().items()}
        return Ensemble.from_arrays(self.bins, self.offset, first)

    def _check_state(self, k: int) -> None:
        if not 0 <= k <= self._n_trees:
            raise ValueError(f"state {k} does not exist: the chain has {self._n_trees} steps")

    def weights(self, k: int | None = None, first: int = 0) -> Floats:
        """Return the weights of trees first .. k - 1 in the state after k steps."""
        k = self._n_trees if k is None else k
        self._check_state(k)
        weights = np.ones(k - first)
        weights[:-1] = np.cumprod(self._shrinks[first + 1 : k][::-1])[::-1]
        return weights

    def advance(self, columns: NDArray[np.uint8], raw: Floats, t: int, n_threads: int = 1) -> None:
        """Take step t on raw scores (n_outputs, n_rows) of codes, in place, as training did."""
        _core.add_tree(
            columns,
            self.structure(t),
            self._values[t],
            self._shrinks[t],
            self.offset,
            raw,
            n_threads,
        )

    def start(self, n_rows: int) -> Floats:
        """Return the raw scores before the first step, (n_outputs, n_rows)."""
        return np.repeat(self.offset[:, None], n_rows, axis=1)

    def replay(self, columns: NDArray[np.uint8], n_threads: int = 1) -> Floats:
        """Run the chain again on codes (n_features, n_rows): training's raw scores bit for bit."""
        raw = self.start(columns.shape[1])
        for t in range(self._n_trees):
            self.advance(columns, raw, t, n_threads)
        return raw

    def staged(self, X: NDArray[Any], n_threads: int = 1) -> Iterator[Floats]:
        """Yield the raw scores (n_outputs, n_rows) after each step."""
        columns = self.bins.encode(X, n_threads)
        raw = self.start(len(X))
        for t in range(self._n_trees):
            self.advance(columns, raw, t, n_threads)
            yield raw.copy()

    def states(self, numbers: Sequence[int]) -> "States":
        """Return what prediction needs to know of the states after so many steps, rising."""
        return States(self, numbers)

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
        found = np.empty((len(order), self.n_outputs, len(X)))
        found[order] = self.states([states[place] for place in order]).predict(X, n_threads)
        return found

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


class States:
    """Some states of a chain, ready for prediction: trees weighted as they are in the next state.

    State s is its factor times the state before it plus the trees in between, so that all of them
    cost one traversal.
    """

    def __init__(self, ensemble: Ensemble, numbers: Sequence[int]) -> None:
        self.n_states = len(numbers)
        self.n_outputs = ensemble.n_outputs
        last = numbers[-1] if len(numbers) else 0
        trees = {name: array[:last] for name, array in ensemble.arrays().items()}
        pieces = list(pairwise([0, *numbers]))
        weights = [ensemble.weights(end, first) for first, end in pieces]
        self._predictor = _core.Predictor(
            ensemble.bins.thresholds,
            ensemble.bins.n_thresholds,
            trees["features"],
            trees["lows"],
            trees["highs"],
            trees["depths"],
            trees["values"] * np.concatenate([np.ones(0), *weights])[:, None, None],
            np.array(numbers, dtype=np.int64),
            np.array([trees["shrinks"][a:b].prod() for a, b in pieces]),
            ensemble.offset,
        )

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
        knowledge, data, total = np.empty((3, len(X)))
        _core.predict_entropies(
            self._predictor, X, link, parameter, mean, knowledge, data, total, n_threads
        )
        return mean, knowledge, data, total

    def moments(
        self, X: NDArray[Any], link: str, parameter: float, n_threads: int = 1
    ) -> tuple[Floats, Floats]:
        """Return mean and variance, (n_rows, n_outputs), of what `linked` gives for each state."""
        mean, variance = (np.empty((len(X), self.n_outputs)) for _ in range(2))
        _core.predict_variance(self._predictor, X, link, parameter, mean, variance, n_threads)
        return mean, variance
