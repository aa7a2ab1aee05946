"""Plain NumPy twins of every kernel and of the whole step: the executable specification.

Written straight from the formulas, one candidate and one tree at a time. Where a kernel counts in
integers or adds floats in a stated order, its twin gives the same bits; leaf values, whose sums a
kernel keeps in fixed point, agree to rounding.

Shapes: N rows, F features, K outputs, D depth, T trees, S stride of a row of codes.
"""

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sglb import _core

STRUCTURE, LEAF, SUBSAMPLE, ROWS, SCORE, PERMUTATION, CHAIN, TEST, THRESHOLDS = range(9)

# ---------------------------------------------------------------------------------------- noise


def philox(counter, key, bits=32):
    """Philox4x32-10 (Salmon et al., 2011): four words from a counter of four and a key of two.

    With bits=64 it is Philox4x64-10, the generator NumPy has.
    """
    multipliers, weyl = {
        32: ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
        64: (
            (0xD2E7470EE14C6C93, 0xCA5A826395121157),
            (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
        ),
    }[bits]
    mask = (1 << bits) - 1
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = multipliers[0] * c0, multipliers[1] * c2
        c0, c1, c2, c3 = b >> bits ^ c1 ^ k0, b & mask, a >> bits ^ c3 ^ k1, a & mask
        k0, k1 = k0 + weyl[0] & mask, k1 + weyl[1] & mask
    return c0, c1, c2, c3


def words(seed, step, role, output, first, n):
    """(n, 4) uint32: words of the counters first, first + 1, ... of one stream."""
    low = 0xFFFFFFFF
    key = seed & low, seed >> 32
    out = np.empty((n, 4), dtype=np.uint32)
    for i in range(n):
        index = first + i
        out[i] = philox((index & low, index >> 32, step, role | output << 8), key)
    return out


def unit(word):
    """32 bits to [0, 1)."""
    return word.astype(np.float64) / 2.0**32


def normals(seed, step, role, output, first, n):
    """Box-Muller: sqrt(-2 ln u) times cos(2 pi v) or, for odd numbers, sin(2 pi v); u never 0.

    Numbers 2 i and 2 i + 1 share the words of counter i.
    """
    index = np.arange(first, first + n, dtype=np.uint64)
    first_pair = first // 2
    w = words(seed, step, role, output, first_pair, (first + n + 1) // 2 - first_pair)
    w = w[(index // 2 - np.uint64(first_pair)).astype(np.intp)]
    radius = np.sqrt(-2.0 * np.log(unit(w[:, 0]) + 2.0**-33))
    angle = 2 * np.pi * unit(w[:, 1])
    return radius * np.where(index % 2 == 0, np.cos(angle), np.sin(angle))


def rounding_offsets(seed, step, output, n):
    """Uniform numbers that rows 0 .. n-1 are rounded by: word 2 or 3 of their normal's counter."""
    w = words(seed, step, STRUCTURE, output, 0, (n + 1) // 2)
    return unit(w[:, 2:].reshape(-1)[:n])


def core_normals(seed, step, role, output, n):
    """The kernel's own normals 0 .. n-1, for twins whose result hangs on the last bit."""
    out = np.empty(n)
    _core.normals(seed, step, role, output, 0, out, 1)
    return out


def stretch_points(n_rows, points):
    """The row at a point, a word, of each of len(points) equal stretches of 0..n_rows, in 32.32
    fixed point.
    """
    length = (n_rows << 32) // len(points) if len(points) else 0
    whole, part = length >> 32, length & 0xFFFFFFFF
    rows = [
        (k * length + whole * u + (part * u >> 32)) >> 32 for k, u in enumerate(points.tolist())
    ]
    return np.array(rows, dtype=np.uint32)


def subsample(gradient, rate, seed, step):
    """gradient (K, N): each row kept with probability `rate` and divided by it."""
    kept = unit(words(seed, step, SUBSAMPLE, 0, 0, gradient.shape[1])[:, 0]) < rate
    return gradient * np.where(kept, 1.0 / rate, 0.0)


# ----------------------------------------------------------------------------------------- bins


def logarithm(x):
    """ln x by 2 artanh((m - 1) / (m + 1)) + e ln 2, every operation as the core has it.

    Gains of cuts can tie, then the last bit of a logarithm decides.
    """
    m, e = math.frexp(x)  # m in [1/2, 1)
    if m < math.sqrt(0.5):
        m, e = 2 * m, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 21.0
    for odd in range(19, 1, -2):
        p = p * z + 1.0 / odd
    high, low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    return e * high + (e * low + 2.0 * s * z * p) + 2.0 * s


def best_cut(counts, begin, end):
    """Where to cut the distinct values begin..end: next to the median, and the gain of it."""
    below = np.concatenate([[0], np.cumsum(counts[begin:end])]).tolist()
    total = below[-1]
    best = (-math.inf, None)
    if end - begin < 2:
        return best
    median = next((i for i in range(1, end - begin) if below[i] >= total // 2), end - begin)
    for i in (median - 1, median):
        if 0 < i < end - begin:
            gain = logarithm(below[i]) + logarithm(total - below[i]) - logarithm(total)
            if gain > best[0]:
                best = (gain, begin + i)
    return best


def column_thresholds(values, max_bins):
    """Thresholds of one column: greedy cuts that gain most log count, midway between values."""
    values = np.asarray(values, dtype=np.float64)
    distinct, counts = np.unique(values[~np.isnan(values)] + 0.0, return_counts=True)
    edges = [0, len(distinct)]
    if len(distinct) <= max_bins:
        edges = list(range(len(distinct) + 1))
    cut = cache(lambda begin, end: best_cut(counts, begin, end))
    while len(edges) - 1 < max_bins and len(distinct) > max_bins:
        # max takes the first of equals: the leftmost bin.
        _, place = max((cut(*bin) for bin in pairwise(edges)), key=lambda found: found[0])
        edges = sorted([*edges, place])
    return [between(distinct[i - 1], distinct[i]) for i in edges[1:-1]]


def between(low, high):
    """A number t with low <= t < high, halfway where that can be represented."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


def find_thresholds(x, max_bins, sample_rows, seed):
    """thresholds (F, max_bins - 1) padded with infinity, n_thresholds (F,)."""
    n_rows, n_features = x.shape
    rows = np.arange(n_rows)
    if sample_rows < n_rows:
        points = words(seed, 0, THRESHOLDS, 0, 0, sample_rows)[:, 0]
        rows = stretch_points(n_rows, points)
    thresholds = np.full((n_features, max_bins - 1), np.inf)
    n_thresholds = np.zeros(n_features, dtype=np.int32)
    for f in range(n_features):
        found = column_thresholds(x[rows, f], max_bins)
        thresholds[f, : len(found)] = found
        n_thresholds[f] = len(found)
    return thresholds, n_thresholds


def encode(x, thresholds, n_thresholds):
    """Codes (F, N): 0 for a missing value, else 1 + number of thresholds below it."""
    columns = np.empty(x.shape[::-1], dtype=np.uint8)
    for f, n in enumerate(n_thresholds):
        values = x[:, f].astype(np.float64)
        below = (thresholds[f, :n] < values[:, None]).sum(axis=1)
        columns[f] = np.where(np.isnan(values), 0, 1 + below)
    return columns


def to_rows(columns):
    """Codes (F, N) to (N, S), a multiple of eight features padded with 0."""
    n_features, n_rows = columns.shape
    rows = np.zeros((n_rows, -(-n_features // 8) * 8), dtype=np.uint8)
    rows[:, :n_features] = columns.T
    return rows


# ----------------------------------------------------------------------------------- categories


def permutation(seed, copy, n):
    """Fisher-Yates from the end: row i changes places with one of 0..i."""
    order = list(range(n))
    draws = words(seed, copy, PERMUTATION, 0, 0, n).tolist()
    for i in range(n - 1, 0, -1):
        place = (draws[i][1] << 32 | draws[i][0]) * (i + 1) >> 64
        order[i], order[place] = order[place], order[i]
    return np.array(order, dtype=np.uint32)


def level_sums(levels, n_levels, targets, weight):
    """Weighted sums (K, L) of targets and (L,) of weights by level, column after column."""
    weight = np.ones(levels.shape[1]) if weight is None else weight
    sums, counts = [], []
    for column, n in zip(levels, n_levels, strict=True):
        sums.append([np.bincount(column, weights=weight * one, minlength=n) for one in targets])
        counts.append(np.bincount(column, weights=weight, minlength=n))
    return np.concatenate(sums, axis=1), np.concatenate(counts)


def ordered_statistics(levels, targets, weight, order, means, unit):
    """(C * K, N): mean of each target over the earlier rows of a level, and `unit` of the mean."""
    weight = np.ones(levels.shape[1]) if weight is None else weight
    out = np.empty((len(levels) * len(targets), levels.shape[1]))
    for c, column in enumerate(levels):
        for k, target in enumerate(targets):
            sums, counts = {}, {}
            for row in order.tolist():
                level = int(column[row])
                s, n = sums.get(level, 0.0), counts.get(level, 0.0)
                out[c * len(targets) + k, row] = (s + unit * means[k]) / (n + unit)
                sums[level] = s + weight[row] * target[row]
                counts[level] = n + weight[row]
    return out


def combine(levels, members):
    """Numbers of the joint levels of some columns, as they first appear."""
    number = {}
    joint = levels[[member for member in members if member >= 0]].T.tolist()
    return np.array([number.setdefault(tuple(row), len(number)) for row in joint], dtype=np.int32)


def combination_gain(levels, members, targets, weight, ridge):
    """Share of the squares of targets that the other rows of a joint level explain, and the
    standard deviation of that share if signs are coins: sum over pairs of g_i^2 g_j^2 / d^2.
    """
    weight = np.ones(levels.shape[1]) if weight is None else weight
    number = combine(levels, members)
    gain, variance = 0.0, 0.0
    for level in range(number.max(initial=-1) + 1):
        rows = number == level
        w = weight[rows]
        divisor = w.sum() - (w**2).sum() / w.sum() + ridge
        for g in targets[:, rows]:
            pairs = np.outer(w * g, w * g)
            np.fill_diagonal(pairs, 0.0)
            gain += pairs.sum() / divisor
            variance += 2 * (pairs**2).sum() / divisor**2
    total = (weight * targets**2).sum()
    return gain / total, math.sqrt(variance) / total


# --------------------------------------------------------------------------------------- search


def largest(values):
    """Largest absolute value; infinity if any value is not finite."""
    if not np.isfinite(values).all():
        return math.inf
    return float(np.abs(values).max(initial=0.0))


class WeightFacts(NamedTuple):
    """The weight of an ordinary row; in that unit the largest weight and the sum of weights."""

    unit: float
    largest: float
    total: float


def weight_facts(weight, n_rows):
    """Facts of weights (N,) or of none. The unit is 1 for multiplicities, else the mean."""
    if weight is None:
        return WeightFacts(1.0, 1.0, float(n_rows))
    heaviest = weight.max(initial=0.0)
    unit = 1.0
    if heaviest >= 2**20 or (weight != np.round(weight)).any():
        unit = (weight / heaviest).mean() * heaviest
    return WeightFacts(unit, heaviest / unit, (weight / unit).sum())


def power_of_two(x):
    """The largest power of two that is at most x, and at most 2^1000; 0 for 0."""
    if x == math.inf:
        return 2.0**1000
    return 2.0 ** min(1000, math.frexp(x)[1] - 1) if x > 0.0 else 0.0


class Draw(NamedTuple):
    """Rows of a structure search and how many rows each stands for."""

    rows: np.ndarray
    lift: np.ndarray
    mu: float
    floor: float
    share: float  # of the rows that were looked at


def draw_rows(gradient, weight, sigma, begin, end, n, seed, step):
    """About n of the rows begin .. end, row i with chance min(1, a_i / mu).

    a = w sqrt(|g|^2 + K sigma^2 / w + floor^2), weights in units; floor is the mean |g| and mu
    makes the chances add up to n, both on evenly spaced pairs of up to 1024 candidates. Of many
    rows only 2 n are candidates, one from each equal stretch.
    """
    unit_weight = weight_facts(weight, gradient.shape[1]).unit
    n_rows = end - begin
    n_candidates = min(n_rows, 2 * n)
    pairs = words(seed, step, ROWS, 0, 0, (n_candidates + 1) // 2).reshape(-1, 2)[:n_candidates]
    point, coin = pairs[:, 0], unit(pairs[:, 1])
    candidates = begin + stretch_points(n_rows, point).astype(np.int64)
    squares = np.zeros(n_candidates)
    for k in range(len(gradient)):
        squares += gradient[k, candidates] ** 2
    w = np.ones(n_candidates) if weight is None else weight[candidates] / unit_weight
    noise = sigma * sigma / unit_weight * len(gradient)
    n_pilot = min(n_candidates, 1024)
    pilot = np.arange(n_pilot)
    pilot = pilot // 2 * 2 * (n_candidates // n_pilot) + pilot % 2
    total, heavy = 0.0, 0.0  # one after the other, as the kernel adds
    for i in pilot.tolist():
        total += w[i] * math.sqrt(squares[i])
        heavy += w[i]
    floor = total / heavy if heavy > 0.0 else 0.0
    if floor == 0.0 and noise == 0.0:
        floor = 1.0
    reach = np.sqrt(w * (w * (squares + floor * floor) + noise))
    mu = find_mu(reach[pilot].tolist(), n * n_pilot / n_candidates)
    chance = np.minimum(1.0, reach / mu)
    drawn = coin < chance
    with np.errstate(divide="ignore"):
        lift = 1.0 / chance
    rows = candidates[drawn].astype(np.uint32)
    return Draw(rows, lift[drawn], mu, floor, n_candidates / n_rows)


def find_mu(reach, wanted):
    """The mu for which min(1, a / mu) add up to `wanted`, after at most four rounds."""
    mu = 0.0
    for attempt in range(4):
        sure = [attempt > 0 and a >= mu for a in reach]
        rest = 0.0
        for a, is_sure in zip(reach, sure, strict=True):
            rest += 0.0 if is_sure else a
        if not rest > 0.0 or not wanted > sum(sure):
            break
        mu = rest / (wanted - sum(sure))
    return mu if mu > 0.0 else 1.0


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
    bend = bounds.hessian if newton else 1.0
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
            if bend > 0.0:
                row = bend if newton else heaviest
                mass = min(power_of_two(room / (total * bend)), power_of_two(most / row))
    return Scales(gradient, mass, gradient == fine)


def drawn_scales(draw, sigma, bounds, newton, weighted, facts):
    """The same for drawn rows: lift * sqrt((w g)^2 + w s^2 + (w floor)^2) = mu, or lift = 1."""
    n = max(len(draw.rows), 1)
    heaviest = facts.largest if weighted else 1.0
    s = sigma / math.sqrt(facts.unit)
    bend = bounds.hessian if newton else 1.0
    least = math.sqrt(draw.floor * draw.floor + s * s / heaviest)
    noise_share = 1.0 if weighted else (s / least if s > 0.0 else 0.0)
    noise = max(math.sqrt(heaviest) * s, noise_share * draw.mu)
    row = max(heaviest * bounds.gradient, draw.mu) + noise * LARGEST_NORMAL
    mass = bend * max(heaviest, draw.mu / least)
    room, most = np.float64([2.0**31 - 1 - n - 2**12, 2.0**20])
    with np.errstate(over="ignore", divide="ignore"):
        return Scales(
            power_of_two(min(most / row, room / (n * row))) if row > 0.0 else 0.0,
            power_of_two(min(most / mass, room / (n * mass))) if mass > 0.0 else 0.0,
            False,
        )


def quantise(gradient, hessian, weight, draw, sigma, bounds, seed, step):
    """Words (K, n) of round(scale w (g + sigma / sqrt(w) zeta)) << 32 + round(mass_scale w h).

    h is 1 without `hessian`. Fine scales round a row's gradient and second derivative to the
    nearest integer before its weight multiplies it, as repetition would; coarse ones round a
    gradient up with the probability of the fractional part. A row of positive weight has mass at
    least 1. Returns also what a weighted gradient and a mass are multiplied with.
    """
    n_outputs, n_rows = gradient.shape
    facts = weight_facts(weight, n_rows)
    rows = np.arange(n_rows) if draw is None else draw.rows
    weighted, newton = weight is not None, hessian is not None
    if draw is None or draw.lift is None:
        scales = quantise_scales(len(rows), sigma, bounds, newton, weighted, facts)
    else:
        scales = drawn_scales(draw, sigma, bounds, newton, weighted, facts)
    w = weight[rows] / facts.unit if weighted else np.ones(len(rows))
    lifted = w if draw is None or draw.lift is None else w * draw.lift
    noise = sigma / math.sqrt(facts.unit)
    packed = np.empty((n_outputs, len(rows)), dtype=np.int64)
    for k in range(n_outputs):
        value = gradient[k, rows].copy()
        if noise > 0.0:
            zeta = core_normals(seed, step, STRUCTURE, k, n_rows)[rows]
            value[w > 0] += (noise / np.sqrt(w[w > 0])) * zeta[w > 0]
        if scales.fine:
            q = np.rint(lifted * np.rint(value * scales.gradient))
        else:
            uniform = rounding_offsets(seed, step, k, n_rows)[rows]
            q = np.rint(lifted * value * scales.gradient + (uniform - 0.5))
        mass = lifted * scales.mass
        if newton:
            bend = np.maximum(0.0, hessian[k, rows]) * scales.mass
            mass = lifted * (np.maximum(1.0, np.rint(bend)) if scales.fine else bend)
        mass = np.where(w > 0.0, np.maximum(1.0, mass), 0.0)
        packed[k] = (q.astype(np.int64) << 32) + np.rint(mass).astype(np.int64)
    return packed, (scales.gradient / facts.unit, scales.mass / facts.unit)


class Structure(NamedTuple):
    """Splits of one tree; codes low..high go left (bit 0), others right (bit 1)."""

    features: np.ndarray
    lows: np.ndarray
    highs: np.ndarray


def unpack(packed):
    """Gradient and weight halves of words."""
    return packed >> 32, packed & 0x7FFFFFFF


def candidate_score(q, w, leaf, depth, left, l2):
    """Sum over outputs and leaves of G^2 / (W + l2) on both sides; None if nothing is parted.

    In single precision, in the kernel's order: pairs of leaves that the last split made, four
    pairs or a sixteenth of all at a time, output by output.
    """
    n_leaves, half = 1 << depth, (1 << depth) // 2
    pairs = [(j, j + half) for j in range(half)] if depth else [(0,)]
    parts, shares = False, []
    l2 = np.float32(min(l2, 2.0**60))
    for k in range(len(q)):
        sums = [
            np.bincount(leaf[side], weights=values[k][side], minlength=n_leaves)
            for side in (left, ~left)
            for values in (q, w)
        ]
        g_left, w_left, g_right, w_right = (total.astype(np.float32) for total in sums)
        parts |= bool(((w_left > 0) & (w_right > 0)).any())
        divisor_left = np.maximum(w_left + l2, np.float32(1e-15))
        divisor_right = np.maximum(w_right + l2, np.float32(1e-15))
        shares.append(
            (g_left * g_left * divisor_right + g_right * g_right * divisor_left)
            / (divisor_left * divisor_right)
        )
    score = np.float32(0.0)
    size = max(4, len(pairs) // 16)
    for first in range(0, len(pairs), size):
        part = np.float32(0.0)
        for share in shares:
            for pair in pairs[first : first + size]:
                for j in pair:
                    part += share[j]
        score += part
    return float(score) if parts else None


NUMBERS, NUMBERS_OR_MISSING, LEVELS = range(3)


def candidates_of(n_codes, kind):
    """(low, high) of the splits of a feature, in the order in which the first of equals wins."""
    if kind == LEVELS:
        return [(b, b) for b in range(n_codes)]
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
    noise_scale = scale * random_strength
    for depth in range(max_depth):
        noise = core_normals(seed, step, SCORE, depth, 512 * len(n_codes))
        best, best_rank = None, -math.inf
        for f in range(len(n_codes)):
            for low, b in candidates_of(n_codes[f], kinds[f]):
                left = (codes[:, f] >= low) & (codes[:, f] <= b)
                score = candidate_score(q, w, leaf, depth, left, l2)
                if score is None:
                    continue
                rank = score
                if random_strength > 0.0:
                    right = kinds[f] != LEVELS and low == 1
                    rank = math.sqrt(score) + noise_scale * noise[512 * f + 2 * b + right]
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


def grow(columns, n_codes, kinds, gradient, hessian, weight, bounds, sigma, growth, *where):
    """Structure of noisy gradients (K, N), with `hessian` by Newton scores, on a draw of the rows
    of one copy; `where` is seed and step.
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
    packed, (_, mass_scale) = quantise(gradient, hessian, weight, draw, sigma, bounds, *where)
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


# --------------------------------------------------------------------------------------- leaves


def leaf_indices(columns, features, lows, highs):
    """Leaf of each row: bit d is set where the code of split d lies outside low..high."""
    leaf = np.zeros(columns.shape[1], dtype=np.uint16)
    for d, (f, low, high) in enumerate(zip(features, lows, highs, strict=True)):
        outside = (columns[f] < low) | (columns[f] > high)
        leaf |= (outside.astype(np.uint16) << d).astype(np.uint16)
    return leaf


def leaf_values(leaf, n_leaves, gradient, hessian, weight, learning_rate, sigma, l2, seed, step):
    """theta_j = -eps (G_j + sigma sqrt(C_j) xi_j) / C_j, (n_leaves, K); 0 without weight."""
    n_outputs, n_rows = gradient.shape
    weight = np.ones(n_rows) if weight is None else weight
    values = np.zeros((n_leaves, n_outputs))
    W = np.bincount(leaf, weights=weight, minlength=n_leaves)
    for k in range(n_outputs):
        xi = core_normals(seed, step, LEAF, k, n_leaves)
        G = np.bincount(leaf, weights=weight * gradient[k], minlength=n_leaves)
        C = W + l2
        if hessian is not None:
            H = np.bincount(leaf, weights=weight * hessian[k], minlength=n_leaves)
            mean = H.sum() / W.sum() if W.sum() > 0 else 0.0
            C = np.maximum(H, 1e-3 * mean * W) + l2  # a saturated leaf must not jump
        for j in range(n_leaves):
            if W[j] > 0:
                c = C[j] if C[j] > 0 else W[j]  # no curvature anywhere: a gradient step
                values[j, k] = -learning_rate * (G[j] + sigma * math.sqrt(c) * xi[j]) / c
    return values


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


# ------------------------------------------------------------------------------------- ensemble


def weights(shrinks):
    """Weight of each tree: the product of the shrink factors of all later steps."""
    return np.array([math.prod(shrinks[t + 1 :]) for t in range(len(shrinks))])


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
    found = [np.empty((0, *state.shape))]
    for (first, last), factor in zip(pairwise([0, *ends]), factors, strict=True):
        stretch = [array[first:last] for array in trees]
        exponents = [leaf_unit(stretch[3], of) for of in np.moveaxis(stretch[4], 2, 0)]
        whole = np.rint(np.ldexp(stretch[4], -np.array(exponents)))
        sums = sum_trees(columns, *stretch[:4], whole)
        state = factor * state + np.ldexp(sums, np.array(exponents)[:, None])
        found.append((offset[:, None] + state)[None])
    return np.concatenate(found)


def predict(x, thresholds, n_thresholds, *trees_and_states):
    """The same at raw feature values x (N, F)."""
    return predict_codes(encode(x, thresholds, n_thresholds), *trees_and_states)


# ----------------------------------------------------------------------------------------- step


class Step(NamedTuple):
    """What one step of a chain gives."""

    structure: Structure
    values: np.ndarray  # (2^depth, K)
    gains: np.ndarray  # (depth,)
    raw: np.ndarray  # (K, N)


def take_step(problem, raw, gradient, hessian, bounds, move, growth, leaf_l2, offset, seed, step):
    """One step of the chain from raw (K, N), given the loss's derivatives there.

    `bounds` are what absolute derivatives do not exceed. `problem` has code_columns, n_codes, kinds
    and weight; `move` learning_rate, noise, shrink and subsample.
    """
    bounds = Bounds(bounds.gradient / move.subsample, bounds.hessian)
    if move.subsample < 1.0:
        gradient = subsample(gradient, move.subsample, seed, step)
    columns, weight = problem.code_columns, problem.weight
    structure = grow(
        columns,
        problem.n_codes,
        problem.kinds,
        gradient,
        hessian,
        weight,
        bounds,
        move.noise,
        growth,
        seed,
        step,
    )
    leaf = leaf_indices(columns, *structure)
    values = leaf_values(
        leaf,
        1 << len(structure.features),
        gradient,
        hessian,
        weight,
        move.learning_rate,
        move.noise,
        leaf_l2,
        seed,
        step,
    )
    return Step(
        structure,
        values,
        gains(leaf, len(structure.features), gradient, weight, leaf_l2),
        add_tree(raw, leaf, values, move.shrink, offset),
    )
