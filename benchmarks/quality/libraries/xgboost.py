from benchmarks.quality.protocol import answer, choose

NAME = "XGBoost"
PACKAGE = "xgboost"
NOTE = "learning rate 0.3, depth-wise trees of depth 6, one per class; `enable_categorical=True`"

predict = answer


def fit(train, valid, protocol):
    from xgboost import XGBClassifier, XGBRegressor

    model = choose(protocol, XGBClassifier, XGBRegressor)(
        n_estimators=protocol.max_rounds,
        early_stopping_rounds=protocol.patience,
        random_state=protocol.seed,
        n_jobs=protocol.threads,
        enable_categorical=True,
    )
    return model.fit(
        train.X,
        train.y,
        sample_weight=train.weight,
        eval_set=[(valid.X, valid.y)],
        sample_weight_eval_set=None if valid.weight is None else [valid.weight],
        verbose=False,
    )


def rounds(model):
    return model.best_iteration + 1
