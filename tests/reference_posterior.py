"""Plain NumPy twins of the chains on frozen partitions and of the predictions of their draws."""

import numpy as np

import reference_noise
from sglb.noise import Role

PARTITION, PRIOR, DRAW = (int(role) for role in (Role.PARTITION, Role.PRIOR, Role.DRAW))
BATCH = 16
GROUP = 16


def sum_curvature(state, diagonal, factor, leaf, magic, n_leaves):
    """Sums by leaf of (diag(a) - b b') state over rows, each summand rounded."""
    gradient = diagonal[:, :, None] * state
    if factor is not None:
        mean = np.zeros(state.shape[1:])
        for b, output in zip(factor, state, strict=True):
            mean += b[:, None] * output
        gradient = gradient - factor[:, :, None] * mean
    return sum_gradient(gradient, None, leaf, magic, n_leaves)


def sum_gradient(gradient, weight, leaf, magic, n_leaves):
    """The same of weight * gradient (K, N, M)."""
    weighted = gradient if weight is None else weight[:, None] * gradient
    rounded = (weighted + magic) - magic
    sums = np.zeros((n_leaves, len(gradient), gradient.shape[2]))
    np.add.at(sums, leaf, rounded.transpose(1, 0, 2))
    return sums


def advance_draws(leaf, values, shrink, state):
    """The state after a step, and the largest |state| of each draw."""
    moved = shrink * state + values[leaf].transpose(1, 0, 2)
    return moved, np.abs(moved).max(axis=(0, 1), initial=0.0)


def add_partitions(leaves, first, values, state):
    """The state of rows plus the values of their leaves, partition after partition."""
    moved = state.copy()
    for leaf, begin in zip(leaves, first, strict=True):
        moved += values[begin + leaf].transpose(1, 0, 2)
    return moved


def draw_normals(seed, step, role, first_draw, shape):
    """Normals (L, K, M): number (leaf << 32) + draw of the stream of an output."""
    n_leaves, n_outputs, n_draws = shape
    return np.array(
        [
            [
                reference_noise.normals(seed, step, role, k, (j << 32) + first_draw, n_draws)
                for k in range(n_outputs)
            ]
            for j in range(n_leaves)
        ]
    ).reshape(shape)


def add_leaf_draws(leaves, first, values):
    """Sums over partitions: GROUP of them at a time in single precision, those in double."""
    n_outputs, n_draws = values.shape[1:]
    out = np.zeros((n_outputs, leaves.shape[1], n_draws))
    for begin in range(0, len(leaves), GROUP):
        sums = np.zeros(out.shape, dtype=np.float32)
        for t in range(begin, min(begin + GROUP, len(leaves))):
            sums += values[first[t] + leaves[t]].transpose(1, 0, 2)
        out += sums
    return out


class Chain:
    """The chain of `posterior/frozen.py` in one piece, for an energy with this gradient function.

    `gradient(state)` is that of a row, not weighted, in the shape of the state (K, N, M).
    """

    def __init__(self, leaves, n_leaves, gradient, weight, sampler, shape, *, first_draw=0, seed=0):
        self.leaves, self.gradient, self.weight = leaves, gradient, weight
        self.eps, self.gamma, self.T = sampler
        self.seed, self.first_draw, self.n_steps = seed, first_draw, 0
        self.cover = [
            np.maximum(np.bincount(leaf, weight, n), (np.bincount(leaf, weight, n) == 0.0) * 1.0)
            for leaf, n in zip(leaves, n_leaves, strict=True)
        ]
        n_outputs, self.n_draws = shape
        self.state = np.zeros((n_outputs, leaves.shape[1], self.n_draws))
        self.values = []
        for k, W in enumerate(self.cover):
            deviation = np.sqrt(self.T / (self.gamma * len(leaves) * W))[:, None, None]
            self.values.append(deviation * self._normals(k, PRIOR, W))
            self.state += self.values[k][leaves[k]].transpose(1, 0, 2)

    def _normals(self, step, role, cover):
        shape = len(cover), len(self.state), self.n_draws
        return draw_normals(self.seed, step, role, self.first_draw, shape)

    def step(self):
        words = reference_noise.words(
            self.seed, self.n_steps, PARTITION, 0, self.first_draw // BATCH, 1
        )
        k = int(words[0, 0]) * len(self.leaves) >> 32
        leaf, W = self.leaves[k], self.cover[k][:, None, None]
        xi = self._normals(self.n_steps, DRAW, self.cover[k])
        G = np.zeros_like(xi)
        np.add.at(G, leaf, (self.weight[:, None] * self.gradient(self.state)).transpose(1, 0, 2))
        theta = -self.eps * (G / W + np.sqrt(2.0 * self.T / self.eps) * xi / np.sqrt(W))
        rho = 1.0 - self.gamma * self.eps
        self.state = rho * self.state + theta[leaf].transpose(1, 0, 2)
        self.values = [rho * values for values in self.values]
        self.values[k] = self.values[k] + theta
        self.n_steps += 1
        return k
