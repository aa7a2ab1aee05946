from functools import partial

from benchmarks.peers import lightgbm_plain

NAME = "LightGBM quantised"
PACKAGE = lightgbm_plain.PACKAGE
IMPORT = lightgbm_plain.IMPORT
BY_CLASS = True
NOTE = "as LightGBM, with use_quantized_grad=True (4 gradient levels, its default)"

fit = partial(lightgbm_plain.fit, use_quantized_grad=True)
predict = lightgbm_plain.predict
fit_custom = partial(lightgbm_plain.fit_custom, use_quantized_grad=True)
predict_custom = lightgbm_plain.predict_custom
