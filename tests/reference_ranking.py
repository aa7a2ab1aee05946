"""Plain NumPy twins of the ranking kernels, and ranking metrics straight from their definitions.

One query at a time; `ranked` are gains in ranked order. Swap effects are differences of the metric
itself, document by document.
"""

import itertools
from typing import NamedTuple

import numpy as np

from reference_noise import core_normals, unit, words
from sglb import _core

FLAT = ("dcg", "ndcg")
BINARY = ("precision", "recall", "map", "mrr")
CASCADES = ("err", "pfound")
METRICS = FLAT + BINARY + CASCADES


class Metric(NamedTuple):
    """A metric of gains in ranked order, of which the first `cutoff` count."""

    name: str
    cutoff: int
    decay: float = 0.85

    def __call__(self, ranked):
        """Value; 0 where the metric has none."""
        ranked = np.asarray(ranked, dtype=float)
        return METRIC_FUNCTIONS[self.name](ranked, self.cutoff, self.decay)


class Smoothing(NamedTuple):
    sigma: float = 1.0
    mu: float = 0.0
    n_samples: int = 1


class Shuffles(NamedTuple):
    noise: str = "logistic"
    power: float = 1.0
    n_orders: int = 1


class Documents(NamedTuple):
    """Documents of a query: relevance, gain, raw score z, and row numbers that noise goes by."""

    relevance: np.ndarray
    gain: np.ndarray
    z: np.ndarray
    number: np.ndarray

    @property
    def end(self):
        return int(max(self.number, default=-1)) + 1


def dcg(ranked, k, decay):
    places = np.arange(len(ranked[:k]))
    return (ranked[:k] / np.log2(places + 2)).sum()


def ndcg(ranked, k, decay):
    ideal = dcg(np.sort(ranked)[::-1], k, decay)
    return dcg(ranked, k, decay) / ideal if ideal > 0 else 0.0


def precision(ranked, k, decay):
    return ranked[:k].sum() / k


def recall(ranked, k, decay):
    return ranked[:k].sum() / ranked.sum() if ranked.any() else 0.0


def average_precision(ranked, k, decay):
    n_best = min(k, int(ranked.sum()))
    total = sum(ranked[: p + 1].mean() for p in range(min(k, len(ranked))) if ranked[p])
    return total / n_best if n_best else 0.0


def reciprocal_rank(ranked, k, decay):
    result = np.flatnonzero(ranked[:k])
    return 1.0 / (result[0] + 1) if len(result) else 0.0


def expected_reciprocal_rank(ranked, k, decay):
    """The reader goes down and stops at a document with probability gain; mean of 1 / place."""
    value, reading = 0.0, 1.0
    for p, stop in enumerate(ranked[:k]):
        value += reading * stop / (p + 1)
        reading *= 1 - stop
    return value


def pfound(ranked, k, decay):
    """Probability to stop, where the reader goes on with probability (1 - gain) decay."""
    value, reading = 0.0, 1.0
    for stop in ranked[:k]:
        value += reading * stop
        reading *= (1 - stop) * decay
    return value


METRIC_FUNCTIONS = {
    "dcg": dcg,
    "ndcg": ndcg,
    "precision": precision,
    "recall": recall,
    "map": average_precision,
    "mrr": reciprocal_rank,
    "err": expected_reciprocal_rank,
    "pfound": pfound,
}


def swap_effects(metric, ranked):
    """(n, n - 1): the metric with document i just above minus just below document q of the others,
    the others keeping their order.
    """
    n = len(ranked)
    effects = np.zeros((n, max(n - 1, 0)))
    for i in range(n):
        others = np.delete(ranked, i)
        effects[i] = -np.diff([metric(np.insert(others, q, ranked[i])) for q in range(n)])
    return effects


def density(x, mean=0.0, width=1.0):
    return np.exp(-0.5 * ((x - mean) / width) ** 2) / (width * np.sqrt(2 * np.pi))


def boundary_terms(metric, gain, x, noise, sigma):
    """(n, n - 1): effect times density at the boundaries of each document; and the width v.

    Beside the others' differences the mean of their noise is not known, which makes v larger.
    """
    n = len(gain)
    score = x + noise
    order = np.argsort(-score, kind="stable")
    effects = swap_effects(metric, gain[order])
    width = sigma * np.sqrt(n / (n - 1))
    terms = np.empty((n, n - 1))
    for position, i in enumerate(order):
        others = np.delete(order, position)
        terms[i] = effects[position] * density(score[others], x[i] + noise[others].mean(), width)
    return terms, width


def stochastic_rank(metric, documents, smoothing, draws):
    """Gradient of minus the metric."""
    sigma, mu, n_samples = smoothing
    relevance, gain, z, number = documents
    total = np.zeros(len(z))
    for sample in range(n_samples if len(z) > 1 else 0):
        e = core_normals(*draws, _core.Role.RANKING, sample, documents.end)[number]
        terms, _ = boundary_terms(metric, gain, z - sigma * mu * relevance, sigma * e, sigma)
        total += terms.sum(axis=1) - terms.sum() / len(z)
    return -total / n_samples


