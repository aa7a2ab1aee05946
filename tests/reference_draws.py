"""Rows of a structure search, drawn in NumPy."""

import math
from typing import NamedTuple

import numpy as np

from reference_noise import (
    ROWS,
    stretch_points,
    unit,
    words,
)


def largest(values):
    """Largest absolute value; infinity if any value is not finite."""
    if not np.isfinite(values).all():
        return math.inf
    return float(np.abs(values).max(initial=0.0))


class WeightFacts(NamedTuple):
    """The weight of an ordinary row; in that unit the largest weight and the sum of weights; the
    sum of squared weights over the sum of weights.
    """

    unit: float
    largest: float
    total: float
    typical: float


def weight_facts(weight, n_rows, n_copies=1):
    """Facts of weights (N,) or of none. The unit is 1 while a row has 1 to 50 times it on average,
    in all its copies; below and above, the mean over that bound.
    """
    if weight is None:
        return WeightFacts(1.0, 1.0, float(n_rows), 1.0)
    heaviest = weight.max(initial=0.0) or 1.0
    mean = (weight / heaviest).mean() * heaviest * n_copies if len(weight) else 1.0
    unit = mean / np.clip(mean, 1.0, 50.0) / n_copies
    largest = weight.max(initial=0.0)
    share = weight / heaviest
    typical = (share**2).sum() / share.sum() * heaviest if largest else 1.0
    return WeightFacts(unit, largest / unit, (weight / unit).sum(), typical)


class Draw(NamedTuple):
    """Rows of a structure search and how many rows each stands for."""

    rows: np.ndarray
    inverse_probability: np.ndarray
    mu: float
    floor: float
    share: float  # of the rows that were looked at


def draw_rows(gradient, weight, sigma, begin, end, n, seed, step):
    """About n of the rows begin .. end, row i with chance min(1, a_i / mu).

    a = w sqrt(|g|^2 + K sigma^2 / w + floor^2), weights in units; floor is the mean |g| and mu
    makes the chances add up to n, both on evenly spaced pairs of up to 1024 candidates. Of many
    rows only 2 n are candidates, one from each equal stretch. Where all rows are candidates each
    has a word, else two.
    """
    unit_weight = weight_facts(weight, gradient.shape[1]).unit
    n_rows = end - begin
    n_candidates = min(n_rows, 2 * n)
    if n_candidates == gradient.shape[1]:
        coin = unit(words(seed, step, ROWS, 0, 0, (n_rows + 3) // 4).reshape(-1)[:n_rows])
        candidates = np.arange(n_rows)
    else:
        pairs = words(seed, step, ROWS, 0, 0, (n_candidates + 1) // 2).reshape(-1, 2)
        point, coin = pairs[:n_candidates, 0], unit(pairs[:n_candidates, 1])
        candidates = begin + stretch_points(n_rows, point).astype(np.int64)
    squares = np.zeros(n_candidates)
    for k in range(len(gradient)):
        squares += gradient[k, candidates] ** 2
    w = np.ones(n_candidates) if weight is None else weight[candidates] / unit_weight
    noise = sigma * sigma / unit_weight * len(gradient)
    n_pilot = min(n_candidates, 1024)
    pilot = np.arange(n_pilot)
    pilot = pilot // 2 * 2 * (n_candidates // n_pilot) + pilot % 2
    total, heavy = sum_of_eight(w[pilot] * np.sqrt(squares[pilot])), sum_of_eight(w[pilot])
    floor = total / heavy if heavy > 0.0 else 0.0
    if floor == 0.0 and noise == 0.0:
        floor = 1.0
    importance = np.sqrt(w * (w * (squares + floor * floor) + noise))
    mu = find_mu(importance[pilot], n * n_pilot / n_candidates)
    drawn = coin < np.minimum(1.0, importance * (1.0 / mu))
    with np.errstate(divide="ignore"):
        inverse_probability = np.maximum(1.0, mu / importance)
    rows = candidates[drawn].astype(np.uint32)
    return Draw(rows, inverse_probability[drawn], mu, floor, n_candidates / n_rows)


def sum_of_eight(values):
    """Every eighth value is added one after the other, then the eight sums are: as the kernel."""
    lanes = np.zeros(8)
    for row in np.pad(values, (0, -len(values) % 8)).reshape(-1, 8):
        lanes += row
    total = 0.0
    for lane in lanes.tolist():
        total += lane
    return total


def find_mu(importance, wanted):
    """The mu for which min(1, a / mu) add up to `wanted`, after at most four rounds."""
    mu = math.inf
    for _ in range(4):
        sure = importance >= mu
        rest = sum_of_eight(np.where(sure, 0.0, importance))
        if not rest > 0.0 or not wanted > sure.sum():
            break
        mu = rest / (wanted - sure.sum())
    return mu if math.isfinite(mu) else np.finfo(np.float64).tiny
