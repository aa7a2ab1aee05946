"""The state of a chain: raw scores of the training rows, slopes of the loss there, leaf values.

Several leaf steps a tree are a path: each but the last only says where the next one is taken, and
the chain moves with the last.
"""

import math

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.callbacks import StepInfo, user_shape
from sglb.ensemble import Ensemble
from sglb.errors import ChainDiverged, NonFiniteGradient, StepTooLong
from sglb.leaves import PART_ROWS, LeafRule
from sglb.losses import Loss
from sglb.samplers import Move
from sglb.structure import Structure
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]

# Beyond this many rows gradients do not stay in a cache between the two times that a step reads
# them; a loss of bounded gradient is then evaluated where it is needed instead of stored.
STORED_ROWS = 50_000
# Leaf steps on a part of the rows end when none is longer than this share of the largest value,
# which is less than a part can tell.
ARRIVED = 0.005
# Leaf values are suspicious when they are this many times as large as those of the first tree. A
# chain has run away when its mean loss is this many standard deviations of a row's loss, and this
# many times that loss, above the start.
GROWN, FAR = 30.0, 10.0
# Steps after which the loss is looked at even without suspicion.
LOOKS = frozenset(8 * 2**k + 1 for k in range(20))


def _farthest(values: Floats) -> float:
    return float(np.abs(values).max())


class SlopesAt:
    """First and second derivatives of the loss at raw scores that change."""

    def __init__(
        self, raw: Floats, training_set: TrainingSet, loss: Loss, *, newton: bool, n_threads: int
    ) -> None:
        self.raw = raw
        self._n_threads = n_threads
        slopes, refresh = None, None
        bounded = loss.lipschitz is not None and (loss.smoothness is not None or not newton)
        if bounded and training_set.n_rows > STORED_ROWS:
            slopes = loss.slopes(training_set.y, raw, newton=newton)
        if slopes is None:
            gradient = np.empty_like(raw)
            hessian = np.empty_like(raw) if newton else None
            slopes, refresh = loss.stored_slopes(training_set.y, raw, gradient, hessian)
        self.slopes = slopes
        self._refresh = refresh
        self._bounds = loss.lipschitz or math.inf, loss.smoothness or 0.0

    @property
    def stored(self) -> bool:
        """Whether slopes are kept in arrays, rather than evaluated where they are needed."""
        return self._refresh is not None

    def update(self, move: Move, step: int) -> tuple[float, float]:
        """Make the slopes those of the current raw scores; return bounds of the gradients' estimate
        and of the second derivatives.
        """
        largest, curvature = self._bounds
        try:
            if self._refresh is not None:
                largest, curvature = self._refresh(self._n_threads)
        except NonFiniteGradient as error:
            raise NonFiniteGradient(error.row, error.output, step) from error
        if not math.isfinite(largest):
            raise ChainDiverged(step)
        return largest / move.subsample, curvature


