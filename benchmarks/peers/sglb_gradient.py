from functools import partial

from benchmarks.peers import sglb_langevin

NAME = "sglb gradient"
PACKAGE = sglb_langevin.PACKAGE
IMPORT = sglb_langevin.IMPORT
NOTE = "as sglb, with the paper's gradient leaves and l2 0; to compare with CatBoost SGLB"

fit = partial(sglb_langevin.fit, leaf_method="gradient")
predict = sglb_langevin.predict
fit_custom = partial(sglb_langevin.fit_custom, leaf_method="gradient")
predict_custom = predict
predict_states = sglb_langevin.predict_states
score_states = sglb_langevin.score_states
