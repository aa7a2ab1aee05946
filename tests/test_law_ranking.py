"""Which ranking losses have a stationary law, and the law of query_squared.

Let C be the matrix that takes the (weighted) mean of each query away. The gradient of query_squared
is C (f - y), so that for gradient steps on structures drawn without a look at f

    f' = rho f - eps P_s (C (f - y) + noise),    A_s = rho I - eps P_s C
    mean        m = (gamma I + Pbar C)^-1 Pbar C y, for every eps
    covariance  S = E[A_s S A_s'] + E[b_s b_s'] + 2 eps T E[B_s]

with b_s = eps (P_s C (y - m) - gamma m) and B_s the covariance of leaf values of variance 1 / W_j.
As eps -> 0, without weights, S tends to T (gamma I + Pbar C)^-1 Pbar, the covariance of the law
exp(-(|C (f - y)|² / 2 + gamma f' Pbar^-1 f / 2) / T). Each assertion has the false alarm rate of
`law.py`, 1e-6.
"""

import numpy as np
import pytest

from law import (
    RandomStructure,
    Record,
    Restart,
    assert_mean,
    binary_set,
    bits_of,
    expected_moments,
    leaf_of,
    moments,
    projector,
    run_chain,
    splits,
    z_of_mean,
)
from sglb.leaves import LeafRule
from sglb.losses import LOSSES, LambdaRank, OwnMetric, QuerySquared, Sla, StochasticRank, get_loss
from sglb.samplers import Langevin
from sglb.target import Target

EPS, GAMMA, TEMPERATURE = 0.4, 0.3, 1.7

# Six documents of two queries, whose rows do not lie together; 32 copies of them side by side.
COPIES = 32
SIX = np.array([[0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]])
QUERY = np.array([0, 1, 0, 1, 1, 0])
Y = np.array([1.0, 4.0, 0.5, 3.0, 0.0, 2.0])
WEIGHT = np.array([0.5, 2.0, 1.0, 3.0, 0.7, 1.5])
COPY_BITS = range(5)  # features that tell the copies apart
CUTS = [(), (5,), (6,), (7,), (5, 7)]
STRUCTURES = [splits(*COPY_BITS, *cut) for cut in CUTS]
LEAVES = [leaf_of(splits(*(f - 5 for f in cut)), SIX + 1) for cut in CUTS]


class Law:
    """Mean and covariance of six documents, by the formulas above."""

    def __init__(self, weight, eps, gamma=GAMMA):
        w = np.ones(6) if weight is None else weight
        centre = np.eye(6) - projector(QUERY, w)
        P = [projector(leaf, w) for leaf in LEAVES]
        average = np.mean(P, axis=0)
        self.mean = np.linalg.solve(gamma * np.eye(6) + average @ centre, average @ centre @ Y)
        double, source = np.zeros((36, 36)), 2.0 * eps * TEMPERATURE * average / w
        for p in P:
            A = (1.0 - gamma * eps) * np.eye(6) - eps * p @ centre
            b = eps * (p @ centre @ (Y - self.mean) - gamma * self.mean)
            double += np.kron(A, A) / len(P)
            source += np.outer(b, b) / len(P)
        self.covariance = np.linalg.solve(np.eye(36) - double, source.ravel()).reshape(6, 6)
        self.gibbs = TEMPERATURE * np.linalg.solve(gamma * np.eye(6) + average @ centre, average)


def copies(weight):
    bits = np.vstack([bits_of(np.repeat(np.arange(COPIES), 6), 5), np.tile(SIX, COPIES)])
    rows = binary_set(bits, np.tile(Y, COPIES))
    groups = np.tile(QUERY, COPIES) + 2 * np.repeat(np.arange(COPIES), 6)
    weights = None if weight is None else np.tile(weight, COPIES)
    object.__setattr__(rows, "target", Target.of(np.tile(Y, COPIES), weights, groups=groups))
    return rows


def averaged_moments(raw, mean):
    """Moments of each state (n, 6 COPIES), averaged over the copies: (n, 6 + 21)."""
    return moments(raw.reshape(-1, COPIES, 6), mean).mean(axis=1)


every_weight = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])


@every_weight
def test_a_step_of_query_squared_from_the_stationary_moments_keeps_them(weight):
    law, rng, n_steps = Law(weight, EPS), np.random.default_rng(6), 15_000
    root = np.linalg.cholesky(law.covariance + 1e-12 * np.eye(6))
    states = (
        (law.mean + rng.normal(size=(COPIES, 6)) @ root.T).reshape(1, -1)
        for _ in range(n_steps + 1)
    )
    callback, sampler = Restart(states), Langevin(EPS, TEMPERATURE, GAMMA)
    rule = RandomStructure(STRUCTURES)
    run_chain(copies(weight), QuerySquared(), sampler, rule, callback, n_steps, seed=7)
    measured = averaged_moments(callback.raw[:, 0], law.mean)
    assert_mean(measured, expected_moments(law.covariance))


