"""Problems so small that the theory can be computed: `theory` runs the library's loop on them.

Rows have binary features. A callback records the chain; its trees are not kept, so that a chain may
take any number of steps.

    P_s     projector: average over the leaves of structure s
    Pbar    E P_s over the structures, P_inf = N Pbar
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import _core
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.callbacks import BaseCallback, StepInfo, Stop
from sglb.chain import Chain
from sglb.leaves import LeafRule
from sglb.losses import Loss
from sglb.noise import Role
from sglb.samplers import Sampler
from sglb.shard import Shard
from sglb.structure import NO_SAMPLE, Sample, SamplePlan, Structure, StructureRule
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]


def binary_rows(bits: ArrayLike, y: ArrayLike) -> TrainingSet:
    """Return a training set of features that are 0 or 1, (n_features, n_rows)."""
    codes = np.ascontiguousarray(np.asarray(bits) + 1, dtype=np.uint8)
    n_codes = np.full(len(codes), 3, dtype=np.int32)
    return TrainingSet.build(codes, n_codes, Target.of(y))


def bits_of(numbers: NDArray[np.int64], n_bits: int) -> NDArray[np.int64]:
    """Return binary digits (n_bits, n) of whole numbers, lowest first."""
    return (numbers >> np.arange(n_bits)[:, None]) & 1


def splits(*features: int) -> Structure:
    """Return the structure that splits these binary features."""
    n = len(features)
    return Structure(
        np.array(features, dtype=np.int32), np.zeros(n, np.uint8), np.ones(n, np.uint8)
    )


def projector(leaf: NDArray[np.integer[Any]], weight: ArrayLike = 1.0) -> Floats:
    """Return P_s as a matrix, whose row i averages over the rows of its leaf."""
    together = (leaf[:, None] == leaf) * np.asarray(weight, dtype=np.float64)
    return np.asarray(together / together.sum(axis=1, keepdims=True))


def projector_of(bits: ArrayLike, *features: int) -> Floats:
    """Return P_s of the structure that splits these features."""
    split = np.asarray(bits)[list(features)]
    return projector(np.left_shift(split.T, np.arange(len(features))).sum(axis=1))


class FixedStructure:
    """The structure rule that always returns the same structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def plan(self, n_rows: int, n_outputs: int) -> SamplePlan:
        """Need no sample."""
        return NO_SAMPLE

    def search(self, sample: Sample) -> Structure:
        """Return the structure."""
        return self.structure


class RandomStructure:
    """The structure rule that draws from a list, each with the same probability."""

    def __init__(self, structures: Sequence[Structure]) -> None:
        self.structures = structures

    def plan(self, n_rows: int, n_outputs: int) -> SamplePlan:
        """Need no sample."""
        return NO_SAMPLE

    def search(self, sample: Sample) -> Structure:
        """Return a random structure."""
        words = np.empty((1, 4), dtype=np.uint32)
        _core.words(sample.seed, sample.step, Role.TEST, 0, 0, words)
        return self.structures[int(words[0, 0]) * len(self.structures) >> 32]


class Recorder(BaseCallback):
    """Records raw scores of rows, and the last feature split, after a burn-in.

    `raw` (n_steps - burn_in, n_rows) and `features` (n_steps - burn_in,).
    """

    def __init__(
        self, n_steps: int, burn_in: int, rows: slice | NDArray[np.intp] = slice(None)
    ) -> None:
        self.n_steps = n_steps
        self.burn_in = burn_in
        self.rows = rows
        self.raw: Floats = np.empty((0, 0))
        self.features = np.empty(n_steps - burn_in, dtype=np.int32)

    def start(self, info: StepInfo) -> None:
        """Allocate the record."""
        self.raw = np.empty((len(self.features), info.raw[0, self.rows].size))

    def step(self, info: StepInfo) -> Stop | None:
        """Record the state."""
        index = info.step - 1 - self.burn_in
        if index >= 0:
            assert info.structure is not None
            self.raw[index] = info.raw[0, self.rows]
            features = info.structure.features
            self.features[index] = features[-1] if len(features) else -1
        return None


def make_chain(
    rows: TrainingSet,
    loss: Loss,
    sampler: Sampler,
    rule: StructureRule,
    *,
    leaves: LeafRule | None = None,
    offset: ArrayLike = 0.0,
    state: Floats | None = None,
    seed: int = 1,
) -> Chain:
    """Return a chain on binary features that keeps no trees, so that its length is not limited.

    `state` (d, n_outputs, n_rows) is the first state; without it the chain starts at the offset.
    """
    bins = Bins(np.full((rows.n_features, 1), 0.5), np.ones(rows.n_features, dtype=np.int32))
    start = np.broadcast_to(np.asarray(offset, dtype=np.float64), (loss.n_outputs,))
    size = sampler.move(0).transition.size
    trace = Trace(bins, 1, start, size=size, keep_trees=False)
    leaves = leaves or LeafRule()
    shard = Shard.start(rows, loss, trace, newton=leaves.method == "newton", state=state)
    return Chain(shard, sampler, rule, leaves, trace, seed=seed)


def run_chain(
    rows: TrainingSet,
    loss: Loss,
    sampler: Sampler,
    rule: StructureRule,
    recorder: Recorder,
    *,
    seed: int,
    state: Floats | None = None,
) -> Recorder:
    """Run the library's loop for the steps of a recorder, and return the recorder."""
    chain = make_chain(rows, loss, sampler, rule, seed=seed, state=state)
    boost(chain, recorder.n_steps, [recorder])
    return recorder


def batch_error(values: Floats, n_batches: int = 20) -> float:
    """Return the standard error of the mean of a correlated series, from the means of batches."""
    n_used = len(values) // n_batches * n_batches
    means = values[:n_used].reshape(n_batches, -1).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(n_batches))
