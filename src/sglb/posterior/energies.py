"""What a posterior exp(-energy / T) times its prior is made of: sums of gradients over leaves.

    energy of a state f = sum over rows of w_i L(f_i, y_i)       `LossEnergy`, the loss itself
                        ~ const + sum of w_i d_i' H_i d_i / 2    `QuadraticEnergy`, the loss to
                                                  second order in d = f - f*, f* being a centre

The state of M draws is (n_outputs, n_rows, M). Sums over rows do not depend on the order of the
rows: each summand is rounded to a whole multiple of a unit, so that the sums are exact in doubles.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import _core, sums
from sglb.losses import Loss
from sglb.losses.shapes import user_shape
from sglb.posterior.partitions import Partitions
from sglb.target import Target, weight_unit
from sglb.weights import as_weights, kernel_weight

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Energy(Protocol):
    """Any energy of a state that is a sum over rows."""

    n_outputs: int
    n_rows: int
    weight: Floats  # (n_rows,)
    unit: float  # weight of an ordinary row

    @property
    def curvature(self) -> float:
        """Bound of the second derivatives of a row's loss."""
        ...

    @property
    def mean_curvature(self) -> float:
        """Mean second derivative over rows and outputs."""
        ...

    def leaf_curvature(self, partitions: Partitions) -> float:
        """Bound of the second derivative along any leaf, divided by the cover of the leaf."""
        ...

    def leaf_gradients(
        self, state: Floats, largest: Floats, leaf: Ints, n_leaves: int, n_threads: int
    ) -> Floats:
        """Return the sums of weighted gradients by leaf, (n_leaves, n_outputs, M).

        `largest` (M,) is the largest |state| of each draw.
        """
        ...


class QuadraticEnergy:
    """Half of sum w_i d_i' H_i d_i, H_i = diag(a_i) - b_i b_i' with a = `diagonal`, b = `factor`.

    Both are (n_outputs, n_rows) and not weighted; b is 0 if None. A row's weight is its
    multiplicity, `unit` that of an ordinary row.
    """

    def __init__(
        self,
        diagonal: Floats,
        factor: Floats | None = None,
        weight: Floats | None = None,
        unit: float = 1.0,
    ) -> None:
        self.n_outputs, self.n_rows = diagonal.shape
        self.weight, self.unit = as_weights(weight, self.n_rows), unit
        for array in (diagonal, factor):
            if array is not None and not np.isfinite(array).all():
                row = int(np.argmin(np.isfinite(array).all(axis=0)))
                raise ValueError(f"the curvature of the loss is not finite in row {row}")
        self._diagonal = np.ascontiguousarray(self.weight * diagonal)
        self._factor = (
            None if factor is None else np.ascontiguousarray(np.sqrt(self.weight) * factor)
        )
        b = np.zeros_like(diagonal) if factor is None else np.abs(factor)
        # Row k of H has the absolute sum |a_k - b_k^2| + |b_k| sum of the other |b_l|, which bounds
        # its eigenvalues (Gershgorin); and |(H d)_k| is at most |a_k| + |b_k| sum of |b_l| times
        # the largest |d|.
        across = b * sums.over_axis(b, 0)
        by_output = np.abs(diagonal - b * b) + across - b * b
        self._of_rows: Floats = by_output.max(axis=0, initial=0.0)
        self._curvature = float(self._of_rows.max(initial=0.0))
        self._bound = sums.total(
            (self.weight * (np.abs(diagonal) + across)).max(axis=0, initial=0.0)
        )

    @classmethod
    def at(cls, loss: Loss, target: Target, raw: Floats, n_copies: int = 1) -> "QuadraticEnergy":
        """Expand the loss at raw scores (n_outputs, n_rows).

        A negative second derivative, which only losses that are not convex have, counts as 0: the
        law that the expansion stands for must exist.
        """
        diagonal, factor = loss.hessian_parts(target.values, user_shape(raw))
        return cls(
            np.maximum(np.atleast_2d(diagonal.T), 0.0),
            None if factor is None else np.atleast_2d(factor.T),
            target.weight,
            ordinary_weight(target.weight, n_copies),
        )

    @property
    def curvature(self) -> float:
        """Bound of the eigenvalues of all H_i."""
        return self._curvature

    @property
    def mean_curvature(self) -> float:
        """Mean of the diagonals of all H_i."""
        diagonal = self._diagonal
        if self._factor is not None:
            diagonal = diagonal - np.square(self._factor)
        total = sums.total(sums.over_axis(diagonal, 0)) / sums.total(self.weight)
        return float(total / self.n_outputs)

    def leaf_curvature(self, partitions: Partitions) -> float:
        """Bound of the eigenvalues of the mean of H_i over the rows of any leaf.

        The step of a chain moves whole leaves, so that this and not the steepest row decides how
        long it may be.
        """
        largest, bent = 0.0, self.weight * self._of_rows
        for k in range(len(partitions.n_leaves)):
            leaf, n_leaves = partitions.leaf(k), int(partitions.n_leaves[k])
            cover = sums.by_group(leaf, self.weight, n_leaves)
            total = sums.by_group(leaf, bent, n_leaves)
            used = cover > 0.0
            largest = max(largest, float((total[used] / cover[used]).max(initial=0.0)))
        return min(largest, self._curvature)

    def row_curvature(self, rows: NDArray[np.intp]) -> Floats:
        """Return the diagonals of w_i H_i of some rows, (n_outputs, rows)."""
        diagonal: Floats = self._diagonal[:, rows]
        return diagonal if self._factor is None else diagonal - np.square(self._factor[:, rows])

    def leaf_gradients(
        self, state: Floats, largest: Floats, leaf: Ints, n_leaves: int, n_threads: int
    ) -> Floats:
        """Return the sums of w_i H_i d_i by leaf, (n_leaves, n_outputs, M)."""
        sums_by_leaf = np.empty((n_leaves, self.n_outputs, state.shape[2]))
        magic = rounding_magic(self._bound, largest)
        _core.sum_curvature(
            state, self._diagonal, self._factor, leaf, magic, sums_by_leaf, n_threads
        )
        return sums_by_leaf