class Chain:
    """The state of a chain: raw scores of the training rows, and what the next step needs."""

    def __init__(
        self,
        training_set: TrainingSet,
        loss: Loss,
        leaves: LeafRule,
        ensemble: Ensemble,
        *,
        seed: int,
        n_threads: int,
    ) -> None:
        self.training_set = training_set
        self.loss = loss
        self.leaves = leaves
        self.ensemble = ensemble
        self.seed = seed
        self.n_threads = n_threads
        self.raw = ensemble.replay(training_set.code_columns, n_threads)
        self._workspace = _core.Workspace()
        self._largest_value = 0.0  # of the first tree
        here = self._slopes_at(self.raw)
        self.slopes = here.slopes
        self.estimate_gradient = here.update
        # Between the steps of one tree slopes are wanted where the leaves have come to. A loss that
        # is evaluated when needed finds its way there by itself.
        look_ahead = leaves.steps > 1 and here.stored
        self._ahead = self._slopes_at(np.empty_like(self.raw)) if look_ahead else here
        self._reach = loss.reach if leaves.method == "newton" else math.inf
        # A step on a part of the rows may lead astray, and must not lead far.
        parts = not here.stored and math.isfinite(self._reach)
        self._every = max(1, training_set.n_rows // PART_ROWS) if parts else 1

    def _slopes_at(self, raw: Floats) -> SlopesAt:
        newton = self.leaves.method == "newton"
        return SlopesAt(raw, self.training_set, self.loss, newton=newton, n_threads=self.n_threads)

    def fit_leaves(
        self, structure: Structure, largest: tuple[float, float], move: Move, step: int
    ) -> tuple[Floats, Floats]:
        """Draw the leaf values of a structure and take the step: f <- shrink f + tree.

        Returns the values (2^depth, n_outputs) and what each split gained (depth,).
        """
        values = np.empty((structure.n_leaves, len(self.raw)))
        gains = np.empty(structure.depth)
        slopes, path = self.slopes, None
        if self.leaves.steps > 1:
            path, largest = self._approach(structure, largest, move, step, gains)
            slopes = self._ahead.slopes
        _core.fit_leaves(
            self._workspace,
            self.training_set.core,
            structure,
            slopes,
            move.subsample,
            largest,
            move.learning_rate,
            move.noise,
            move.shrink,
            self.leaves.l2,
            self._reach,
            self.ensemble.offset,
            self.seed,
            step,
            path,
            self.raw,
            values,
            gains if path is None else None,
            self.n_threads,
        )
        return values, gains

    def _approach(
        self,
        structure: Structure,
        largest: tuple[float, float],
        move: Move,
        step: int,
        gains: Floats,
    ) -> tuple[Floats, tuple[float, float]]:
        """Take all leaf steps but the last; return where they lead, and bounds of slopes there."""
        path = np.zeros((3, structure.n_leaves, len(self.raw)))
        path[1] = np.inf
        ahead, slopes = self._ahead, self.slopes
        for number in range(self.leaves.steps - 1):
            before = path[0].copy()
            _core.approach_leaves(
                self._workspace,
                self.training_set.core,
                structure,
                slopes,
                move.subsample,
                largest,
                self.leaves.l2,
                self._reach,
                self.seed,
                step,
                self._every,
                self.raw,
                path,
                ahead.raw if ahead.stored else None,
                gains if number == 0 else None,
                self.n_threads,
            )
            slopes = ahead.slopes
            try:
                largest = ahead.update(move, step)
            except (NonFiniteGradient, ChainDiverged) as error:
                raise StepTooLong(self.leaves.steps, step) from error
            # Not after the first step, which is the whole way, unless no leaf took it.
            if self._every > 1 and _farthest(path[0] - before) <= ARRIVED * _farthest(path[0]):
                break
        if self._every > 1:
            # Steps on a part of the rows end at its own minimum, the last of them next to nothing,
            # which must not bound the one on all rows.
            path[1] = np.inf
        return path, largest

    def check_growth(self, values: Floats, move: Move, step: int) -> None:
        """Raise ChainDiverged if the mean loss has grown far beyond that of the start.

        Where the gradient is that of the loss, a chain that runs away has ever larger leaf values,
        so that the loss, which takes a pass over the rows, is looked at only then. A user's
        gradient may be anything: there the loss is looked at now and then as well.
        """
        size = _farthest(values)
        if not math.isfinite(size):
            raise ChainDiverged(step)
        self._largest_value = self._largest_value or size
        in_doubt = not self.loss.proven and step in LOOKS
        if size <= GROWN * self._largest_value and not in_doubt:
            return
        self._largest_value = max(size, self._largest_value)
        with np.errstate(all="ignore"):
            rows = self.loss.some(self.training_set.n_rows)
            raw = self.raw[:, rows]
            start, deviation = self._mean_loss(self.ensemble.start(raw.shape[1]), rows)
            now, _ = self._mean_loss(raw, rows)
            # What the noise adds to the loss of a row is of the order of the temperature.
            temperature = 0.5 * move.noise * move.noise * move.learning_rate
            warmth = temperature * self.training_set.n_rows / self.training_set.total_weight
            far = start + FAR * (deviation + abs(start) + warmth)
        if not now <= far and math.isfinite(far):  # what is not a number is far away, too
            raise ChainDiverged(step, start, now)

    def _mean_loss(self, raw: Floats, rows: slice | NDArray[np.intp]) -> tuple[float, float]:
        """Return the weighted mean of the loss of some rows, and its standard deviation."""
        weight = self.training_set.weight
        weight = None if weight is None else weight[rows]
        loss = self.loss.loss(self.training_set.y[rows], user_shape(raw))
        mean = sums.mean(loss, weight)
        return mean, math.sqrt(sums.mean(np.square(loss - mean), weight))

    def step_info(
        self,
        step: int,
        n_steps: int,
        structure: Structure | None,
        values: Floats | None,
        shrink: float,
    ) -> StepInfo:
        """Describe the chain after `step` of `n_steps` planned steps for callbacks."""
        return StepInfo(
            step,
            n_steps,
            self.ensemble,
            structure,
            values,
            shrink,
            self.raw,
            self.loss,
            self.training_set,
        )
