"""Leaf values: what a tree predicts in the leaves of its structure."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.caching import cached_property
from sglb.errors import ChainDiverged, NonFiniteGradient, StepTooLong
from sglb.samplers import Move
from sglb.structure import Structure

if TYPE_CHECKING:
    from sglb.losses import Loss
    from sglb.rows import Rows
    from sglb.slopes import SlopeBounds

LeafMethod = Literal["gradient", "newton"]
Floats = NDArray[np.float64]

# Newton steps before the last look at about this many rows: they only have to come near enough for
# the last one, on all rows. With a third of it the loss was worse, on a million rows.
PART_ROWS = 150_000
# Steps on a part of the rows end when none is longer than this share of the largest value, which is
# less than a part can tell.
ARRIVED = 0.005


def farthest(values: Floats) -> float:
    """Return the largest absolute value."""
    return float(np.abs(values).max())


class NewtonPath:
    """Where the Newton steps of a tree have come to, (2^depth, n_outputs) each.

    `sum` of the steps, the `last` one, and the `curvature` at the first per weight, without l2.
    Steps look at one of `row_stride` lines of 64 rows, others in each tree.
    """

    def __init__(self, n_leaves: int, n_outputs: int, row_stride: int) -> None:
        self.sum: Floats = np.zeros((n_leaves, n_outputs))
        self.last: Floats = np.full((n_leaves, n_outputs), np.inf)
        self.curvature: Floats = np.zeros((n_leaves, n_outputs))
        self.row_stride = row_stride
        self.n_steps = 0
        self.core = _core.NewtonPath(self.sum, self.last, self.curvature, row_stride)

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = self.sum, self.last, self.curvature
        return NewtonPath._rebuilt, (*arrays, self.row_stride, self.n_steps)

    @classmethod
    def _rebuilt(
        cls, total: Floats, last: Floats, curvature: Floats, row_stride: int, n_steps: int
    ) -> "NewtonPath":
        path = cls(len(total), total.shape[1], row_stride)
        for mine, other in zip(
            (path.sum, path.last, path.curvature), (total, last, curvature), strict=True
        ):
            mine[:] = other
        path.n_steps = n_steps
        return path

    def on_all_rows(self) -> None:
        """Let the next step look at all rows."""
        if self.row_stride > 1:
            # Steps on a part of the rows end at its own minimum, the last of them next to nothing,
            # which must not bound the one on all rows.
            self.last[:] = np.inf
            self.row_stride = 1
            self.core = _core.NewtonPath(self.sum, self.last, self.curvature, 1)


@dataclass(frozen=True)
class LeafRule:
    """Divide the sum of gradients by weights ("gradient", the paper) or by second derivatives
    ("newton", faster but without an exact stationary law), plus `l2`.

    Of several `steps` each but the first takes its gradients where the ones before it have come to;
    the learning rate multiplies their sum, and the noise is that of one step. None of several
    Newton steps is longer than `trust_radius`; the only step of a leaf, times the learning rate, is
    at most half of it or the learning rate times it, whichever is more.
    """

    method: LeafMethod = "gradient"
    l2: float = 0.0
    steps: int = 1
    trust_radius: float = math.inf

    def __post_init__(self) -> None:
        """Reject an invalid rule."""
        if self.method not in ("gradient", "newton"):
            raise ValueError(f"leaf method {self.method!r} is neither 'gradient' nor 'newton'")
        if self.steps < 1:
            raise ValueError(f"leaf_steps={self.steps} must be at least 1")
        if self.steps > 1 and self.method == "gradient":
            raise ValueError(
                f"leaf_steps={self.steps} needs leaf_method='newton', and it is 'gradient' here: a"
                " chain of gradient steps takes one a tree"
            )

    @cached_property
    def core(self) -> _core.LeafRule:
        """The same for kernels."""
        return _core.LeafRule(self.l2, self.trust_radius)

    def for_loss(self, loss: "Loss") -> "LeafRule":
        """Return the rule with the trust radius of a loss."""
        return replace(self, trust_radius=loss.trust_radius) if self.method == "newton" else self

    def check(self, loss: "Loss", subsample: float) -> None:
        """Reject several steps where they do not lead to the optimum."""
        if self.steps == 1:
            return
        if loss.n_outputs > 1:
            raise ValueError(
                f"leaf_steps={self.steps} needs a loss of one output, {loss.name!r} has"
                f" {loss.n_outputs}: the best values of the outputs depend on one another, and"
                " separate steps would miss them"
            )
        if subsample < 1.0:
            raise ValueError(
                f"leaf_steps={self.steps} needs all rows, and subsample={subsample:g}: several"
                " steps on a sample would fit the sample"
            )

    def values(
        self, sums: _core.LeafSums, move: Move, draws: _core.Draws, path: NewtonPath | None
    ) -> Floats:
        """Draw the leaf values (2^depth, n_outputs) from the sums over the leaves' rows."""
        values = np.empty(sums.shape)
        _core.leaf_values(
            sums,
            self.core,
            move.learning_rate,
            move.noise,
            draws,
            None if path is None else path.core,
            values,
        )
        return values

    def approach(
        self,
        rows: "Rows",
        structure: Structure,
        bounds: "SlopeBounds",
        move: Move,
        draws: _core.Draws,
    ) -> "tuple[NewtonPath, _core.LeafSums, SlopeBounds]":
        """Take all Newton steps but the last.

        Returns the path, the sums of the first step, and bounds of the slopes where it leads.
        """
        # A step on a part of the rows may lead astray, and must not lead far.
        parts = not rows.is_stored and math.isfinite(self.trust_radius)
        row_stride = max(1, rows.totals.n_rows_with_copies // PART_ROWS) if parts else 1
        path = NewtonPath(structure.n_leaves, rows.n_outputs, row_stride)
        for number in range(self.steps - 1):
            before = path.sum.copy()
            sums = rows.leaf_sums(structure, bounds, move, draws, path)
            if number == 0:
                first_sums = _core.LeafSums(sums)
            _core.advance_path(sums, self.core, path.core)
            path.n_steps += 1
            try:
                bounds = rows.look_ahead(structure, path, move, draws)
            except (NonFiniteGradient, ChainDiverged) as error:
                raise StepTooLong(self.steps, draws.step) from error
            # Not after the first step, which is the whole way, unless no leaf took it.
            if path.row_stride > 1 and farthest(path.sum - before) <= ARRIVED * farthest(path.sum):
                break
        path.on_all_rows()
        return path, first_sums, bounds