class LossEnergy:
    """Sum of w_i L(offset_i + f_i, y_i); `offset` is (n_outputs,) or (n_outputs, n_rows)."""

    def __init__(
        self,
        loss: Loss,
        target: Target,
        offset: ArrayLike = 0.0,
        n_copies: int = 1,
    ) -> None:
        if not loss.independent:
            raise ValueError(
                f"loss '{loss.name}' of a row depends on other rows, so that several draws cannot"
                " be evaluated together"
            )
        self.n_outputs, self.n_rows = loss.n_outputs, len(target)
        self.loss = loss
        self.weight, self.unit = target.weight, ordinary_weight(target.weight, n_copies)
        start = np.asarray(offset, dtype=np.float64)
        start = start[:, None] if start.ndim == 1 else start
        self._offset = np.broadcast_to(start, (self.n_outputs, self.n_rows))[:, :, None]
        self._target, self._total_weight = target, target.total_weight
        self._y = target.values
        self._y_of_draws = np.empty(0)

    @property
    def curvature(self) -> float:
        """Bound of the second derivative of the loss."""
        if self.loss.smoothness is None:
            raise ValueError(
                f"the second derivative of loss '{self.loss.name}' has no bound: state a"
                " learning_rate"
            )
        return self.loss.smoothness

    @property
    def mean_curvature(self) -> float:
        """Mean second derivative of the loss at the offset."""
        start = np.ascontiguousarray(self._offset[:, :, 0])
        return QuadraticEnergy.at(self.loss, self._target, start).mean_curvature

    def leaf_curvature(self, partitions: Partitions) -> float:
        """Bound of the second derivative of the loss: the state of a leaf may be anywhere."""
        return self.curvature

    def leaf_gradients(
        self, state: Floats, largest: Floats, leaf: Ints, n_leaves: int, n_threads: int
    ) -> Floats:
        """Return the sums of w_i dL/df_i by leaf, (n_leaves, n_outputs, M)."""
        n_draws = state.shape[2]
        if len(self._y_of_draws) != self.n_rows * n_draws:
            self._y_of_draws = np.repeat(self._y, n_draws)
        raw, gradient = self._offset + state, np.empty_like(state)
        rows = self.n_outputs, -1  # each draw of a row is a row
        self.loss.fill(self._y_of_draws, raw.reshape(rows), gradient.reshape(rows), None, n_threads)
        steepest = np.maximum(
            gradient.max(axis=(0, 1), initial=0.0), -gradient.min(axis=(0, 1), initial=0.0)
        )
        sums_by_leaf = np.empty((n_leaves, self.n_outputs, n_draws))
        magic = rounding_magic(self._total_weight, steepest)
        _core.sum_gradient(
            gradient, kernel_weight(self.weight), leaf, magic, sums_by_leaf, n_threads
        )
        return sums_by_leaf


def ordinary_weight(weight: Floats, n_copies: int = 1) -> float:
    """Return the weight of an ordinary row, in all its copies together."""
    return weight_unit(weight, n_copies) * n_copies


def rounding_magic(total: float, largest: Floats) -> Floats:
    """Return 1.5 * 2^52 units (M,), where |summands| add up to at most total * largest (M,).

    The unit is the power of two for which that bound lies in [2^50, 2^51) units, so that all
    partial sums, each summand half a unit off at most, stay below 2^53 units and are exact. The sum
    of a leaf of n rows is off by at most n 2^-51 times the bound, its mean by 2^-51 times the
    number of all rows times the largest gradient: 5e-10 of it for a million rows, where the noise
    of a leaf is at least 1e-3.
    """
    if not total * float(largest.max(initial=0.0)) < 2.0**1000:  # nor NaN
        raise OverflowError("the draws are too large for sums over rows")
    bound = total * largest
    _, exponent = np.frexp(bound)
    return np.where(bound > 0.0, np.ldexp(1.5, exponent + 1), 0.0)
