import time

import numpy as np

from benchmarks.uncertainty.methods import MAX_ROUNDS, PATIENCE, Forecast, held_out
from sglb.distributions import Normal

NAME = "hessboost"
PACKAGE = "hessboost"
NOTE = f"`dist:normal`, at most {MAX_ROUNDS:,} rounds, stopped early, fitted again"
VARIANTS = ("hessboost",)


def forecast(train, test, seed, threads):
    from hessboost import DMatrix
    from hessboost import train as boost

    X, y = train
    learn, stop = held_out(len(y), seed)
    settings = {"objective": "dist:normal", "seed": seed, "nthread": threads}
    start = time.process_time()
    trial = boost(
        settings,
        DMatrix(X[learn], label=y[learn]),
        MAX_ROUNDS,
        evals=[(DMatrix(X[stop], label=y[stop]), "stop")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    rounds = trial.best_iteration + 1
    model = boost(settings, DMatrix(X, label=y), rounds, verbose_eval=False)
    seconds = time.process_time() - start
    result = model.predict_distribution(test)
    return {"hessboost": Forecast.of(Normal(result.mean(), np.sqrt(result.variance())), seconds)}
