from benchmarks import estimators, numpy_logistic

NAME = "sglb"
PACKAGE = "sglb"
IMPORT = "from sglb import SGLBClassifier"
NOTE = (
    "sampler='langevin', automatic temperature and shrink rate; oblivious trees, one with all"
    " outputs for several classes; one Newton step, three for two classes from 300,000 rows on"
    " (leaf_steps='auto'), l2 3; structure on a sample of the rows and of the outputs"
    " (structure_sample='auto'); a custom loss takes one step, and is compared with one step"
)


class NumPyLogistic:
    convex = True
    row_wise = True
    loss = staticmethod(numpy_logistic.loss)
    gradient = staticmethod(numpy_logistic.gradient)
    hessian = staticmethod(numpy_logistic.hessian)
    derivatives = staticmethod(numpy_logistic.derivatives)


def fit(X, y, settings, **extra):
    from sglb import SGLBClassifier, SGLBRegressor

    kind = estimators.choose(settings, SGLBClassifier, SGLBRegressor)
    model = kind(
        n_estimators=settings.n_trees,
        learning_rate=settings.learning_rate,
        max_depth=settings.depth,
        max_bins=settings.max_bins,
        n_jobs=settings.threads,
        random_state=settings.seed,
        **extra,
    )
    return model.fit(X, y)


def fit_custom(X, y, settings, **extra):
    return fit(X, y, settings, loss=NumPyLogistic(), **extra)


def fit_built_in(X, y, settings, **extra):
    return fit(X, y, settings, leaf_steps=1, **extra)


predict = predict_custom = estimators.predict


def predict_row(model, row):
    if not hasattr(model, "_row_predictor"):
        model._row_predictor = model.row_predictor()
    return model._row_predictor(row)


def predict_states(model, X, n):
    return model.predict_uncertainty(X, n_states=n)


def score_states(model, X, n):
    from sglb.posterior import virtual_states

    states = virtual_states(len(model.trace_), n).tolist()
    return model.trace_.states(states).predict(X, model.n_jobs)