def rank_curvature(metric, documents, smoothing, draws):
    sigma, mu, n_samples = smoothing
    relevance, gain, z, number = documents
    total = np.zeros(len(z))
    for sample in range(n_samples if len(z) > 1 else 0):
        first, sign = sample // 2 * 2, -1 if sample % 2 else 1
        e = sign * core_normals(*draws, _core.Role.CURVATURE, first, documents.end)[number]
        terms, width = boundary_terms(metric, gain, -sigma * mu * relevance, sigma * e, sigma)
        total += np.abs(terms).sum(axis=1) / width
    return total / n_samples


def order_probabilities(x, sigma, n_points=2001):
    """Orders of n documents, downwards, with their probabilities under scores N(x, sigma²).

    P(s_0 > s_1 > ...) is a chain of cumulative integrals, the lowest score first.
    """
    t = np.linspace(min(x) - 8 * sigma, max(x) + 8 * sigma, n_points)
    densities = density(t, np.asarray(x)[:, None], sigma)
    step = t[1] - t[0]

    def below(order):
        """Probability that the documents of `order` are in order, and all of them below t."""
        if order not in known:
            integrand = densities[order[0]] * (below(order[1:]) if len(order) > 1 else 1.0)
            sums = np.cumsum((integrand[1:] + integrand[:-1]) / 2) * step
            known[order] = np.concatenate(([0.0], sums))
        return known[order]

    known = {}
    orders = list(itertools.permutations(range(len(x))))
    return orders, np.array([below(order)[-1] for order in orders])


def order_slopes(x, sigma):
    """Orders, and the derivatives (n, n!) of their probabilities by each x."""
    slopes, length = [], 1e-3 * sigma
    for i in range(len(x)):
        shift = np.eye(len(x))[i] * length
        orders, above = order_probabilities(x + shift, sigma)
        slopes.append((above - order_probabilities(x - shift, sigma)[1]) / (2 * length))
    return orders, np.array(slopes)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def pairwise_logistic(relevance, z, sigma):
    g, h = np.zeros(len(z)), np.zeros(len(z))
    for i, j in itertools.permutations(range(len(z)), 2):
        if relevance[i] > relevance[j]:
            add_pair(g, h, i, j, z, sigma, 1.0)
    return g, h


def add_pair(g, h, i, j, z, sigma, weight):
    """Derivatives of weight * log(1 + exp(-sigma (z_i - z_j))). Returns |gradient|."""
    wrong = sigmoid(-sigma * (z[i] - z[j]))
    g[i] -= weight * sigma * wrong
    g[j] += weight * sigma * wrong
    h[[i, j]] += weight * sigma**2 * wrong * (1 - wrong)
    return weight * sigma * wrong


def lambdarank(gains, z, sigma, truncation, normalise):
    """LightGBM's loop over pairs of places, NDCG at the truncation."""
    n = len(z)
    g, h = np.zeros(n), np.zeros(n)
    ideal = dcg(np.sort(gains)[::-1], truncation, 0.0)
    order = np.argsort(-z, kind="stable")
    total = 0.0
    for p, q in itertools.combinations(range(n), 2):
        i, j = order[p], order[q]
        if p >= truncation or gains[i] == gains[j] or ideal <= 0:
            continue
        weight = abs(gains[i] - gains[j]) * (1 / np.log2(p + 2) - 1 / np.log2(q + 2)) / ideal
        if normalise and z.max() > z.min():
            weight /= 0.01 + abs(z[i] - z[j])
        if gains[i] < gains[j]:
            i, j = j, i
        total += 2 * add_pair(g, h, i, j, z, sigma, weight)
    factor = np.log2(1 + total) / total if normalise and total > 0 else 1.0
    return g * factor, h * factor


def shuffle_noise(kind, word):
    u = unit(word) + 2.0**-33
    return np.log(u / (1 - u)) if kind == "logistic" else -np.log(-np.log(u))


def yeti(metric, documents, shuffles, draws):
    """Gradient and hessian; metric "decay" weighs neighbours by decay^q."""
    _, gain, z, number = documents
    kind, power, n_orders = shuffles
    g, h = np.zeros(len(z)), np.zeros(len(z))
    for t in range(n_orders):
        word = words(*draws, _core.Role.SHUFFLE, t // 4, 0, documents.end)[number, t % 4]
        order = np.argsort(-(z + power * shuffle_noise(kind, word)), kind="stable")
        for q in range(len(z) - 1):
            i, j = order[q : q + 2]
            if metric.name == "decay":
                weight = abs(gain[i] - gain[j]) * metric.decay**q * (q < metric.cutoff)
            else:
                swapped = order.copy()
                swapped[q : q + 2] = j, i
                weight = abs(metric(gain[order]) - metric(gain[swapped]))
            if gain[i] < gain[j]:
                i, j = j, i
            add_pair(g, h, i, j, z, 1.0, weight / n_orders)
    return g, h
