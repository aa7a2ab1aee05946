from benchmarks.ranking.methods import between, log_between, rate_and_l2, whole_between

NAME = "sglb"
PACKAGE = "sglb"
NOTE = (
    "max_depth 4 to 8, random_strength 0 to 2, structure_sample 0.3 to 1, shrink_rate 1e-4 to 1e-2;"
    " the temperature is automatic"
)
VARIANTS = {
    "sglb query_squared": "query_squared",
    "sglb stochastic_rank": "stochastic_rank",
    "sglb yeti": "yeti",
    "sglb lambdarank": "lambdarank",
}


def settings(variant, point):
    rate, l2 = rate_and_l2(point)
    return {
        "learning_rate": rate,
        "max_depth": whole_between(point[1], 4, 8),
        "l2_regularization": l2,
        "random_strength": between(point[3], 0.0, 2.0),
        "structure_sample": between(point[4], 0.3, 1.0),
        "shrink_rate": log_between(point[5], 1e-4, 1e-2),
    }


def fit(variant, rows, settings, n_trees, seed):
    from sglb import SGLBRanker

    stated = {"loss": VARIANTS.get(variant), "random_state": seed, "n_jobs": 1} | settings
    model = SGLBRanker(n_estimators=n_trees, **stated)
    return model.fit(rows.X, rows.y, group=rows.query)


def default(variant, rows, seed):
    return fit(variant, rows, {}, "auto", seed)


def stages(model, X, counts):
    wanted = set(counts)
    scores = enumerate(model.staged_predict(X), 1)
    return [raw.copy() for count, raw in scores if count in wanted]


def predict(model, X):
    return model.predict(X)
