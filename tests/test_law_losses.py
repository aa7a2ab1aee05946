"""Losses that are not squared: every one gets its noise, and simple ones their exact law.

On one structure leaf j is a chain on the line,

    theta' = rho theta - eps (mean gradient at theta + sigma xi / sqrt(n_j)),

whose law is the leading eigenvector of a Gaussian transition kernel; for small eps it is

    exp(-(beta n_j / N) (mean loss + gamma theta^2 / 2)).
"""

from dataclasses import dataclass

import numpy as np
import pytest

from law import (
    FixedStructure,
    Record,
    Restart,
    assert_law,
    assert_mean,
    binary_set,
    bits_of,
    discrete_law,
    run_chain,
    splits,
)
from sglb.leaves import LeafRule
from sglb.losses import LOSSES, Huber, Logistic, Loss, Sla, Welsch, get_loss
from sglb.samplers import Langevin
from sglb.structure import GreedySearch

# One leaf, many copies: 1,024 leaves with the same few targets.

DEPTH = 10
N_LEAVES = 1 << DEPTH
N_GRID = 2000


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@dataclass(frozen=True)
class Target:
    """A loss, the targets of a leaf, gradient and loss from the textbook, and how to sample."""

    loss: Loss
    y: tuple[float, ...]
    gradient: object
    value: object
    sampler: Langevin
    width: float  # the grid covers offset +- width
    burn_in: int  # ten relaxation times at least
    offset: float = 0.0

    @property
    def noise(self):
        """Standard deviation of a step: eps sigma / sqrt(n) = sqrt(2 eps T / n)."""
        return np.sqrt(2.0 * self.sampler.learning_rate * self.sampler.temperature / len(self.y))

    def masses(self):
        """Grid of raw scores, exact masses of the chain, masses of the limit law."""
        f = np.linspace(-self.width, self.width, N_GRID)
        raw = self.offset + f
        eps, gamma = self.sampler.learning_rate, self.sampler.shrink_rate
        slope = np.mean([self.gradient(y, raw) for y in self.y], axis=0)
        exact = discrete_law(f, slope, eps, 1.0 - gamma * eps, self.noise)
        energy = np.mean([self.value(y, raw) for y in self.y], axis=0) + 0.5 * gamma * f**2
        limit = np.exp(-len(self.y) / self.sampler.temperature * (energy - energy.min()))
        return raw, exact, limit / limit.sum()


def logistic(sampler, **rest):
    return Target(
        Logistic(),
        (1.0, 1.0, 0.0),
        lambda y, z: sigmoid(z) - y,
        lambda y, z: np.logaddexp(0.0, (1 - 2 * y) * z),
        sampler,
        **rest,
    )


def huber(sampler, delta, **rest):
    return Target(
        Huber(delta),
        (-2.0, 0.0, 3.0),
        lambda y, z: np.clip(z - y, -delta, delta),
        lambda y, z: np.where(
            np.abs(z - y) < delta, 0.5 * (z - y) ** 2, delta * (np.abs(z - y) - 0.5 * delta)
        ),
        sampler,
        **rest,
    )


def sla(sampler, width_of_step, **rest):
    # Wells: f = 0 (raw -1.5), where shrinking pulls to; and raw > 0, where three rows are right.
    w = width_of_step
    return Target(
        Sla(w),
        (1.0, 1.0, 1.0, 0.0),
        lambda y, z: (1 - 2 * y) * sigmoid(z / w) * sigmoid(-z / w) / w,
        lambda y, z: sigmoid((1 - 2 * y) * z / w),
        sampler,
        offset=-1.5,
        **rest,
    )


def welsch(sampler, **rest):
    # Wells: near the two targets at -1.5 and near the one at 1.5.
    return Target(
        Welsch(1.0),
        (-1.5, -1.5, 1.5),
        lambda y, z: (z - y) * np.exp(-((z - y) ** 2)),
        lambda y, z: 0.5 * (1.0 - np.exp(-((z - y) ** 2))),
        sampler,
        **rest,
    )


TARGETS = {
    "logistic": logistic(Langevin(0.5, 1.0, 0.1), width=14.0, burn_in=100),
    "huber": huber(Langevin(0.3, 1.0, 0.2), 0.7, width=8.0, burn_in=100),
    "sla": sla(Langevin(0.25, 0.2, 0.25), 0.2, width=5.0, burn_in=2000),
    "welsch": welsch(Langevin(0.2, 0.2, 0.05), width=7.0, burn_in=3500),
}
WELLS = {"sla", "welsch"}


@pytest.mark.parametrize("name", TARGETS)
def test_a_leaf_has_the_exact_law_of_its_loss(name):
    target = TARGETS[name]
    raw, exact, limit = target.masses()
    assert exact[0] < 1e-9
    assert exact[-1] < 1e-9
    y = np.tile(target.y, N_LEAVES)
    rows = binary_set(bits_of(np.repeat(np.arange(N_LEAVES), len(target.y)), DEPTH), y)
    callback = Record(rows=slice(None, None, len(target.y)), burn_in=target.burn_in)
    run_chain(
        rows,
        target.loss,
        target.sampler,
        FixedStructure(splits(*range(DEPTH))),
        callback,
        target.burn_in + 2500,
        offset=[target.offset],
        seed=2,
    )
    # Ten intervals of equal mass between grid points, and the half line beyond 0.
    step = raw[1] - raw[0]
    ends = np.searchsorted(np.cumsum(exact), np.arange(0.1, 1.0, 0.1))
    edges = raw[ends] + 0.5 * step
    share = np.diff(np.cumsum(exact)[ends], prepend=0.0, append=1.0)
    bins = np.searchsorted(edges, callback.raw[:, 0].ravel()).reshape(-1, N_LEAVES)
    measured = np.stack([(bins == b).mean(axis=0) for b in range(10)], axis=1)
    assert_mean(measured, share)  # time averages of 1,024 independent leaves
    if name in WELLS:
        middle = np.searchsorted(raw, 0.0)
        border = raw[middle] - 0.5 * step
        assert_mean((callback.raw[:, 0] > border).mean(axis=0), exact[middle:].sum())
    # And the exact law is near the limit that the theory names.
    assert 0.5 * np.abs(exact - limit).sum() < 0.03


