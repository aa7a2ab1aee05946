"""Fits of every kind, and the digests of their trees: a change of code must not change a model.

    python tests/fits.py            # names of the fits whose trees differ from the recorded ones
    python tests/fits.py --record   # record the trees of this code

A digest covers the splits, leaf values, shrink factors and offset of a chain, to the last bit.
"""

import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.costs import action_costs
from sglb.estimators.posterior import Posterior
from sglb.posterior import LongChains
from sglb.samplers import Langevin

RECORD = Path(__file__).parent / "data" / "fits.json"


def table(n_rows=800, n_columns=6, seed=0, missing=False, one_hot=False):
    """Columns of normals, some of few values; with `missing` every seventh value is NaN."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, 1] = np.round(X[:, 1])
    if missing:
        X.ravel()[::7] = np.nan
    if one_hot:
        X = np.column_stack([X, np.eye(12)[rng.integers(0, 12, n_rows)]])
    return X


def signal(X):
    return np.nan_to_num(X[:, 0]) * 2.0 - np.nan_to_num(X[:, 2]) ** 2 + np.nan_to_num(X[:, -1])


def numbers(X, seed=1):
    return signal(X) + np.random.default_rng(seed).normal(size=len(X))


def two(X, seed=1):
    return (numbers(X, seed) > 0).astype(int)


def three(X, seed=1):
    return np.digitize(numbers(X, seed), [-1.0, 1.0])


def counts(X):
    return np.round(np.exp(0.3 * numbers(X)))


def weights(X, whole=False):
    rng = np.random.default_rng(5)
    return rng.integers(1, 4, len(X)).astype(float) if whole else rng.uniform(0.2, 3.0, len(X))


class Cube:
    """|y - z|^3 / 3, a loss of the user's own."""

    convex = True

    def loss(self, y, raw):
        return np.abs(raw - y) ** 3 / 3.0

    def gradient(self, y, raw):
        return (raw - y) * np.abs(raw - y)

    def hessian(self, y, raw):
        return 2.0 * np.abs(raw - y)


def classify(X, y, *, fit=None, **parameters):
    settings = {"n_estimators": 20, "random_state": 0, "n_jobs": 1} | parameters
    return SGLBClassifier(**settings).fit(X, y, **(fit or {}))


def regress(X, y, *, fit=None, **parameters):
    settings = {"n_estimators": 20, "random_state": 0, "n_jobs": 1} | parameters
    return SGLBRegressor(**settings).fit(X, y, **(fit or {}))


