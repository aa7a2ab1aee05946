from benchmarks.quality.protocol import answer, categorical, choose

NAME = "CatBoost"
PACKAGE = "catboost"
NOTE = (
    "automatic learning rate, oblivious trees of depth 6; `cat_features` are the category columns;"
    " missing levels become a level of their own, which CatBoost requires"
)
MISSING = "(missing)"


def prepare(*frames):
    """Category columns as text without gaps."""
    result = []
    for frame in frames:
        ready = frame.copy()
        for name in categorical(frame):
            ready[name] = frame[name].astype(object).fillna(MISSING).astype(str).astype(object)
        result.append(ready)
    return result


def fit(train, valid, protocol):
    from catboost import CatBoostClassifier, CatBoostRegressor, Pool

    model = choose(protocol, CatBoostClassifier, CatBoostRegressor)(
        iterations=protocol.max_rounds,
        early_stopping_rounds=protocol.patience,
        random_seed=protocol.seed,
        thread_count=protocol.threads,
        verbose=False,
        allow_writing_files=False,
    )
    names = [name for name, kind in train.X.dtypes.items() if kind.kind == "O"]
    learned, watched = (
        Pool(part.X, part.y, cat_features=names, weight=part.weight) for part in (train, valid)
    )
    return model.fit(learned, eval_set=watched)


def predict(model, X):
    # Left alone, CatBoost predicts on all cores, whatever it was trained on.
    return answer(model, X, thread_count=model.get_param("thread_count"))


def rounds(model):
    return model.tree_count_
