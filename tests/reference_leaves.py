"""Plain NumPy twins of leaf values and of sums of trees.

Shapes: N rows, F features, K outputs, D depth, T trees.
"""

import math
from itertools import pairwise

import numpy as np

from reference_bins import encode
from reference_noise import LEAF, core_normals


def leaf_indices(columns, features, lows, highs):
    """Leaf of each row: bit d is set where the code of split d lies outside low..high."""
    leaf = np.zeros(columns.shape[1], dtype=np.uint16)
    for d, (f, low, high) in enumerate(zip(features, lows, highs, strict=True)):
        outside = (columns[f] < low) | (columns[f] > high)
        leaf |= (outside.astype(np.uint16) << d).astype(np.uint16)
    return leaf


def leaf_sums(leaf, n_leaves, gradient, hessian, weight, l2):
    """Sums of gradients and curvatures (n_leaves, K), and of weights (n_leaves, 1)."""
    weight = np.ones(gradient.shape[1]) if weight is None else weight

    def sums(rows):
        return np.stack([np.bincount(leaf, weight * row, n_leaves) for row in rows], axis=1)

    W = sums(np.ones((1, gradient.shape[1])))
    C = np.repeat(W, len(gradient), axis=1) + l2
    if hessian is not None:
        H = sums(hessian)
        mean = H.sum(axis=0) / W.sum() if W.sum() > 0 else 0.0
        C = np.maximum(H, 1e-3 * mean * W) + l2  # a saturated leaf must not jump
    return sums(gradient), np.where(C > 0, C, W), W  # no curvature anywhere: a gradient step


def next_steps(G, C, l2, path, trust_radius=np.inf):
    """Newton steps of a path, never longer than the last, half as long where they turn back."""
    total, last, _ = path
    step = -(G + l2 * total) / C
    most = np.minimum(np.abs(np.where((step < 0) == (last < 0), last, last / 2)), trust_radius)
    return np.clip(step, -most, most)


def start_path(n_leaves, n_outputs):
    """The path before its first step: sum of steps, last step, first one's curvature per weight."""
    path = np.zeros((3, n_leaves, n_outputs))
    path[1] = np.inf
    return path


def approach(leaf, n_leaves, gradient, hessian, weight, l2, path, trust_radius=np.inf):
    """The path after another step that is not the last one of the tree."""
    G, C, W = leaf_sums(leaf, n_leaves, gradient, hessian, weight, l2)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = next_steps(G, C, l2, path, trust_radius)
        curvature = (C - l2) / W
    total, _, first = path
    result = np.stack([total + step, step, np.where(first > 0, first, curvature)])
    return np.where(W > 0, result, path)


def part_of_rows(n_rows, every, step):
    """Which rows a step on part of them looks at: one of every so many lines of 64."""
    return np.arange(n_rows) // 64 % every == step % every


def approach_on_part(
    leaf, n_leaves, gradient, hessian, weight, l2, path, part, trust_radius=np.inf
):
    """As `approach` from the rows of a part alone, in the leaves where these have the curvature of
    64 rows of the logistic loss at its largest, 1/4, and of typical weight.
    """
    typical = 1.0 if weight is None else (weight**2).sum() / weight.sum()
    weight = np.ones(part.size) if weight is None else weight
    slopes = gradient[:, part], hessian[:, part]
    result = approach(
        leaf[part], n_leaves, *slopes, weight[part], l2 * part.mean(), path, trust_radius
    )
    curvature = np.bincount(leaf[part], weight[part] * hessian[0, part], n_leaves)
    enough = curvature >= 64 * 0.25 * typical
    return np.where(enough[:, None], result, path)


