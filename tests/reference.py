"""Plain NumPy twins of the structure search and of the whole step: the executable specification.

Twins of the other kernels lie beside it, a file a room: reference_noise.py, reference_bins.py, ...
Written straight from the formulas, one candidate and one tree at a time. Where a kernel counts in
integers or adds floats in a stated order, its twin gives the same bits; leaf values, whose sums a
kernel keeps in fixed point, agree to rounding.

Shapes: N rows, F features, K outputs, D depth, T trees, S stride of a row of codes.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reference_bins import to_rows
from reference_draws import Draw, draw_rows, weight_facts
from reference_draws import largest as largest
from reference_leaves import advance, approach, gains, leaf_indices, leaf_values, start_path
from reference_noise import (
    OUTPUTS,
    SCORE,
    rounding_offsets,
    single_normals,
    structure_normals,
    subsample,
    unit,
    words,
)


def power_of_two(x):
    """The largest power of two that is at most x, and at most 2^1000; 0 for 0."""
    if x == math.inf:
        return 2.0**1000
    return 2.0 ** min(1000, math.frexp(x)[1] - 1) if x > 0.0 else 0.0


class Bounds(NamedTuple):
    """What gradients and second derivatives do not exceed."""

    gradient: float
    hessian: float = 0.0


class Scales(NamedTuple):
    """Powers of two that a gradient and a mass, weights in units, are multiplied with."""

    gradient: float
    mass: float
    fine: bool  # 19 bits a row or more: rounding to the nearest is good enough


LARGEST_NORMAL = 6.7638


def quantise_scales(n, sigma, bounds, newton, weighted, facts):
    """As fine as sums over n rows below 2^31 allow, and at most 2^20 steps for one row."""
    n = max(n, 1)
    total = facts.total if weighted else float(n)
    heaviest = facts.largest if weighted else 1.0
    noise = sigma / math.sqrt(facts.unit) * LARGEST_NORMAL
    curvature = bounds.hessian if newton else 1.0
    room = 2.0**31 - 1 - n - 2**12  # what rounding may add
    # sum |w g + noise sqrt(w)| <= W g + noise sqrt(n W)
    sums = total * bounds.gradient + noise * math.sqrt(n * total)
    row = bounds.gradient + noise
    room, most = np.float64([room, 2.0**20])
    with np.errstate(over="ignore", divide="ignore"):
        fine = power_of_two(most / row) if row > 0.0 else 0.0
        gradient = min(fine, power_of_two(room / sums)) if sums > 0.0 else 0.0
        mass = 1.0
        if weighted or newton:
            mass = 0.0
            if curvature > 0.0:
                row = curvature if newton else heaviest
                mass = min(power_of_two(room / (total * curvature)), power_of_two(most / row))
    return Scales(gradient, mass, gradient == fine)


def drawn_scales(draw, n, sigma, bounds, newton, weighted, facts):
    """The same for drawn rows: sqrt((w g)^2 + w s^2 + (w floor)^2) / p = mu, or p = 1."""
    heaviest = facts.largest if weighted else 1.0
    s = sigma / math.sqrt(facts.unit)
    curvature = bounds.hessian if newton else 1.0
    least = math.sqrt(draw.floor * draw.floor + s * s / heaviest)
    noise_share = 1.0 if weighted else (s / least if s > 0.0 else 0.0)
    noise = max(math.sqrt(heaviest) * s, noise_share * draw.mu)
    row = max(heaviest * bounds.gradient, draw.mu) + noise * LARGEST_NORMAL
    mass = curvature * max(heaviest, draw.mu / least)
    room, most = np.float64([2.0**31 - 1 - n - 2**12, 2.0**20])
    with np.errstate(over="ignore", divide="ignore"):
        return Scales(
            power_of_two(min(most / row, room / (n * row))) if row > 0.0 else 0.0,
            power_of_two(min(most / mass, room / (n * mass))) if mass > 0.0 else 0.0,
            False,
        )


def quantise(gradient, hessian, weight, draw, sigma, bounds, seed, step, n_looked_at=None):
    """Words (K, n) of round(scale w (g + sigma / sqrt(w) zeta)) << 32 + round(mass_scale w h).

    h is 1 without `hessian`. Fine scales round a row's gradient and second derivative to the
    nearest integer before its weight multiplies it, as repetition would; coarse ones round a
    gradient up with the probability of the fractional part. A row of positive weight has mass at
    least 1. Returns also what a weighted gradient and a mass are multiplied with. Scales of drawn
    rows leave room for `n_looked_at` of them, or for as many as were drawn.
    """
    n_outputs, n_rows = gradient.shape
    facts = weight_facts(weight, n_rows)
    rows = np.arange(n_rows) if draw is None else draw.rows
    weighted, newton = weight is not None, hessian is not None
    if draw is None or draw.inverse_probability is None:
        scales = quantise_scales(len(rows), sigma, bounds, newton, weighted, facts)
    else:
        n = n_looked_at or max(len(rows), 1)
        scales = drawn_scales(draw, n, sigma, bounds, newton, weighted, facts)
    w = weight[rows] / facts.unit if weighted else np.ones(len(rows))
    counted = (
        w if draw is None or draw.inverse_probability is None else w * draw.inverse_probability
    )
    noise = sigma / math.sqrt(facts.unit)
    packed = np.empty((n_outputs, len(rows)), dtype=np.int64)
    for k in range(n_outputs):
        value = gradient[k, rows].copy()
        if noise > 0.0:
            zeta = structure_normals(seed, step, k, n_rows)[rows]
            value[w > 0] += (noise / np.sqrt(w[w > 0])) * zeta[w > 0]
        if scales.fine:
            q = np.rint(counted * np.rint(value * scales.gradient))
        else:
            uniform = rounding_offsets(seed, step, k, n_rows)[rows]
            q = np.rint(counted * value * scales.gradient + (uniform - 0.5))
        mass = counted * scales.mass
        if newton:
            curvature = np.maximum(0.0, hessian[k, rows]) * scales.mass
            mass = counted * (np.maximum(1.0, np.rint(curvature)) if scales.fine else curvature)
        mass = np.where(w > 0.0, np.maximum(1.0, mass), 0.0)
        packed[k] = (q.astype(np.int64) << 32) + np.rint(mass).astype(np.int64)
    return packed, (scales.gradient / facts.unit, scales.mass / facts.unit)


def draw_outputs(packed, n, seed, step):
    """Numbers of n of the outputs of words (K, rows), rising: first come those of the shortest
    exponential times, whose rates are the sums of squared gradients over up to 1,024 rows.
    """
    n_outputs, n_rows = packed.shape
    n_looked_at = min(n_rows, 1024)
    chosen = np.arange(n_looked_at) * n_rows // n_looked_at
    q = (packed[:, chosen] >> 32).astype(np.float64)
    squares = np.array([math.fsum(row * row) for row in q])
    uniform = unit(words(seed, step, OUTPUTS, 0, 0, n_outputs)[:, 0]) + 2.0**-33
    with np.errstate(divide="ignore"):
        times = -np.log(uniform) / squares
    return np.sort(np.argsort(times, kind="stable")[:n])


class Structure(NamedTuple):
    """Splits of one tree; codes low..high go left (bit 0), others right (bit 1)."""

    features: np.ndarray
    lows: np.ndarray
    highs: np.ndarray


def unpack(packed):
    """Gradient and weight halves of words."""
    return packed >> 32, packed & 0x7FFFFFFF


def candidate_score(q, w, leaf, depth, left, l2):
    """Sum over outputs and leaves of G^2 / (W + l2) on both sides; None if it splits no rows.

    In single precision, in the kernel's order: the two leaves that the last split made of one, if
    both have rows, then four such pairs or a sixteenth of all at a time, output by output.
    """
    n_leaves, half = 1 << depth, (1 << depth) // 2
    pairs = [(j, j + half) for j in range(half)] if depth else [(0,)]
    n_rows = np.bincount(leaf, minlength=n_leaves)
    splits_rows, fractions = False, []
    l2, unit = np.float32(min(l2, 2.0**52)), np.float32(2.0**-31)
    for k in range(len(q)):
        sums = [
            np.bincount(leaf[side], weights=values[k][side], minlength=n_leaves)
            for side in (left, ~left)
            for values in (q, w)
        ]
        g_left, w_left, g_right, w_right = (total.astype(np.float32) for total in sums)
        splits_rows |= bool(((w_left > 0) & (w_right > 0)).any())
        least = np.float32(0.0 if l2 >= 1.0 else 1.0)
        left_weight = (np.maximum(w_left, least) + l2) * unit
        right_weight = (np.maximum(w_right, least) + l2) * unit
        numerator = g_left * g_left * right_weight + g_right * g_right * left_weight
        fractions.append((numerator, left_weight * right_weight))
    score = np.float32(0.0)
    size = max(4, len(pairs) // 16)
    for first in range(0, len(pairs), size):
        part = np.float32(0.0)
        for numerator, denominator in fractions:
            for pair in pairs[first : first + size]:
                match [j for j in pair if n_rows[j]]:
                    case []:
                        continue
                    case [a]:
                        top, bottom = numerator[a], denominator[a]
                    case [a, b]:
                        top = numerator[a] * denominator[b] + numerator[b] * denominator[a]
                        bottom = denominator[a] * denominator[b]
                part += top / bottom * unit
        score += part
    return float(score) if splits_rows else None


NUMBERS, NUMBERS_OR_MISSING, LEVELS, BUNDLE = range(4)


def candidates_of(n_codes, kind):
    """(low, high) of the splits of a feature, in the order in which the first of equals wins."""
    if kind in (LEVELS, BUNDLE):
        return [(b, b) for b in range(int(kind == BUNDLE), n_codes)]
    lows = (0, 1) if kind == NUMBERS_OR_MISSING else (0,)
    return [(low, b) for b in range(n_codes - 1) for low in lows if b >= low]


def search(codes, n_codes, kinds, packed, max_depth, l2, random_strength, seed, step):
    """Greedy structure on words (K, n) of rows with codes (n, at least F), trying all candidates.

    Of equal scores the first wins, by feature, then last code, missing left before right.
    """
    q, w = unpack(packed)
    leaf = np.zeros(packed.shape[1], dtype=np.int64)
    splits = []
    # What random_strength is relative to: the root mean square of a row's gradient.
    scale = math.sqrt(float((q * q).sum()) / float(w.sum())) if w.sum() > 0 else 0.0
    noise_scale = np.float32(scale * random_strength)
    for depth in range(max_depth):
        noise = single_normals(seed, step, SCORE, depth, 512 * len(n_codes))
        best, best_rank = None, -math.inf
        for f in range(len(n_codes)):
            for low, b in candidates_of(n_codes[f], kinds[f]):
                left = (codes[:, f] >= low) & (codes[:, f] <= b)
                score = candidate_score(q, w, leaf, depth, left, l2)
                if score is None:
                    continue
                rank = score
                if random_strength > 0.0:
                    right = kinds[f] < LEVELS and low == 1
                    rank = np.sqrt(np.float32(score)) + noise_scale * noise[512 * f + 2 * b + right]
                if rank > best_rank:
                    best, best_rank = (f, low, b, left), rank
        if best is None:
            break
        f, low, b, left = best
        splits.append((f, low, b))
        leaf = leaf | (~left).astype(np.int64) << depth
    features, lows, highs = zip(*splits, strict=True) if splits else ((), (), ())
    return Structure(
        np.array(features, np.int32),
        np.array(lows, np.uint8),
        np.array(highs, np.uint8),
    )


@dataclass(frozen=True)
class Growth:
    """Settings of a structure search."""

    max_depth: int
    l2: float = 0.0
    structure_rows: int | None = None
    random_strength: float = 0.0
    n_copies: int = 1
    structure_outputs: int | None = None


def grow(columns, n_codes, kinds, gradient, hessian, weight, bounds, sigma, growth, *where):
    """Structure of noisy gradients (K, N), with `hessian` by Newton scores, on a draw of the rows
    of one copy and of the outputs; `where` is seed and step.
    """
    n_rows = gradient.shape[1] // growth.n_copies
    begin = where[1] % growth.n_copies * n_rows
    n = n_rows if growth.structure_rows is None else min(n_rows, growth.structure_rows)
    if n == 0:
        return Structure(np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint8))
    draw = Draw(np.arange(begin, begin + n_rows), None, 1.0, 1.0, 1.0)
    if n < n_rows:
        draw = draw_rows(gradient, weight, sigma, begin, begin + n_rows, n, *where)
    share = draw.share / growth.n_copies
    looked_at_all = n < n_rows and share == 1.0
    n_looked_at = n_rows if looked_at_all else None
    packed, (_, mass_scale) = quantise(
        gradient, hessian, weight, draw, sigma, bounds, *where, n_looked_at
    )
    if growth.structure_outputs is not None and growth.structure_outputs < len(packed):
        words = packed
        if looked_at_all:
            words = np.zeros_like(gradient, dtype=np.int64)
            words[:, draw.rows] = packed
        packed = packed[draw_outputs(words, growth.structure_outputs, *where)]
    return search(
        to_rows(columns)[draw.rows],
        n_codes,
        kinds,
        packed,
        growth.max_depth,
        growth.l2 * mass_scale * share,
        growth.random_strength,
        *where,
    )


class Step(NamedTuple):
    """What one step of a chain gives."""

    structure: Structure
    values: np.ndarray  # (2^depth, K)
    gains: np.ndarray  # (depth,)
    state: np.ndarray  # (d, K, N)


class LeafRule(NamedTuple):
    """How leaf values follow from derivatives: `newton` or not, and how many such steps."""

    l2: float
    newton: bool = False
    steps: int = 1
    trust_radius: float = math.inf


def take_step(problem, state, slopes, bounds, move, growth, rule, offset, seed, step):
    """One step of the chain from a state (d, K, N).

    `slopes` of raw scores (K, N) are the loss's derivatives there, and `bounds` are what their
    absolute values at the start do not exceed. `problem` has code_columns, n_codes, kinds and
    weight; `move` learning_rate, noise, structure_noise, transition and subsample.
    """
    columns, weight = problem.code_columns, problem.target.kernel_weight
    gradient, hessian = slopes(state[0])
    hessian = hessian if rule.newton else None
    if move.subsample < 1.0:
        gradient = subsample(gradient, move.subsample, seed, step)
    structure = grow(
        columns,
        problem.n_codes,
        problem.kinds,
        gradient,
        hessian,
        weight,
        Bounds(bounds.gradient / move.subsample, bounds.hessian),
        move.structure_noise,
        growth,
        seed,
        step,
    )
    leaf = leaf_indices(columns, *structure)
    n_leaves, path, last = 1 << len(structure.features), None, (gradient, hessian)
    for _ in range(rule.steps - 1):
        path = start_path(n_leaves, len(gradient)) if path is None else path
        path = approach(leaf, n_leaves, *last, weight, rule.l2, path, rule.trust_radius)
        last = slopes(state[0] + path[0][leaf].T)
    values = leaf_values(
        leaf,
        n_leaves,
        *last,
        weight,
        move.learning_rate,
        move.noise,
        rule.l2,
        seed,
        step,
        path,
        rule.trust_radius,
    )
    return Step(
        structure,
        values,
        gains(leaf, len(structure.features), gradient, weight, rule.l2),
        advance(state, leaf, values, move.transition, offset),
    )
