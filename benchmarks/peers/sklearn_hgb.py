from benchmarks import estimators

NAME = "scikit-learn HGB"
PACKAGE = "scikit-learn"
IMPORT = "from sklearn.ensemble import HistGradientBoostingClassifier"
BY_CLASS = True
NOTE = (
    "leaf-wise trees, max_leaf_nodes=2^depth and max_depth=depth, one per class and round; Newton"
    " leaves, l2 0, at least 20 rows per leaf; threads by OMP_NUM_THREADS; no custom loss"
)

predict = estimators.predict


def fit(X, y, settings):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = estimators.choose(
        settings, HistGradientBoostingClassifier, HistGradientBoostingRegressor
    )
    model = kind(
        max_iter=settings.n_trees,
        learning_rate=settings.learning_rate,
        max_leaf_nodes=2**settings.depth,
        max_depth=settings.depth,
        max_bins=settings.max_bins,
        random_state=settings.seed,
        early_stopping=False,
    )
    return model.fit(X, y)
