from functools import partial

from benchmarks.peers import sglb_langevin

NAME = "sglb plain"
PACKAGE = sglb_langevin.PACKAGE
IMPORT = sglb_langevin.IMPORT
NOTE = "as sglb, without noise and shrinking (sampler='plain')"

fit = partial(sglb_langevin.fit, sampler="plain")
predict = sglb_langevin.predict
fit_custom = partial(sglb_langevin.fit_custom, sampler="plain")
fit_built_in = partial(sglb_langevin.fit_built_in, sampler="plain")
predict_custom = predict
