"""Tuning on validation queries, and the test of what was chosen."""

import zlib

import numpy as np

from benchmarks.ranking import sets
from benchmarks.ranking.methods import DIMENSIONS, TRIALS, get_method, library_of

SEEDS = 5
MAX_TREES, STRIDE = 200, 10
DEFAULT_SEEDS = 3
# Rankers that a library offers without any setting but the objective.
DEFAULTS = (
    "sglb query_squared",
    "lightgbm lambdarank",
    "lightgbm xendcg",
    "xgboost rank:ndcg",
    "catboost YetiRank",
)
# The first seed of tests; tuning has seed 0.
FIRST_SEED = 1
DIGITS = 5


def points(name):
    """Where the trials of a set lie in the unit cube, the same for all methods."""
    from scipy.stats import qmc

    seed = np.random.default_rng(zlib.crc32(name.encode()))
    return qmc.LatinHypercube(DIMENSIONS, rng=seed).random(TRIALS)


def tune(name, variant, parts, max_trees=MAX_TREES):
    """The best trial and number of trees by mean NDCG@10 of the validation queries."""
    learn, choose, _ = parts
    method = get_method(library_of(variant))
    counts = list(range(STRIDE, max_trees + 1, STRIDE))
    trials = []
    for point in points(name):
        settings = method.settings(variant, point)
        model = method.fit(variant, learn, settings, max_trees, 0)
        curve = [choose.score(raw).mean() for raw in method.stages(model, choose.X, counts)]
        best = int(np.argmax(curve))
        trials.append({"settings": settings, "trees": counts[best], "ndcg": float(curve[best])})
    return max(trials, key=lambda trial: trial["ndcg"]) | {"trials": trials}


def score(variant, parts, frozen, n_seeds=SEEDS):
    """NDCG@10 of each test query: of each seed, and of the mean of their raw scores."""
    learn, choose, held_out = parts
    method, rows = get_method(library_of(variant)), sets.both(learn, choose)
    raws = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        model = method.fit(variant, rows, frozen["settings"], frozen["trees"], seed)
        raws.append(np.asarray(method.predict(model, held_out.X), dtype=np.float64))
    return {
        "queries": [_rounded(held_out.score(raw)) for raw in raws],
        "mean_of_3": _rounded(held_out.score(np.mean(raws[:3], axis=0))),
        "mean_of_5": _rounded(held_out.score(np.mean(raws, axis=0))),
    }


def default(variant, parts, seed):
    """NDCG@10 of each test query by the estimator as it comes, and its number of trees."""
    learn, choose, held_out = parts
    method, rows = get_method(library_of(variant)), sets.both(learn, choose)
    model = method.default(variant, rows, FIRST_SEED + seed)
    trees = getattr(model, "n_iter_", None)
    return {
        "queries": [_rounded(held_out.score(method.predict(model, held_out.X)))],
        "trees": None if trees is None else int(trees),
    }


def _rounded(values):
    return [round(float(value), DIGITS) for value in values]
