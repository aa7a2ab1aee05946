"""What uncertainty costs: times of one process, and their ratios."""

import time

import numpy as np

from benchmarks.uncertainty.known import simulate

REPEATS = 3


def seconds_of(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def uncertainty(n_rows, seed, threads, **settings):
    """A fit with uncertainty=True against one without, of the same rows."""
    from sglb import SGLBRegressor

    X, y, _, _ = simulate("regression", n_rows, seed)
    plain, full = (
        SGLBRegressor(uncertainty=flag, random_state=seed, n_jobs=threads, **settings)
        for flag in (False, True)
    )
    before, _ = seconds_of(lambda: plain.fit(X, y))
    with_it, _ = seconds_of(lambda: full.fit(X, y))
    return {"base_seconds": before, "seconds": with_it, "trees": int(plain.n_iter_)}


def posterior(n_rows, seed, threads, **settings):
    """100 draws from the posterior of a classifier against its fit."""
    from sglb import SGLBClassifier

    X, y, _, _ = simulate("classes", n_rows, seed)
    model = SGLBClassifier(random_state=seed, n_jobs=threads, **settings)
    before, _ = seconds_of(lambda: model.fit(X, y))
    fixed, _ = seconds_of(lambda: model.posterior(X, y, n_draws=100, prior_variance=0.3))
    automatic, post = seconds_of(lambda: model.posterior(X, y, n_draws=100))
    return {
        "base_seconds": before,
        "seconds": automatic,
        "fixed_seconds": fixed,
        "trees": int(model.n_iter_),
        "prior_variance": post.plan.prior_variance,
    }


def ngboost(n_rows, seed, threads, rounds=20):
    """NGBoost's 500 rounds, from 20 of them: rounds cost the same."""
    from ngboost import NGBRegressor

    X, y, _, _ = simulate("regression", n_rows, seed)
    y = (y - y.mean()) / np.std(y)
    model = NGBRegressor(n_estimators=rounds, random_state=seed, verbose=False)
    results, _ = seconds_of(lambda: model.fit(X, y))
    return {"seconds": results * 500.0 / rounds, "measured_rounds": rounds}


TIMES = {"uncertainty": uncertainty, "posterior": posterior, "ngboost": ngboost}
JOBS = (
    ("uncertainty", 5_000),
    ("uncertainty", 20_000),
    ("uncertainty", 100_000),
    ("posterior", 20_000),
    ("ngboost", 5_000),
    ("ngboost", 20_000),
    ("ngboost", 100_000),
)
