from benchmarks import estimators, numpy_logistic

NAME = "LightGBM"
PACKAGE = "lightgbm"
IMPORT = "from lightgbm import LGBMClassifier"
BY_CLASS = True
NOTE = (
    "leaf-wise trees, num_leaves=2^depth and max_depth=depth, one per class and round; Newton"
    " leaves, l2 0, at least 20 rows per leaf"
)

predict = estimators.predict


def fit(X, y, settings, **extra):
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = estimators.choose(settings, LGBMClassifier, LGBMRegressor)
    model = kind(
        n_estimators=settings.n_trees,
        learning_rate=settings.learning_rate,
        num_leaves=2**settings.depth,
        max_depth=settings.depth,
        max_bin=settings.max_bins,
        n_jobs=settings.threads,
        random_state=settings.seed,
        verbose=-1,
        **extra,
    )
    return model.fit(X, y)


def fit_custom(X, y, settings, **extra):
    return fit(X, y, settings, objective=numpy_logistic.derivatives, **extra)


def predict_custom(model, X):
    return numpy_logistic.sigmoid(model.predict(X, raw_score=True))


def predict_row(model, row):
    return model.booster_.predict(row[None, :], num_threads=1)
