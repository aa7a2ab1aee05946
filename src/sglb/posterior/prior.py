"""The prior of frozen partitions: a Gaussian process whose kernel the partitions are.

P_k averages over the leaves of partition k, Pbar over K partitions. The chain of `frozen.py` has
the prior N(0, T Pbar / gamma) on the rows (T = temperature, gamma = shrink rate). With independent

    leaf values ~ N(0, T / (gamma K W_j)),    W_j = cover of leaf j,

on every leaf of every partition their sum at the rows is an exact draw from it, because a leaf adds
W_j^-1 to the covariance of two of its rows, as an entry of P_k does.

A leaf without training rows counts as a leaf of one ordinary row (W_j = its weight). No training
row notices, and rows far from the training data have the spread of the prior rather than none.
"""

import math

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.noise import Role
from sglb.posterior.partitions import Partitions
from sglb.weights import are_equal, as_weights

Floats = NDArray[np.float64]


class LeafPrior:
    """Covers of the leaves of all partitions, those of partition k from `first[k]` on.

    `unit` is the weight of an ordinary row.
    """

    def __init__(
        self, partitions: Partitions, weight: Floats | None = None, unit: float = 1.0
    ) -> None:
        self.partitions = partitions
        self.n_partitions = len(partitions.n_leaves)
        ends = np.add.accumulate(partitions.n_leaves)
        self.first: NDArray[np.int64] = ends - partitions.n_leaves
        self.n_all_leaves = int(ends[-1]) if len(ends) else 0
        weights = as_weights(weight, partitions.n_rows)
        self.total_weight = sums.total(weights)
        if not (self.n_partitions and self.total_weight > 0.0):
            raise ValueError("a prior needs at least one partition of rows that have weight")
        cover = np.empty(self.n_all_leaves)
        for k in range(self.n_partitions):
            cover[self.of(k)] = _cover(partitions, k, weights)
        self.n_used_leaves = int(np.count_nonzero(cover))
        self.cover: Floats = np.where(cover > 0.0, cover, unit)

    def of(self, k: int) -> slice:
        """Return where the leaves of partition k are."""
        first = int(self.first[k])
        return slice(first, first + int(self.partitions.n_leaves[k]))

    def shrink_rate(self, prior_variance: float) -> float:
        """Return gamma for which the prior variance of a row is `prior_variance` on average, T = 1.

        tr(Pbar) / (W gamma), and tr(P_k) is the number of leaves with rows; W is the total weight.
        """
        if not (math.isfinite(prior_variance) and prior_variance > 0.0):
            raise ValueError(f"prior_variance must be a number above 0, not {prior_variance!r}")
        leaves = self.n_used_leaves / self.n_partitions
        return leaves / (self.total_weight * prior_variance)

    def draw(self, variance: float, first_draw: int, out: Floats, seed: int) -> None:
        """Draw leaf values of variance `variance` / W_j: OUT out (n_all_leaves, n_outputs, M).

        `variance` is T / (gamma K) for a draw from the prior. Draws have numbers first_draw, ...
        """
        deviation = np.sqrt(variance / self.cover)[:, None, None]
        for k in range(self.n_partitions):
            leaves = self.of(k)
            _core.draw_normals(_core.Draws(seed, k), int(Role.PRIOR), first_draw, out[leaves])
        out *= deviation


def _cover(partitions: Partitions, k: int, weight: Floats) -> Floats:
    leaf, n_leaves = partitions.leaf(k), int(partitions.n_leaves[k])
    if are_equal(weight):
        return np.bincount(leaf, minlength=n_leaves).astype(np.float64)
    return sums.by_group(leaf, weight, n_leaves)
