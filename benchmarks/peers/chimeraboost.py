from benchmarks import estimators, numpy_logistic

NAME = "ChimeraBoost"
PACKAGE = "chimeraboost"
IMPORT = "from chimeraboost import ChimeraBoostClassifier"
NOTE = (
    "oblivious trees, one with all outputs for several classes; one Newton step, l2 1; without"
    " its default extras: linear leaves, feature crosses, early stopping with a refit;"
    " compiled by Numba before the clock starts"
)

predict = estimators.predict


def train(kind, X, y, settings, **extra):
    model = kind(
        n_estimators=settings.n_trees,
        learning_rate=settings.learning_rate,
        depth=settings.depth,
        max_bins=settings.max_bins,
        thread_count=settings.threads,
        random_state=settings.seed,
        linear_leaves=False,
        cross_features=False,
        early_stopping=False,
        refit_full=False,
        **extra,
    )
    return model.fit(X, y)


def fit(X, y, settings):
    from chimeraboost import ChimeraBoostClassifier, ChimeraBoostRegressor

    kind = estimators.choose(settings, ChimeraBoostClassifier, ChimeraBoostRegressor)
    steps = {"leaf_estimation_iterations": 1} if settings.task == "binary" else {}
    return train(kind, X, y, settings, **steps)


def fit_custom(X, y, settings):
    from chimeraboost import ChimeraBoostRegressor, CustomObjective

    class NumPyLogistic(CustomObjective):
        def grad_hess(self, y, raw):
            return numpy_logistic.derivatives(y, raw)

        def eval(self, y, raw, sample_weight=None):
            return float(numpy_logistic.loss(y, raw).mean())

        def transform(self, raw):
            return numpy_logistic.sigmoid(raw)

    return train(ChimeraBoostRegressor, X, y, settings, loss=NumPyLogistic())


def predict_custom(model, X):
    return model.predict(X)


def warm_up():
    from chimeraboost import warmup

    warmup()