def leaf_values(
    leaf,
    n_leaves,
    gradient,
    hessian,
    weight,
    learning_rate,
    sigma,
    l2,
    seed,
    step,
    path=None,
    trust_radius=np.inf,
):
    """theta_j = -eps (G_j + sigma sqrt(C_j) xi_j) / C_j, (n_leaves, K); 0 without weight.

    After a path G_j / C_j is the sum of its steps and of another one, and C_j is by what the first
    one saw. A lone step, also of a leaf that a path has left where it was, is at most the trust
    radius, or half of it for theta_j.
    """
    G, C, W = leaf_sums(leaf, n_leaves, gradient, hessian, weight, l2)
    n_outputs = len(gradient)
    xi = np.stack([core_normals(seed, step, LEAF, k, n_leaves) for k in range(n_outputs)], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = trust_radius * max(1.0, 0.5 / learning_rate)
        start = np.clip(-G / C, -most, most)
        if path is not None:
            moved = path[2] > 0
            start = np.where(moved, path[0] + next_steps(G, C, l2, path, trust_radius), start)
            C = np.where(moved, path[2] * W + l2, C)
        noise = sigma / np.sqrt(C) * xi
        return np.where(W > 0, learning_rate * (start - noise), 0.0)


def gains(leaf, depth, gradient, weight, l2):
    """What each split adds to the sum over nodes of G^2 / (W + l2), on all rows."""
    weight = np.ones(gradient.shape[1]) if weight is None else weight

    def score(level):
        node = leaf & ((1 << level) - 1)
        W = np.bincount(node, weights=weight, minlength=1 << level)
        total = 0.0
        for g in gradient:
            G = np.bincount(node, weights=weight * g, minlength=1 << level)
            total += (G[W > 0] ** 2 / (W[W > 0] + l2)).sum()
        return total

    return np.diff([score(level) for level in range(depth + 1)])


def add_tree(raw, leaf, values, shrink, offset):
    """raw <- offset + shrink (raw - offset) + tree, with the offset's share in the leaf values."""
    steps = values + (1.0 - shrink) * offset
    return shrink * raw + steps[leaf].T


def advance(state, leaf, values, transition, offset):
    """S <- C S + b (x) tree of a state (d, K, N), whose first part is counted from the offset."""
    state = state.copy()
    state[0] -= offset[:, None]
    moved = np.einsum("ij,jkn->ikn", transition.C, state)
    moved += transition.b[:, None, None] * values[leaf].T
    moved[0] += offset[:, None]
    return moved


def weights(C, b):
    """Weight of each tree in the model: e' C_k ... C_{t+1} b_t, C (T, d, d), b (T, d)."""
    result = np.empty(len(b))
    for t in range(len(b)):
        state = b[t]
        for later in C[t + 1 :]:
            state = later @ state
        result[t] = state[0]
    return result


def sum_trees(columns, features, lows, highs, depths, values):
    """The sum of trees (K, N), values (T, 2^D, K)."""
    total = np.zeros((values.shape[2], columns.shape[1]))
    for t, depth in enumerate(depths):
        leaf = leaf_indices(columns, features[t, :depth], lows[t, :depth], highs[t, :depth])
        total += values[t][leaf].T
    return total


def leaf_unit(depths, values):
    """Exponent of the unit that one output's values (T, 2^D) of a stretch of trees are rounded to.

    Any value has at most 46 bits then, and any sum over the trees at most 53.
    """
    largest = [np.abs(of[: 1 << depth]).max() for of, depth in zip(values, depths, strict=True)]
    _, value_exponent = math.frexp(max(largest, default=0.0))
    bound = 0.0
    for value in largest:
        bound += math.ldexp(value, -value_exponent)
    return max(-1074, value_exponent + max(-46, math.frexp(bound)[1] - 52))


def predict_codes(columns, features, lows, highs, depths, values, ends, factors, offset):
    """States of a chain (S, K, N): rounded leaf values add up exactly, a stretch at a time."""
    trees = features, lows, highs, depths, values
    state = np.zeros((len(offset), columns.shape[1]))
    result = [np.empty((0, *state.shape))]
    for (first, last), factor in zip(pairwise([0, *ends]), factors, strict=True):
        stretch = [array[first:last] for array in trees]
        exponents = [leaf_unit(stretch[3], of) for of in np.moveaxis(stretch[4], 2, 0)]
        whole = np.rint(np.ldexp(stretch[4], -np.array(exponents)))
        sums = sum_trees(columns, *stretch[:4], whole)
        state = factor * state + np.ldexp(sums, np.array(exponents)[:, None])
        result.append((offset[:, None] + state)[None])
    return np.concatenate(result)


def predict(x, thresholds, n_thresholds, *trees_and_states):
    """The same at raw feature values x (N, F)."""
    return predict_codes(encode(x, thresholds, n_thresholds), *trees_and_states)
