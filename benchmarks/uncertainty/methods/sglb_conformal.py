import time

from benchmarks.uncertainty.methods import COVERAGE, Forecast, held_out

NAME = "sglb, conformal"
PACKAGE = "sglb"
NOTE = (
    "`SGLBRegressor(uncertainty=True)` on four fifths of the training rows,"
    " `conformalize` by the others: intervals only"
)
VARIANTS = ("sglb, conformal",)


def forecast(train, test, seed, threads):
    from sglb import SGLBRegressor

    X, y = train
    learn, calibrate = held_out(len(y), seed)
    start = time.process_time()
    model = SGLBRegressor(uncertainty=True, random_state=seed, n_jobs=threads)
    model.fit(X[learn], y[learn])
    calibrated = model.conformalize(X[calibrate], y[calibrate])
    seconds = time.process_time() - start
    interval = calibrated.predict_interval(test, COVERAGE).bounds
    return {"sglb, conformal": Forecast(interval, seconds, model.predict(test))}
