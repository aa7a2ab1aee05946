from benchmarks.ranking.methods import TRIALS, between, rate_and_l2, whole_between

NAME = "CatBoost"
PACKAGE = "catboost"
NOTE = (
    "depth 4 to 8, random_strength 0 to 2, rsm and subsample (Bernoulli) 0.3 to 1; the trials of"
    " YetiRank take its modes Classic and NDCG (top 10) half each; StochasticRank of NDCG, top 10,"
    " exponential gains"
)
YETI = ("YetiRank:mode=Classic", "YetiRank:mode=NDCG;top=10")
VARIANTS = {
    "catboost QueryRMSE": "QueryRMSE",
    "catboost YetiRank": YETI[0],
    "catboost StochasticRank": "StochasticRank:metric=NDCG;top=10;type=Exp",
}


def settings(variant, point):
    rate, l2 = rate_and_l2(point)
    measured = {
        "learning_rate": rate,
        "depth": whole_between(point[1], 4, 8),
        "l2_leaf_reg": l2,
        "random_strength": between(point[3], 0.0, 2.0),
        "bootstrap_type": "Bernoulli",
        "subsample": between(point[4], 0.3, 1.0),
        "rsm": between(point[5], 0.3, 1.0),
    }
    if variant == "catboost YetiRank":
        # A Latin hypercube has one trial in each of TRIALS parts of the rates.
        measured["loss_function"] = YETI[whole_between(point[0], 0, TRIALS - 1) % 2]
    return measured


def fit(variant, rows, settings, n_trees, seed):
    from catboost import CatBoost, Pool

    same = {"random_seed": seed, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    same |= {"loss_function": VARIANTS[variant]} | settings
    if n_trees is not None:
        same["iterations"] = n_trees
    return CatBoost(same).fit(Pool(rows.X, rows.y, group_id=rows.query))


def default(variant, rows, seed):
    return fit(variant, rows, {}, None, seed)


def stages(model, X, counts):
    wanted = set(counts)
    scores = enumerate(model.staged_predict(X, thread_count=1), 1)
    return [raw for count, raw in scores if count in wanted]


def predict(model, X):
    return model.predict(X, thread_count=1)