@pytest.mark.parametrize("name", sorted(WELLS))
def test_both_wells_of_a_non_convex_loss_hold_mass(name):
    raw, exact, _ = TARGETS[name].masses()
    peaks = [
        i
        for i in range(1, N_GRID - 1)
        if exact[i] > 1e-6 and exact[i - 1] < exact[i] > exact[i + 1]
    ]
    assert len(peaks) == 2
    assert raw[peaks[0]] < 0.0 < raw[peaks[1]]
    assert 0.1 < exact[raw > 0.0].sum() < 0.9
    assert exact[peaks[0] : peaks[1]].min() < 0.5 * exact[peaks].min()


# Every loss and leaf method.


def make(name):
    return get_loss(name, n_classes=3)


METHODS = [
    (name, method)
    for name in LOSSES
    if name != "xendcg"  # its gradient is a random estimate
    for method in ("gradient", "newton")
    if method == "gradient" or make(name).has_hessian
]
EPS, GAMMA, TEMPERATURE, L2 = 0.2, 0.1, 0.6, 0.7


def problem(loss, n_leaves):
    """Rows in leaves of 2 to 4, weighted, at a state where nothing is saturated."""
    rng = np.random.default_rng(3)
    leaf = np.repeat(np.arange(n_leaves), np.arange(n_leaves) % 3 + 2)
    n = len(leaf)
    if loss.task == "regression":
        y = np.abs(rng.normal(size=n))
    else:
        y = rng.integers(0, max(loss.n_outputs, 2), size=n).astype(float)
    raw = rng.normal(size=(loss.n_outputs, n)) * 0.3
    return leaf, y, rng.uniform(0.5, 2.0, size=n), raw


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_leaf_noise_of_every_loss_and_method_has_the_variance_of_the_formula(name, method):
    # theta = -eps (G + sigma sqrt(C) xi) / C: with and without noise differ by eps sigma xi /
    # sqrt(C), C the sum of weights or of weighted second derivatives, plus l2.
    loss, leaves = make(name), LeafRule(method, L2)
    leaf, y, weight, raw = problem(loss, 64)
    rows = binary_set(bits_of(leaf, 6), y, weight)
    rule, n_steps = FixedStructure(splits(*range(6))), 2000
    noisy, calm = (
        run_chain(rows, loss, Langevin(EPS, t, GAMMA), rule, Restart(raw), n, leaves=leaves).values
        for t, n in ((TEMPERATURE, n_steps), (0.0, 1))
    )
    seen = raw[0] if len(raw) == 1 else raw.T
    second = np.ones((len(y), 1))
    if method == "newton":
        second = loss.derivatives(y, seen)[1].reshape(len(y), -1)
    curvature = np.stack([np.bincount(leaf, weight * h) for h in second.T], axis=1)
    if method == "newton":
        mean = (weight[:, None] * second).sum(axis=0) / weight.sum()
        curvature = np.maximum(curvature, 1e-3 * mean * np.bincount(leaf, weight)[:, None])
    sigma = np.sqrt(2.0 * TEMPERATURE / EPS)
    x = (noisy - calm) * np.sqrt(curvature + L2) / (EPS * sigma)  # (step, leaf, output)
    assert (noisy != calm).all()
    powers = np.stack([x, x**2 - 1, x**3, x**4 - 3], axis=-1)
    assert_mean(powers.mean(axis=1), 0.0)  # each output by itself
    if loss.n_outputs > 1:
        outputs = x.reshape(-1, loss.n_outputs)
        assert_law(outputs, np.zeros(loss.n_outputs), np.eye(loss.n_outputs))
    # Leaves of a step, and steps of a leaf, know nothing of one another.
    assert_mean((x[:, 1:] * x[:, :-1]).mean(axis=1), 0.0)
    assert_mean((x[1:] * x[:-1]).mean(axis=1), 0.0)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_temperature_changes_the_chain_of_every_loss_and_method(name, method):
    loss = make(name)
    rng = np.random.default_rng(4)
    _, y, weight, raw = problem(loss, 64)
    rows = binary_set(rng.integers(0, 2, size=(8, len(y))), y, weight)
    ends = []
    for temperature in (0.0, 0.1, 1.0):
        callback = Record(start=raw)
        sampler = Langevin(EPS, temperature, GAMMA)
        rule = GreedySearch(3)
        run_chain(rows, loss, sampler, rule, callback, 5, leaves=LeafRule(method, L2))
        ends.append(callback.raw)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        # From the first step on, every output of nearly every row.
        differ = ends[a] != ends[b]
        assert differ.reshape(-1, len(y)).mean(axis=1).min() > 0.99
