from itertools import islice

import numpy as np

from benchmarks.quality.protocol import answer, categorical, choose

NAME = "scikit-learn HGB"
PACKAGE = "scikit-learn"
NOTE = (
    "learning rate 0.1, leaf-wise trees of 31 leaves, one per class; reads the category dtype, but"
    " of more than 255 levels only the 254 most frequent in training are kept and the others are"
    " pooled; columns without any value in training are dropped; scored at its best round on the"
    " validation rows, although its `predict` uses all rounds"
)
MOST_LEVELS = 255
POOLED = "(pooled)"

predict = answer


def prepare(train, *others):
    """Drop columns that hold nothing in training, which HGB cannot bin; pool rare levels of
    columns with more levels than it can hold.
    """
    kept_columns = train.columns[train.notna().any()]
    frames = [frame[kept_columns].copy() for frame in (train, *others)]
    for name in categorical(frames[0]):
        counts = train[name].value_counts()
        counts = counts[counts > 0]
        if len(counts) > MOST_LEVELS:
            kept = counts.index[: MOST_LEVELS - 1].tolist()
            for frame in frames:
                column = frame[name].astype(object)
                column = column.where(column.isin(kept) | column.isna(), POOLED)
                frame[name] = column.astype(_levels([*kept, POOLED]))
    return frames


def _levels(names):
    from pandas import CategoricalDtype

    return CategoricalDtype(sorted(names))


def fit(train, valid, protocol):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    model = choose(protocol, HistGradientBoostingClassifier, HistGradientBoostingRegressor)(
        max_iter=protocol.max_rounds,
        early_stopping=True,
        n_iter_no_change=protocol.patience,
        random_state=protocol.seed,
        categorical_features="from_dtype",
    )
    return model.fit(
        train.X,
        train.y,
        sample_weight=train.weight,
        X_val=valid.X,
        y_val=valid.y,
        sample_weight_val=valid.weight,
    )


def rounds(model):
    """The best round; entry 0 of the scores is the model before its first tree."""
    return max(1, int(np.argmax(model.validation_score_)))


def predict_best(model, X):
    classes = hasattr(model, "predict_proba")
    stages = model.staged_predict_proba(X) if classes else model.staged_predict(X)
    return next(islice(stages, rounds(model) - 1, None))
