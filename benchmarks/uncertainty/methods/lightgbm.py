import time

import numpy as np

from benchmarks.uncertainty.methods import COVERAGE, MAX_ROUNDS, PATIENCE, Forecast, held_out

NAME = "LightGBM"
PACKAGE = "lightgbm"
NOTE = (
    'two fits of `objective="quantile"`, at most'
    f" {MAX_ROUNDS:,} rounds, stopped early, fitted again; where the two cross they change places"
)
VARIANTS = ("lightgbm, quantiles",)


def forecast(train, test, seed, threads):
    import lightgbm

    X, y = train
    learn, stop = held_out(len(y), seed)
    same = {"objective": "quantile", "random_state": seed, "n_jobs": threads, "verbose": -1}
    ends, seconds = [], 0.0
    for level in (0.5 - 0.5 * COVERAGE, 0.5 + 0.5 * COVERAGE):
        start = time.process_time()
        trial = lightgbm.LGBMRegressor(n_estimators=MAX_ROUNDS, alpha=level, **same)
        watch = lightgbm.early_stopping(PATIENCE, verbose=False)
        trial.fit(X[learn], y[learn], eval_set=[(X[stop], y[stop])], callbacks=[watch])
        rounds = max(1, trial.best_iteration_)
        model = lightgbm.LGBMRegressor(n_estimators=rounds, alpha=level, **same).fit(X, y)
        seconds += time.process_time() - start
        ends.append(model.predict(test))
    return {"lightgbm, quantiles": Forecast(np.sort(np.column_stack(ends), axis=1), seconds)}
