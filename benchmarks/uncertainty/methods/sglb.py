import time

from benchmarks.uncertainty.methods import Forecast
from sglb.distributions import Normal

NAME = "sglb"
PACKAGE = "sglb"
NOTE = (
    "`SGLBRegressor(uncertainty=True).fit(X, y)` and no other setting: the number of trees is"
    " cross-validated; `predict_distribution` is Student's, and again as a normal of its mean and"
    " variance; five chains are `n_chains=5`, a fit by itself"
)
CHAINS = {"sglb": 1, "sglb, 5 chains": 5}
VARIANTS = tuple(f"{name}{law}" for name in CHAINS for law in ("", ", normal"))


def forecast(train, test, seed, threads, **settings):
    """`settings` are for tests; the comparison has none."""
    forecasts = {}
    for name, n_chains in CHAINS.items():
        student, seconds = fit(train, test, seed, threads, n_chains=n_chains, **settings)
        normal = Normal(student.mean, student.std)
        forecasts[name] = Forecast.of(student, seconds)
        forecasts[f"{name}, normal"] = Forecast.of(normal, seconds)
    return forecasts


def fit(train, test, seed, threads, **settings):
    """The distribution of y in the test rows, and the seconds of the fit."""
    from sglb import SGLBRegressor

    model = SGLBRegressor(uncertainty=True, random_state=seed, n_jobs=threads, **settings)
    start = time.process_time()
    model.fit(*train)
    seconds = time.process_time() - start
    return model.predict_distribution(test), seconds
