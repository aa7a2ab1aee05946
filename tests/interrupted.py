"""Fits that end before their time, and fits that go on where they ended."""

import contextlib
import itertools

import numpy as np

from sglb import Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor, archive
from sglb.chain import Chain
from sglb.losses import Huber

rng = np.random.default_rng(11)
X = rng.normal(size=(160, 4))
X[::9, 1] = np.nan
SIGNAL = X[:, 0] * X[:, 2]
NUMBERS = SIGNAL + 0.5 * rng.normal(size=160)
TWO = NUMBERS > 0
THREE = np.array(["a", "b", "c"])[np.digitize(NUMBERS, [-0.5, 0.5])]
WEIGHT = rng.uniform(0.5, 3.0, 160)
QUERIES = np.arange(160) // 8
NEW = rng.normal(size=(80, 4))
HELD_OUT = NEW[:, 0] * NEW[:, 2] + 0.5 * rng.normal(size=80)
SMALL = {"n_estimators": 24, "max_depth": 3, "max_bins": 16, "random_state": 0, "n_jobs": 1}
LATE = SMALL | {"n_estimators": 200, "early_stopping_rounds": 8, "learning_rate": 0.4}
SCORED = {"eval_set": [(NEW, HELD_OUT), (NEW[:40], HELD_OUT[:40])], "eval_metric": ["mae", "rmse"]}


def categories():
    """A table whose many levels become means over the rows before, in several orders."""
    import pandas as pd

    draws = np.random.default_rng(5)
    town, sort = draws.integers(0, 40, 160), draws.integers(0, 3, 160)
    frame = pd.DataFrame({"x": X[:, 0], "town": town, "sort": sort})
    return frame.astype({"town": "category", "sort": "category"})


class Cubic:
    """|y - z|^3 / 3, a loss of the user's own."""

    def loss(self, y, raw):
        return np.abs(raw - y) ** 3 / 3.0

    def gradient(self, y, raw):
        return (raw - y) * np.abs(raw - y)


# Name -> estimator, its parameters, arguments of fit.
FITS = {
    "numbers": (SGLBRegressor, SMALL, {"X": X, "y": NUMBERS}),
    "two threads": (SGLBRegressor, SMALL | {"n_jobs": 2}, {"X": X, "y": NUMBERS}),
    "weights": (SGLBRegressor, SMALL, {"X": X, "y": NUMBERS, "sample_weight": WEIGHT}),
    "several leaf steps": (SGLBClassifier, SMALL | {"leaf_steps": 3}, {"X": X, "y": TWO}),
    "three classes": (SGLBClassifier, SMALL, {"X": X, "y": THREE, "sample_weight": WEIGHT}),
    "costs": (
        SGLBClassifier,
        SMALL | {"loss": "cost"},
        {"X": X, "y": TWO, "costs": [[0, 1], [5, 0]]},
    ),
    "rankings": (SGLBRanker, SMALL, {"X": X, "y": np.round(np.exp(TWO)), "group": QUERIES}),
    "stochastic ranking": (
        SGLBRanker,
        SMALL | {"loss": "stochastic_rank"},
        {"X": X, "y": TWO.astype(float), "group": QUERIES},
    ),
    "quantiles": (
        SGLBRegressor,
        SMALL | {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]},
        {"X": X, "y": NUMBERS},
    ),
    "a loss with a width": (SGLBRegressor, SMALL | {"loss": Huber(0.7)}, {"X": X, "y": NUMBERS}),
    "a loss of the user": (SGLBRegressor, SMALL | {"loss": Cubic()}, {"X": X, "y": NUMBERS}),
    "categories": (SGLBRegressor, SMALL, {"X": categories(), "y": NUMBERS}),
    "categories of classes": (SGLBClassifier, SMALL, {"X": categories(), "y": THREE}),
    "scores": (SGLBRegressor, SMALL, {"X": X, "y": NUMBERS, **SCORED}),
    "early stopping": (SGLBRegressor, LATE, {"X": X, "y": NUMBERS, **SCORED}),
    "chains": (SGLBRegressor, SMALL | {"n_chains": 3}, {"X": X, "y": NUMBERS}),
    "chains that stop": (
        SGLBRegressor,
        LATE | {"n_chains": 3, "n_jobs": 2},
        {"X": X, "y": NUMBERS, **SCORED},
    ),
    "tempering": (
        SGLBRegressor,
        SMALL | {"sampler": "tempering", "n_jobs": 2, "n_estimators": 35},
        {"X": X, "y": NUMBERS},
    ),
    "tempering that stops": (
        SGLBRegressor,
        LATE | {"sampler": "tempering", "n_estimators": 60},
        {"X": X, "y": NUMBERS, **SCORED},
    ),
    "momentum": (SGLBRegressor, SMALL | {"sampler": "hamiltonian"}, {"X": X, "y": NUMBERS}),
    "annealed": (SGLBRegressor, SMALL | {"sampler": "annealed"}, {"X": X, "y": NUMBERS}),
    "cyclical": (SGLBRegressor, SMALL | {"sampler": "cyclical"}, {"X": X, "y": NUMBERS}),
    "drawn rows": (
        SGLBRegressor,
        SMALL | {"sampler": "stochastic", "subsample": 0.5},
        {"X": X, "y": NUMBERS},
    ),
    "smoothed 0-1 loss": (SGLBClassifier, SMALL | {"loss": "sla"}, {"X": X, "y": TWO}),
    "error bars": (
        SGLBRegressor,
        SMALL | {"uncertainty": True, "n_estimators": 8},
        {"X": X, "y": NUMBERS},
    ),
    "searched length": (SGLBClassifier, SMALL | {"n_estimators": "auto"}, {"X": X, "y": TWO}),
}


class Killed(BaseException):
    """Ends a fit as a crash does: nobody catches it."""


@contextlib.contextmanager
def killed_after(n_steps):
    """Kill whatever fits run after this many steps of all their chains; whether it came so far."""
    steps, step, ends = itertools.count(1), Chain.step, []

    def counted(chain):
        if next(steps) > n_steps:
            ends.append(n_steps)
            raise Killed
        return step(chain)

    Chain.step = counted
    try:
        with contextlib.suppress(Killed):
            yield ends
    finally:
        Chain.step = step


def fitted(name, **more):
    kind, parameters, arguments = FITS[name]
    return kind(**parameters).fit(**arguments | more)


def content(model):
    return archive.dumps(model._fitted())


def killed_fits(name, path, kills, every=3):
    """Fit, kill, resume, kill again ...; return the fit that came to the end, and the kills."""
    n_kills = 0
    for n_steps in kills:
        with killed_after(n_steps) as ends:
            fitted(name, callbacks=Checkpoint(path, every), resume_from=path)
        n_kills += len(ends) > 0
    return fitted(name, callbacks=Checkpoint(path, every), resume_from=path), n_kills
