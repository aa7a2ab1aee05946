from functools import partial

from benchmarks.peers import hessboost_plain

NAME = "hessboost SGLB"
PACKAGE = hessboost_plain.PACKAGE
IMPORT = hessboost_plain.IMPORT
BY_CLASS = True
NOTE = "as hessboost, with langevin=True; temperature and shrink rate of sglb"

# sglb's temperature 1e-5 is hessboost's (and CatBoost's) diffusion_temperature 1 / 1e-5.
LANGEVIN = {"langevin": True, "diffusion_temperature": 1e5, "model_shrink_rate": 1e-5}

fit = partial(hessboost_plain.fit, **LANGEVIN)
predict = hessboost_plain.predict
fit_custom = partial(hessboost_plain.fit_custom, **LANGEVIN)
predict_custom = hessboost_plain.predict_custom
predict_row = hessboost_plain.predict_row


def predict_states(model, X, n):
    return model.predict_uncertainty(X, n)
