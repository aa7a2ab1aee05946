from benchmarks import numpy_logistic

NAME = "hessboost"
PACKAGE = "hessboost"
IMPORT = "import hessboost"
BY_CLASS = True
NOTE = (
    "train() on a DMatrix built within the measured time; tree_method='hist', depth-wise trees,"
    " one per class and round; Newton leaves, l2 1, a Hessian sum of at least 1 per leaf"
)

OBJECTIVES = {
    "binary": "binary:logistic",
    "multiclass": "multi:softprob",
    "regression": "reg:squarederror",
}


def train(X, y, settings, parameters, obj=None):
    import hessboost

    parameters = parameters | {
        "tree_method": "hist",
        "eta": settings.learning_rate,
        "max_depth": settings.depth,
        "max_bin": settings.max_bins,
        "seed": settings.seed,
    }
    if settings.threads is not None:
        parameters["nthread"] = settings.threads
    rows = hessboost.DMatrix(X, label=y)
    return hessboost.train(parameters, rows, settings.n_trees, obj=obj, verbose_eval=False)


def fit(X, y, settings, **extra):
    parameters = {"objective": OBJECTIVES[settings.task], **extra}
    if settings.task == "multiclass":
        parameters["num_class"] = settings.n_classes
    return train(X, y, settings, parameters)


def predict(model, X):
    return model.predict(X)


def fit_custom(X, y, settings, **extra):
    def objective(raw, rows):
        return numpy_logistic.derivatives(y, raw)

    return train(X, y, settings, extra, objective)


def predict_custom(model, X):
    return numpy_logistic.sigmoid(model.predict(X))


def predict_row(model, row):
    return model.predict_row(row)
