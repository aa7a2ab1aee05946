from benchmarks.ranking.methods import between, log_between, rate_and_l2, whole_between

NAME = "LightGBM"
PACKAGE = "lightgbm"
NOTE = (
    "num_leaves 7 to 31, feature_fraction and bagging_fraction (in each tree) 0.3 to 1,"
    " min_data_in_leaf 5 to 50"
)
VARIANTS = {"lightgbm lambdarank": "lambdarank", "lightgbm xendcg": "rank_xendcg"}


def settings(variant, point):
    rate, l2 = rate_and_l2(point)
    return {
        "learning_rate": rate,
        "num_leaves": whole_between(point[1], 7, 31),
        "reg_lambda": l2,
        "colsample_bytree": between(point[3], 0.3, 1.0),
        "subsample": between(point[4], 0.3, 1.0),
        "subsample_freq": 1,
        "min_child_samples": round(log_between(point[5], 5, 50)),
    }


def fit(variant, rows, settings, n_trees, seed):
    from lightgbm import LGBMRanker

    same = {"objective": VARIANTS[variant], "random_state": seed, "n_jobs": 1, "verbose": -1}
    model = LGBMRanker(n_estimators=n_trees, **same, **settings)
    return model.fit(rows.X, rows.y, group=rows.sizes)


def default(variant, rows, seed):
    return fit(variant, rows, {}, 100, seed)


def stages(model, X, counts):
    scores, last, raw = [], 0, 0.0
    for count in counts:
        booster = model.booster_
        raw = raw + booster.predict(X, start_iteration=last, num_iteration=count - last)
        scores.append(raw)
        last = count
    return scores


def predict(model, X):
    return model.predict(X)
