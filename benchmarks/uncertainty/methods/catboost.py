import time

import numpy as np

from benchmarks.uncertainty.methods import MAX_ROUNDS, PATIENCE, Forecast, held_out
from sglb.distributions import Normal

NAME = "CatBoost"
PACKAGE = "catboost"
NOTE = (
    f"`RMSEWithUncertainty`, at most {MAX_ROUNDS:,} rounds, stopped early, fitted again at the same"
    " learning rate; virtual ensembles of 10 of that fit: normal, the variance is data + knowledge"
)
VARIANTS = ("catboost", "catboost, virtual")


def forecast(train, test, seed, threads):
    from catboost import CatBoostRegressor

    X, y = train
    learn, stop = held_out(len(y), seed)
    same = {
        "loss_function": "RMSEWithUncertainty",
        "random_seed": seed,
        "thread_count": threads,
        "verbose": False,
        "allow_writing_files": False,
    }
    start = time.process_time()
    trial = CatBoostRegressor(iterations=MAX_ROUNDS, early_stopping_rounds=PATIENCE, **same)
    trial.fit(X[learn], y[learn], eval_set=(X[stop], y[stop]))
    model = CatBoostRegressor(
        iterations=max(trial.tree_count_, 2), learning_rate=trial.learning_rate_, **same
    ).fit(X, y)
    seconds = time.process_time() - start
    mean, variance = model.predict(test).T
    count = min(10, model.tree_count_ // 2)
    parts = model.virtual_ensembles_predict(
        test, prediction_type="TotalUncertainty", virtual_ensembles_count=count
    ).T
    virtual = Normal(parts[0], np.sqrt(parts[1] + parts[2]))
    return {
        "catboost": Forecast.of(Normal(mean, np.sqrt(variance)), seconds),
        "catboost, virtual": Forecast.of(virtual, seconds),
    }
