from benchmarks.ranking.methods import between, log_between, rate_and_l2, whole_between

NAME = "XGBoost"
PACKAGE = "xgboost"
NOTE = (
    "max_depth 3 to 8, colsample_bytree and subsample 0.3 to 1, min_child_weight 0.01 to 3;"
    ' tree_method "hist"'
)
VARIANTS = {"xgboost rank:ndcg": "rank:ndcg"}


def settings(variant, point):
    rate, l2 = rate_and_l2(point)
    return {
        "learning_rate": rate,
        "max_depth": whole_between(point[1], 3, 8),
        "reg_lambda": l2,
        "colsample_bytree": between(point[3], 0.3, 1.0),
        "subsample": between(point[4], 0.3, 1.0),
        "min_child_weight": log_between(point[5], 0.01, 3.0),
    }


def fit(variant, rows, settings, n_trees, seed):
    from xgboost import XGBRanker

    same = {"objective": VARIANTS[variant], "random_state": seed, "n_jobs": 1}
    model = XGBRanker(n_estimators=n_trees, tree_method="hist", **same, **settings)
    return model.fit(rows.X, rows.y, qid=rows.query)


def default(variant, rows, seed):
    return fit(variant, rows, {}, 100, seed)


def stages(model, X, counts):
    return [model.predict(X, iteration_range=(0, count)) for count in counts]


def predict(model, X):
    return model.predict(X)
