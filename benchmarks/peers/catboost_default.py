import numpy as np

from benchmarks import estimators, numpy_logistic

NAME = "CatBoost"
PACKAGE = "catboost"
IMPORT = "from catboost import CatBoostClassifier"
NOTE = (
    "oblivious trees, one with all outputs for several classes; l2 3, structure on an MVS sample"
    " of 80 % of the rows, noise on split scores (random_strength 1); CatBoost chooses leaf"
    " method and number of leaf steps; Numba, if installed, compiles a custom loss"
)


class NumPyLogistic:
    # CatBoost maximises, so signs are turned; the tuple is what Numba can compile.
    def calc_ders_range(self, approxes, targets, weights):
        probability = 1.0 / (1.0 + np.exp(-approxes))
        return np.column_stack((targets - probability, -probability * (1.0 - probability)))


def fit(X, y, settings, **extra):
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = estimators.choose(settings, CatBoostClassifier, CatBoostRegressor)
    model = kind(
        iterations=settings.n_trees,
        learning_rate=settings.learning_rate,
        depth=settings.depth,
        border_count=settings.max_bins - 1,
        thread_count=settings.threads or -1,
        random_seed=settings.seed,
        verbose=False,
        allow_writing_files=False,
        **extra,
    )
    return model.fit(X, y)


def predict(model, X):
    # Left alone, CatBoost predicts on all cores, whatever it was trained on.
    return estimators.predict(model, X, thread_count=model.get_param("thread_count") or -1)


def fit_custom(X, y, settings, **extra):
    return fit(X, y, settings, loss_function=NumPyLogistic(), eval_metric="Logloss", **extra)


def predict_custom(model, X):
    threads = model.get_param("thread_count")
    raw = model.predict(X, prediction_type="RawFormulaVal", thread_count=threads)
    return numpy_logistic.sigmoid(raw)


def predict_states(model, X, n):
    return _virtual_ensemble(model, X, n, "TotalUncertainty")


def score_states(model, X, n):
    return _virtual_ensemble(model, X, n, "VirtEnsembles")


def _virtual_ensemble(model, X, n, kind):
    return model.virtual_ensembles_predict(
        X,
        prediction_type=kind,
        virtual_ensembles_count=n,
        thread_count=model.get_param("thread_count"),
    )
