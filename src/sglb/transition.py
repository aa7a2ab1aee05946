"""How the state of a chain moves: a transition is data.

A state S has d parts, each with the raw scores' shape; the model f is the first part. A step is

    S <- C S + b (x) tree

so that tree t has the weight e' C_k ... C_{t+1} b_t in the model after step k, e being the first
unit vector. SGLB is d = 1, C = 1 - gamma eps, b = 1; momentum is d = 2.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import _core, sums

Floats = NDArray[np.float64]


class Transition:
    """C (d, d) and b (d,) of one step."""

    __slots__ = ("C", "b", "core")

    def __init__(self, C: ArrayLike, b: ArrayLike) -> None:
        self.C: Floats = np.array(C, dtype=np.float64, ndmin=2)
        self.b: Floats = np.array(b, dtype=np.float64, ndmin=1)
        if self.C.shape != (len(self.b), len(self.b)):
            raise ValueError(f"C must be (d, d) and b (d,), not {self.C.shape} and {self.b.shape}")
        if not (np.isfinite(self.C).all() and np.isfinite(self.b).all()):
            raise ValueError("a transition must be finite")
        self.core = _core.Transition(self.C, self.b)

    @classmethod
    def shrink(cls, factor: float) -> "Transition":
        """Return f <- factor f + tree."""
        return cls([[factor]], [1.0])

    @property
    def size(self) -> int:
        """Parts d of the state."""
        return len(self.b)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transition):
            return NotImplemented
        return np.array_equal(self.C, other.C) and np.array_equal(self.b, other.b)

    def __hash__(self) -> int:
        return hash((self.C.tobytes(), self.b.tobytes()))

    def __repr__(self) -> str:
        return f"Transition({self.C.tolist()}, {self.b.tolist()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Transition, (self.C, self.b)


KEEP = Transition.shrink(1.0)


def tree_weights(C: Floats, b: Floats) -> Floats:
    """Return the weights (T, d) of T trees in the state after them: C_T ... C_{t+1} b_t.

    C (T, d, d) and b (T, d) are the transitions of the trees' steps.
    """
    n_trees, size = b.shape
    if size == 1:  # a product of numbers
        weights = np.ones((n_trees, 1))
        weights[:-1, 0] = np.cumprod(C[1:, 0, 0][::-1])[::-1]
        return weights * b
    weights, after = np.empty((n_trees, size)), np.eye(size)
    for t in range(n_trees - 1, -1, -1):
        weights[t] = sums.product(after, b[t])
        after = sums.product(after, C[t])
    return weights


def spectral_radius(C: Floats) -> Floats:
    """Return the largest absolute eigenvalue of each of matrices (..., d, d)."""
    if C.shape[-1] == 1:
        return np.abs(C[..., 0, 0])
    if C.shape[-1] > 2:
        return np.asarray(np.abs(np.linalg.eigvals(C)).max(axis=-1))
    middle, determinant = 0.5 * (C[..., 0, 0] + C[..., 1, 1]), determinant_of_two(C)
    discriminant = np.square(middle) - determinant
    real = np.abs(middle) + np.sqrt(np.maximum(discriminant, 0.0))
    return np.where(discriminant < 0.0, np.sqrt(np.abs(determinant)), real)


def determinant_of_two(C: Floats) -> Floats:
    """Return the determinant of each of matrices (..., 2, 2)."""
    return np.asarray(C[..., 0, 0] * C[..., 1, 1] - C[..., 0, 1] * C[..., 1, 0])


def product(C: Floats) -> Floats:
    """Return C_T ... C_1 (d, d), by which T steps multiply a state."""
    if C.shape[1] == 1:
        return np.array([[C[:, 0, 0].prod()]])
    total = np.eye(C.shape[1])
    for step in C:
        total = sums.product(step, total)
    return total