def rank(X, y, **parameters):
    settings = {"n_estimators": 20, "random_state": 0, "n_jobs": 1} | parameters
    return SGLBRanker(**settings).fit(X, y, group=np.arange(len(y)) // 20)


def frame(n_rows=600):
    import pandas as pd

    rng = np.random.default_rng(2)
    many = rng.integers(0, 200, n_rows)
    few = rng.integers(0, 5, n_rows)
    data = pd.DataFrame({"x": rng.normal(size=n_rows), "many": many, "few": few})
    y = np.round(np.sin(many) + (few == 2) + 0.3 * rng.normal(size=n_rows), 6)
    return data.astype({"many": "category", "few": "category"}), y


X, LARGE, HUGE = table(), table(60_000), table(310_000, 4)
CATEGORIES, SINES = frame()
COSTS = [[0, 2, 5], [1, 0, 1], [20, 4, 0]]

FITS = {
    "squared": lambda: regress(X, numbers(X)),
    "squared, two threads": lambda: regress(X, numbers(X), n_jobs=2),
    "absolute": lambda: regress(X, numbers(X), loss="absolute"),
    "huber": lambda: regress(X, numbers(X), loss="huber"),
    "quantile": lambda: regress(X, numbers(X), loss="quantile", quantile=0.9),
    "three quantiles": lambda: regress(X, numbers(X), loss="quantile", quantile=[0.05, 0.5, 0.95]),
    "poisson": lambda: regress(X, counts(X), loss="poisson"),
    "gamma": lambda: regress(X, 1.0 + counts(X), loss="gamma"),
    "tweedie": lambda: regress(X, counts(X), loss="tweedie", tweedie_power=1.3),
    "cauchy": lambda: regress(X, numbers(X), loss="cauchy"),
    "welsch": lambda: regress(X, numbers(X), loss="welsch"),
    "logistic": lambda: classify(X, two(X)),
    "softmax": lambda: classify(X, three(X)),
    "ten classes": lambda: classify(X, np.digitize(numbers(X), np.linspace(-3, 3, 9))),
    "sla": lambda: classify(X, two(X), loss="sla"),
    "savage": lambda: classify(X, two(X), loss="savage"),
    "own loss": lambda: regress(X, numbers(X), loss=Cube()),
    "own loss, newton": lambda: regress(X, numbers(X), loss=Cube(), leaf_method="newton"),
    "plain": lambda: classify(X, two(X), sampler="plain"),
    "stochastic": lambda: classify(X, two(X), sampler="stochastic", subsample=0.5),
    "annealed": lambda: regress(X, numbers(X), sampler="annealed"),
    "langevin object": lambda: classify(X, two(X), sampler=Langevin(0.1, 1.0, 0.01, 0.7)),
    "hot, gradient leaves": lambda: classify(X, two(X), temperature=1, leaf_method="gradient"),
    "shrink and l2": lambda: regress(X, numbers(X), shrink_rate=0.1, l2_regularization=7.0),
    "start at zero": lambda: regress(X, numbers(X), init="zero"),
    "whole weights": lambda: regress(X, numbers(X), fit={"sample_weight": weights(X, whole=True)}),
    "weights": lambda: classify(X, two(X), fit={"sample_weight": weights(X)}),
    "weights, softmax": lambda: classify(X, three(X), fit={"sample_weight": weights(X)}),
    "class weights": lambda: classify(X, two(X), class_weight="balanced"),
    "random strength": lambda: classify(X, three(X), random_strength=1.0),
    "structure sample": lambda: classify(X, three(X), structure_sample=300),
    "dense structure sample": lambda: classify(X, two(X), structure_sample=0.7),
    "weighted structure sample": lambda: regress(
        X, numbers(X), structure_sample=200, fit={"sample_weight": weights(X)}
    ),
    "five leaf steps": lambda: classify(X, two(X), leaf_steps=5),
    "five leaf steps, poisson": lambda: regress(X, counts(X), loss="poisson", leaf_steps=5),
    "depth 10": lambda: regress(X, numbers(X), max_depth=10),
    "stumps, 9 bins": lambda: classify(X, two(X), max_depth=1, max_bins=9, n_estimators=100),
    "missing": lambda: (lambda Z: classify(Z, two(Z)))(table(missing=True)),
    "one-hot": lambda: (lambda Z: regress(Z, numbers(Z)))(table(one_hot=True)),
    "categories": lambda: regress(CATEGORIES, SINES),
    "categories, classes": lambda: classify(CATEGORIES, np.digitize(SINES, [-0.5, 0.5])),
    "categories, weights": lambda: classify(
        CATEGORIES, SINES > 0, fit={"sample_weight": weights(SINES)}
    ),
    "searched length": lambda: classify(X, two(X), n_estimators="auto"),
    "searched length, categories": lambda: regress(CATEGORIES, SINES, n_estimators="auto"),
    "early stopping": lambda: classify(
        X[:600],
        two(X)[:600],
        n_estimators=300,
        early_stopping_rounds=20,
        fit={"eval_set": [(X[600:], two(X)[600:])]},
    ),
    "60,000 rows": lambda: classify(LARGE, two(LARGE), n_estimators=5),
    "60,000 rows, weights": lambda: classify(
        LARGE, two(LARGE), n_estimators=5, fit={"sample_weight": weights(LARGE)}
    ),
    "60,000 rows, quantile": lambda: regress(
        LARGE, numbers(LARGE), n_estimators=5, loss="quantile", n_jobs=2
    ),
    "60,000 rows, two quantiles": lambda: regress(
        LARGE, numbers(LARGE), n_estimators=5, loss="quantile", quantile=[0.1, 0.9], n_jobs=2
    ),
    "60,000 rows, softmax": lambda: classify(LARGE, three(LARGE), n_estimators=5, n_jobs=2),
    "310,000 rows": lambda: classify(HUGE, two(HUGE), n_estimators=4, n_jobs=2),
    "hamiltonian": lambda: classify(X, two(X), sampler="hamiltonian"),
    "tempering": lambda: classify(X, two(X), sampler="tempering"),
    "three chains": lambda: classify(X, two(X), n_chains=3),
    "ranking, xendcg": lambda: rank(X, three(X), loss="xendcg"),
    "ranking, stochastic_rank": lambda: rank(X, three(X), loss="stochastic_rank", n_jobs=2),
    "ranking, yeti": lambda: rank(X, three(X), loss="yeti"),
    "ranking, query_squared": lambda: rank(X, three(X), loss="query_squared"),
    "ranking, lambdarank": lambda: rank(X, three(X), loss="lambdarank", n_jobs=2),
    "ranking, pairwise_logistic": lambda: rank(X, three(X), loss="pairwise_logistic"),
    "cost": lambda: classify(X, three(X), loss="cost", fit={"costs": COSTS}),
    "cost, by row": lambda: classify(
        X, two(X), loss="cost", fit={"costs": action_costs(cost=1.0, benefit=np.abs(X[:, 3]))}
    ),
    "uncertainty": lambda: regress(X[:300], numbers(X[:300]), uncertainty=True),
    "posterior": lambda: classify(X, three(X)).posterior(
        X, three(X), n_draws=8, prior_variance=0.3
    ),
    "full posterior": lambda: classify(X, two(X)).posterior(
        X, two(X), kind="full", n_draws=8, n_steps=40, prior_variance=0.3
    ),
    "long chains": lambda: regress(X, numbers(X)).posterior(
        X, numbers(X), kind="paper", n_draws=8, n_steps=40, temperature=1.0
    ),
}


def arrays_of(trace):
    """Splits, leaf values, transitions and offset of a chain."""
    trees = trace.arrays()
    yield from (trees[name] for name in ("features", "lows", "highs", "depths", "values"))
    yield from [trees["C"][:, 0, 0]] if trace.size == 1 else [trees["C"], trees["b"]]
    yield trace.offset


def drawn_arrays(drawn):
    """What the draws of a posterior are."""
    if isinstance(drawn, LongChains):
        return [array for trace in drawn.traces for array in arrays_of(trace)]
    return [] if drawn is None else [drawn.draws.values, drawn.draws.stages]


def digest(fitted):
    """SHA-256 of all that a prediction, a draw or a law of outcomes is made of."""
    estimator = fitted.model if isinstance(fitted, Posterior) else fitted
    parts = [array for trace in estimator.traces_ for array in arrays_of(trace)]
    parts += drawn_arrays(estimator._model.posterior)
    if isinstance(fitted, Posterior):
        parts += drawn_arrays(fitted._posterior)
    if estimator._model.outcomes is not None:
        outcomes = estimator._model.outcomes
        parts += [
            *arrays_of(outcomes.scale.traces[0]),
            np.array(list(outcomes.parameters.values())),
        ]
    content = hashlib.sha256()
    for part in parts:
        content.update(str(part.shape).encode() + np.ascontiguousarray(part).tobytes())
    return content.hexdigest()


def digest_of(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return digest(FITS[name]())


def recorded():
    return json.loads(RECORD.read_text())


if __name__ == "__main__":
    now = {name: digest_of(name) for name in FITS}
    if "--record" in sys.argv:
        RECORD.write_text(json.dumps(now, indent=1) + "\n")
    else:
        known = recorded()
        differing = [name for name in FITS if known.get(name) != now[name]]
        print("\n".join(differing) or f"all {len(FITS)} are the same")
