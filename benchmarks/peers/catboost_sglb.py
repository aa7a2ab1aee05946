from functools import partial

from benchmarks.peers import catboost_default

NAME = "CatBoost SGLB"
PACKAGE = catboost_default.PACKAGE
IMPORT = catboost_default.IMPORT
NOTE = (
    "as CatBoost, with langevin=True and one gradient step in the leaves, the only setting in"
    " which its noise has an effect; temperature and shrink rate of sglb"
)

# sglb's temperature 1e-5 is CatBoost's diffusion_temperature 1 / 1e-5.
LANGEVIN = {
    "langevin": True,
    "diffusion_temperature": 1e5,
    "model_shrink_rate": 1e-5,
    "leaf_estimation_method": "Gradient",
    "leaf_estimation_iterations": 1,
}

fit = partial(catboost_default.fit, **LANGEVIN)
predict = catboost_default.predict
fit_custom = partial(catboost_default.fit_custom, **LANGEVIN)
predict_custom = catboost_default.predict_custom
predict_states = catboost_default.predict_states
score_states = catboost_default.score_states
