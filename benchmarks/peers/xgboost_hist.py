from benchmarks import estimators, numpy_logistic

NAME = "XGBoost"
PACKAGE = "xgboost"
IMPORT = "from xgboost import XGBClassifier"
BY_CLASS = True
NOTE = (
    "tree_method='hist', depth-wise trees, one per class and round; Newton leaves, l2 1, a Hessian"
    " sum of at least 1 per leaf"
)

predict = estimators.predict


def fit(X, y, settings, **extra):
    from xgboost import XGBClassifier, XGBRegressor

    kind = estimators.choose(settings, XGBClassifier, XGBRegressor)
    model = kind(
        n_estimators=settings.n_trees,
        learning_rate=settings.learning_rate,
        max_depth=settings.depth,
        max_bin=settings.max_bins,
        n_jobs=settings.threads,
        random_state=settings.seed,
        tree_method="hist",
        **extra,
    )
    return model.fit(X, y)


def fit_custom(X, y, settings):
    # The classifier reads base_score as a probability even here: .5 is a raw score of 0.
    return fit(X, y, settings, objective=numpy_logistic.derivatives, base_score=0.5)


def predict_custom(model, X):
    return numpy_logistic.sigmoid(model.predict(X, output_margin=True))


def predict_row(model, row):
    return model.get_booster().inplace_predict(row[None, :])
