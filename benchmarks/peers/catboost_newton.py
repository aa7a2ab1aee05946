from functools import partial

from benchmarks.peers import catboost_default

NAME = "CatBoost Newton"
PACKAGE = catboost_default.PACKAGE
IMPORT = catboost_default.IMPORT
NOTE = "as CatBoost, with exactly one Newton step in the leaves"

ONE_STEP = {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}

fit = partial(catboost_default.fit, **ONE_STEP)
predict = catboost_default.predict
fit_custom = partial(catboost_default.fit_custom, **ONE_STEP)
predict_custom = catboost_default.predict_custom