@every_weight
def test_the_chain_of_query_squared_comes_to_its_law(weight):
    """From f = 0. A common shift of a query feels the shrinkage alone: the slowest rate is
    eps gamma, and states 6 / (eps gamma) = 50 steps apart are independent for a z-test.
    """

    class EveryFew(Record):
        def step(self, info):
            if info.step % 50 == 0:
                super().step(info)

    law, callback = Law(weight, EPS), EveryFew()
    sampler, rule = Langevin(EPS, TEMPERATURE, GAMMA), RandomStructure(STRUCTURES)
    run_chain(copies(weight), QuerySquared(), sampler, rule, callback, 50 * 1110, seed=8)
    measured = averaged_moments(callback.raw[10:, 0], law.mean)
    assert_mean(measured, expected_moments(law.covariance))
    # The law of small learning rates is told apart.
    assert np.abs(z_of_mean(measured, expected_moments(law.gibbs))).max() > 10.0


def test_the_limit_of_small_learning_rates_is_the_gibbs_law():
    laws = [Law(None, eps) for eps in (1e-3, 5e-4)]
    errors = [np.abs(law.covariance - law.gibbs).max() for law in laws]
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.01)
    assert errors[1] < 1e-2


@every_weight
def test_newton_leaves_of_query_squared_are_gradient_leaves_because_the_curvature_is_one(weight):
    states = []
    for method in ("gradient", "newton"):
        callback, rule = Record(), RandomStructure(STRUCTURES)
        sampler, leaves = Langevin(EPS, TEMPERATURE, GAMMA), LeafRule(method)
        run_chain(
            copies(weight), QuerySquared(), sampler, rule, callback, 50, leaves=leaves, seed=9
        )
        states.append(callback.raw)
    np.testing.assert_allclose(states[0], states[1], rtol=1e-9, atol=1e-9)


# --- which losses follow a fixed function ---


def work(loss, weight=None, n_points=4000):
    """The integral of the weighted gradient around a circle of scores: 0 for a gradient."""
    target = Target.of([0.0, 2.0, 1.0, 3.0, 0.0], weight, groups=np.zeros(5, dtype=int))
    rng = np.random.default_rng(3)
    (u, v), centre = np.linalg.qr(rng.normal(size=(5, 2)))[0].T, rng.normal(size=5)
    angles = 2.0 * np.pi * np.arange(n_points) / n_points
    total = 0.0
    for angle in angles:
        gradient = loss.gradients(target, centre + 2.0 * (np.cos(angle) * u + np.sin(angle) * v))
        direction = 2.0 * (np.cos(angle) * v - np.sin(angle) * u)
        total += (target.weight * gradient) @ direction
    return total * 2.0 * np.pi / n_points


QUERY_LOSSES = ["query_squared", "pairwise_logistic", "xendcg"]
ROW_WEIGHTS = np.array([1.0, 3.0, 0.5, 2.0, 1.0])


@pytest.mark.parametrize("name", QUERY_LOSSES)
def test_losses_with_a_law_do_no_work_around_a_circle(name):
    assert get_loss(name).stationary
    assert abs(work(get_loss(name))) < 1e-9
    assert abs(work(get_loss(name), np.full(5, 3.0))) < 1e-9


@pytest.mark.parametrize("name", QUERY_LOSSES)
def test_with_weights_that_differ_in_a_query_only_query_squared_has_a_law(name):
    result = abs(work(get_loss(name), ROW_WEIGHTS))
    assert result < 1e-9 if name == "query_squared" else result > 0.1


@pytest.mark.parametrize("loss", [LambdaRank(normalise=False), LambdaRank(), get_loss("yeti")])
def test_weights_that_depend_on_scores_do_work(loss):
    # The same on two grids: it is not the error of the integral.
    first, second = work(loss, n_points=2000), work(loss, n_points=4000)
    assert not loss.stationary
    assert abs(second) > 0.01
    assert first == pytest.approx(second, rel=0.2)


def test_every_loss_says_whether_it_has_a_law():
    assert {name for name, kind in LOSSES.items() if kind.stationary is False} == {
        "lambdarank",
        "yeti",
    }
    assert StochasticRank().stationary
    assert OwnMetric(lambda ranked: 0.0).stationary
    assert not StochasticRank(sigma="cosine(2, 1)").stationary
    assert not Sla("cosine(1, 0.1)").stationary
