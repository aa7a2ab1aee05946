from benchmarks.quality.protocol import answer, choose

NAME = "sglb"
PACKAGE = "sglb"
NOTE = "automatic learning rate, depth and bins, oblivious trees; reads the frame unchanged"

predict = answer


def fit(train, valid, protocol, **settings):
    """`settings` are for `benchmarks.defaults`; the comparison has none."""
    from sglb import SGLBClassifier, SGLBRegressor

    kept = {
        "n_estimators": protocol.max_rounds,
        "early_stopping_rounds": protocol.patience,
        "random_state": protocol.seed,
        "n_jobs": protocol.threads,
    }
    model = choose(protocol, SGLBClassifier, SGLBRegressor)(**kept | settings)
    watched = (valid.X, valid.y) if valid.weight is None else (valid.X, valid.y, valid.weight)
    return model.fit(train.X, train.y, sample_weight=train.weight, eval_set=[watched])


def rounds(model):
    return model.n_iter_
