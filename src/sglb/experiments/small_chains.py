"""Problems so small that the theory can be computed: what `theory` runs the real loop on.

Rows have binary features. Guests of the loop (callbacks) note the chain as it goes; an ensemble
that keeps no trees lets it go on for as long as one likes.

    P_s     projector: average over the leaves of structure s
    Pbar    E P_s over the structures, P_inf = N Pbar
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import _core
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.callbacks import BaseCallback, StepInfo, Stop
from sglb.chain import Chain
from sglb.ensemble import Ensemble
from sglb.leaves import LeafRule
from sglb.losses import Loss
from sglb.noise import Role
from sglb.samplers import Sampler
from sglb.shard import Shard
from sglb.structure import NO_SAMPLE, Sample, SamplePlan, Structure, StructureRule
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]


def binary_rows(bits: ArrayLike, y: ArrayLike) -> TrainingSet:
    """Return a training set of features that are 0 or 1, (n_features, n_rows)."""
    codes = np.ascontiguousarray(np.asarray(bits) + 1, dtype=np.uint8)
    n_codes = np.full(len(codes), 3, dtype=np.int32)
    return TrainingSet.build(codes, n_codes, np.asarray(y, dtype=np.float64))


def bits_of(numbers: NDArray[np.int64], n_bits: int) -> NDArray[np.int64]:
    """Return binary digits (n_bits, n) of whole numbers, lowest first."""
    return (numbers >> np.arange(n_bits)[:, None]) & 1


def splits(*features: int) -> Structure:
    """Return the structure that splits these binary features."""
    n = len(features)
    return Structure(
        np.array(features, dtype=np.int32), np.zeros(n, np.uint8), np.ones(n, np.uint8)
    )


def projector(bits: ArrayLike, *features: int) -> Floats:
    """Return P_s of the structure that splits these features."""
    chosen = np.asarray(bits)[list(features)]
    together = (chosen[:, :, None] == chosen[:, None, :]).all(axis=0).astype(np.float64)
    return np.asarray(together / together.sum(axis=1, keepdims=True))


class FixedStructure:
    """The rule that always gives the same structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def plan(self, n_rows: int, n_outputs: int) -> SamplePlan:
        """Need no sample."""
        return NO_SAMPLE

    def search(self, sample: Sample) -> Structure:
        """Return the structure."""
        return self.structure


class EquallyLikely:
    """The rule that draws from a list without a look at the gradient."""

    def __init__(self, structures: Sequence[Structure]) -> None:
        self.structures = structures

    def plan(self, n_rows: int, n_outputs: int) -> SamplePlan:
        """Need no sample."""
        return NO_SAMPLE

    def search(self, sample: Sample) -> Structure:
        """Draw one of the structures."""
        words = np.empty((1, 4), dtype=np.uint32)
        _core.words(sample.seed, sample.step, Role.TEST, 0, 0, words)
        return self.structures[int(words[0, 0]) * len(self.structures) >> 32]


class Notes(BaseCallback):
    """Notes raw scores of some rows, and the last feature split, after a burn-in."""

    def __init__(
        self,
        n_steps: int,
        burn_in: int,
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        self.burn_in = burn_in
        self.rows = rows
        self.raw: Floats = np.empty((0, 0))
        self.features = np.empty(n_steps - burn_in, dtype=np.int32)
        self._n_steps = n_steps

    def start(self, info: StepInfo) -> None:
        """Make room."""
        n_rows = info.raw.shape[1] if self.rows is None else len(self.rows)
        self.raw = np.empty((self._n_steps - self.burn_in, n_rows))

    def step(self, info: StepInfo) -> Stop | None:
        """Note the state."""
        place = info.step - 1 - self.burn_in
        if place >= 0:
            assert info.structure is not None
            self.raw[place] = info.raw[0] if self.rows is None else info.raw[0, self.rows]
            features = info.structure.features
            self.features[place] = features[-1] if len(features) else -1
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
    """Return a chain on binary features that keeps no trees, so that it may run for ever.

    `state` (d, n_outputs, n_rows) is where it begins, if not at the offset.
    """
    bins = Bins(np.full((rows.n_features, 1), 0.5), np.ones(rows.n_features, dtype=np.int32))
    start = np.broadcast_to(np.asarray(offset, dtype=np.float64), (loss.n_outputs,))
    size = sampler.move(0).transition.size
    trace = Ensemble(bins, 1, start, size=size, keep_trees=False)
    leaves = leaves or LeafRule()
    shard = Shard.start(rows, loss, trace, newton=leaves.method == "newton", state=state)
    return Chain(shard, sampler, rule, leaves, trace, seed=seed)


def walk(
    rows: TrainingSet,
    loss: Loss,
    sampler: Sampler,
    rule: StructureRule,
    notes: Notes,
    *,
    seed: int,
    state: Floats | None = None,
) -> Notes:
    """Run the library's loop for as many steps as the notes have room for."""
    chain = make_chain(rows, loss, sampler, rule, seed=seed, state=state)
    boost(chain, notes.burn_in + len(notes.features), [notes])
    return notes


def batch_error(values: Floats, n_batches: int = 20) -> float:
    """Return the standard error of the mean of a correlated series, by means of batches."""
    usable = len(values) // n_batches * n_batches
    means = values[:usable].reshape(n_batches, -1).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(n_batches))
