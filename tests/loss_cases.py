"""Every loss as a test case, with targets, raw scores and the kernel to evaluate it."""

import numpy as np
import pytest

from sglb.losses import (
    Absolute,
    Cauchy,
    Cost,
    Gamma,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Savage,
    Sla,
    Softmax,
    Squared,
    Tweedie,
    Welsch,
)

CASES = [
    Squared(),
    Logistic(),
    Softmax(3),
    Softmax(7),
    Sla(),
    Sla(width=1.5),
    Savage(),
    Cost(2),
    Cost(4),
    Absolute(width=0.1),
    Absolute(width=2.0),
    Huber(),
    Huber(delta=0.3),
    Quantile(width=0.1),
    Quantile(level=0.9, width=0.5),
    Quantile(level=[0.1, 0.5, 0.95], width=0.3),
    Poisson(),
    Gamma(),
    Tweedie(),
    Tweedie(power=1.1),
    Tweedie(power=1.95),
    Cauchy(),
    Cauchy(scale=3.0),
    Welsch(),
    Welsch(scale=0.5),
]

every_loss = pytest.mark.parametrize("loss", CASES, ids=repr)
one_output = pytest.mark.parametrize("loss", [c for c in CASES if c.n_outputs == 1], ids=repr)


# Losses whose link is exp: their targets are not negative.
LOG_LINK = ("poisson", "gamma", "tweedie")


def targets_for(loss, *values):
    """The values as targets; a loss whose domain lacks 0 gets a half for it."""
    return [0.5 if loss.name == "gamma" and value == 0.0 else value for value in values]


def make_targets(loss, n, rng):
    if loss.name == "gamma":
        return rng.gamma(0.8, 2.0, n)
    if loss.name in LOG_LINK:
        return rng.poisson(2.0, n).astype(float)
    if loss.task == "regression":
        return rng.normal(0, 2, n)
    return rng.integers(0, max(loss.n_outputs, 2), n).astype(float)


def make_raw(loss, n, rng, scale=2.0):
    return rng.normal(0, scale, n if loss.n_outputs == 1 else (n, loss.n_outputs))


def output_major(raw):
    return np.ascontiguousarray(np.atleast_2d(raw.T))


def fill(loss, y, raw, n_threads=1, with_hessian=True):
    chain = output_major(raw)
    gradient = np.full_like(chain, np.nan)
    hessian = np.full_like(chain, np.nan) if with_hessian else None
    return loss.fill(y, chain, gradient, hessian, n_threads), gradient, hessian
