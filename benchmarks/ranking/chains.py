"""What only sglb is asked: length of a default chain, chains that are too long, other metrics."""

import numpy as np

from benchmarks.ranking import sets
from benchmarks.ranking.methods import sglb
from benchmarks.ranking.tuning import FIRST_SEED, MAX_TREES, STRIDE

# Of the training queries, for the rule of the number of trees.
FOLDS = 3
LENGTHS = (100, 200, 300, 450, 600, 900)
METRICS = ("ndcg", "mrr", "map", "err")
LANGEVIN_SEEDS = 5
MATCHING_SEEDS = 3
OWN = "sglb query_squared"
# What "auto" means for this loss, stated so that plain chains have it too.
DEFAULT = {
    "trees": 450,
    "settings": {
        "learning_rate": 0.05,
        "max_depth": 6,
        "random_strength": 1.0,
        "structure_sample": 0.5,
        "shrink_rate": 1e-3,
    },
}


def length(parts, fold):
    """NDCG@10 of held-out training queries by chains of stated and of cross-validated length.

    No test query has a part in this.
    """
    rows = sets.both(*parts[:2])
    queries = np.random.default_rng(0).permutation(len(rows.sizes))
    held_out = rows.take(queries[fold::FOLDS])
    learn = rows.take(np.delete(queries, np.s_[fold::FOLDS]))
    measured = {}
    # A chain of 450 steps or more has the same rate, so that the longest contains the others.
    model = sglb.fit(OWN, learn, {}, LENGTHS[-1], fold)
    for count, raw in zip(LENGTHS, sglb.stages(model, held_out.X, LENGTHS), strict=True):
        measured[f"{count} trees"] = {"queries": [held_out.score(raw).tolist()], "trees": count}
    model = sglb.fit(OWN, learn, {}, "auto", fold)
    scores = held_out.score(sglb.predict(model, held_out.X)).tolist()
    measured["automatic"] = {"queries": [scores], "trees": int(model.n_iter_)}
    return measured


def langevin(parts, frozen, seed):
    """NDCG@10 of test queries after the frozen number of trees and after twice as many.

    The plain chain has the same structures' randomness, but no noise in leaves and no shrinkage.
    """
    learn, choose, held_out = parts
    rows, counts = sets.both(learn, choose), (frozen["trees"], 2 * frozen["trees"])
    measured = {}
    for name in ("langevin", "plain"):
        settings = frozen["settings"] | {"sampler": name}
        if name == "plain":
            settings.pop("shrink_rate")
        model = sglb.fit(OWN, rows, settings, counts[-1], FIRST_SEED + seed)
        scores = [held_out.score(raw).tolist() for raw in sglb.stages(model, held_out.X, counts)]
        measured[name] = {"queries": scores, "trees": counts[0]}
    return measured


def matching(parts, frozen, metric, n_seeds=MATCHING_SEEDS, max_trees=MAX_TREES):
    """All metrics of test queries by StochasticRank of one metric.

    Settings are those that were tuned by NDCG; the number of trees is the best for the metric that
    is trained by, on the validation queries.
    """
    from sglb.losses import StochasticRank

    learn, choose, held_out = parts
    settings = frozen["settings"] | {"loss": StochasticRank(metric, 10)}
    counts = list(range(STRIDE, max_trees + 1, STRIDE))
    model = sglb.fit("", learn, settings, max_trees, 0)
    curve = [choose.score(raw, metric).mean() for raw in sglb.stages(model, choose.X, counts)]
    trees = counts[int(np.argmax(curve))]
    rows = sets.both(learn, choose)
    scores = {name: [] for name in METRICS}
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        raw = sglb.predict(sglb.fit("", rows, settings, trees, seed), held_out.X)
        for name in METRICS:
            scores[name].append(held_out.score(raw, name).tolist())
    return {"scores": scores, "trees": trees}
