import time

from benchmarks.uncertainty.methods import COVERAGE, Forecast

NAME = "quantile-forest"
PACKAGE = "quantile-forest"
NOTE = "`RandomForestQuantileRegressor`, 100 trees"
VARIANTS = ("quantile forest",)


def forecast(train, test, seed, threads):
    from quantile_forest import RandomForestQuantileRegressor

    start = time.process_time()
    model = RandomForestQuantileRegressor(random_state=seed, n_jobs=threads).fit(*train)
    seconds = time.process_time() - start
    levels = [0.5 - 0.5 * COVERAGE, 0.5 + 0.5 * COVERAGE]
    interval = model.predict(test, quantiles=levels)
    return {"quantile forest": Forecast(interval, seconds, model.predict(test, quantiles="mean"))}
