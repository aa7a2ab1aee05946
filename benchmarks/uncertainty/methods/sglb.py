import time

from benchmarks.uncertainty.methods import Forecast
from sglb.distributions import Normal

NAME = "sglb"
PACKAGE = "sglb"
NOTE = (
    "`SGLBRegressor(uncertainty=True).fit(X, y)` and no other setting: the number of trees is"
    " cross-validated; `predict_distribution` is Student's, and again as a normal of its mean and"
    " variance"
)
VARIANTS = ("sglb", "sglb, normal")


def forecast(train, test, seed, threads, **settings):
    """`settings` are for tests; the comparison has none."""
    from sglb import SGLBRegressor

    model = SGLBRegressor(uncertainty=True, random_state=seed, n_jobs=threads, **settings)
    start = time.process_time()
    model.fit(*train)
    seconds = time.process_time() - start
    student = model.predict_distribution(test)
    normal = Normal(student.mean, student.std)
    return {"sglb": Forecast.of(student, seconds), "sglb, normal": Forecast.of(normal, seconds)}
