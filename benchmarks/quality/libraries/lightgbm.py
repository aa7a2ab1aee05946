from benchmarks.quality.protocol import answer, choose

NAME = "LightGBM"
PACKAGE = "lightgbm"
NOTE = "learning rate 0.1, leaf-wise trees of 31 leaves, one per class; reads the category dtype"

predict = answer


def fit(train, valid, protocol):
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    model = choose(protocol, LGBMClassifier, LGBMRegressor)(
        n_estimators=protocol.max_rounds,
        random_state=protocol.seed,
        n_jobs=protocol.threads,
        verbosity=-1,
    )
    return model.fit(
        train.X,
        train.y,
        sample_weight=train.weight,
        eval_set=[(valid.X, valid.y)],
        eval_sample_weight=None if valid.weight is None else [valid.weight],
        callbacks=[early_stopping(protocol.patience, verbose=False)],
    )


def rounds(model):
    return model.best_iteration_ or model.n_estimators_
