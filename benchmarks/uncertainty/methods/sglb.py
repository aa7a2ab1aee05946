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
    """`settings` are for tests and other numbers of chains; the comparison has none."""
    student, seconds = fit(train, test, seed, threads, **settings)
    normal = Normal(student.mean, student.std)
    return dict(
        zip(VARIANTS, (Forecast.of(law, seconds) for law in (student, normal)), strict=True)
    )


def fit(train, test, seed, threads, **settings):
    """The distribution of y in the test rows, and the seconds of the fit."""
    from sglb import SGLBRegressor

    model = SGLBRegressor(uncertainty=True, random_state=seed, n_jobs=threads, **settings)
    start = time.process_time()
    model.fit(*train)
    seconds = time.process_time() - start
    return model.predict_distribution(test), seconds
