"""Functions that are known: how often 90 % intervals of the posterior hold the function itself.

Friedman's first function of 10 columns, 5 of which matter; noise of deviation 1, or two classes
whose log odds are (f - 14.4) / 2.4, of deviation 2 over the rows.
"""

import time

import numpy as np

from benchmarks.uncertainty.methods import COVERAGE

N_TEST = 1000
TASKS = ("regression", "classes")
# (kind, prior variance); of numbers "auto" is 0.3.
PLANS = (("laplace", "auto"), ("laplace", 0.3), ("laplace", 1.0), ("full", 1.0), ("full", 3.0))


def function(X):
    """Friedman (1991)."""
    a, b, c, d, e = X[:, :5].T
    return 10.0 * np.sin(np.pi * a * b) + 20.0 * np.square(c - 0.5) + 10.0 * d + 5.0 * e


def simulate(task, n_rows, seed):
    """Features and outcome of training rows, and features and true mean of others."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows + N_TEST, 10))
    f = function(X)
    if task == "regression":
        y, truth = f + rng.normal(size=len(f)), f
    else:
        truth = 1.0 / (1.0 + np.exp(-(f - 14.4) / 2.4))
        y = (rng.uniform(size=len(f)) < truth).astype(np.int64)
    return X[:n_rows], y[:n_rows], X[n_rows:], truth[n_rows:]


def measure(task, n_rows, seed, threads, plans=PLANS, n_draws=100, **settings):
    """Coverage and width of the intervals of each plan: {plan: numbers}."""
    from sglb import SGLBClassifier, SGLBRegressor

    X, y, X_test, truth = simulate(task, n_rows, seed)
    numbers = task == "regression"
    kind = SGLBRegressor if numbers else SGLBClassifier
    extra = {"uncertainty": True} if numbers else {}
    model = kind(random_state=seed, n_jobs=threads, **extra, **settings)
    start = time.process_time()
    model.fit(X, y)
    fit_seconds = time.process_time() - start
    prediction = model.predict(X_test) if numbers else model.predict_proba(X_test)[:, 1]
    result = {}
    for posterior_kind, variance in plans:
        if numbers and variance == "auto":
            continue
        start = time.process_time()
        post = model.posterior(X, y, kind=posterior_kind, prior_variance=variance, n_draws=n_draws)
        seconds = time.process_time() - start
        draws = post.predict(X_test) if numbers else post.predict(X_test)[:, :, 1]
        low, high = np.quantile(draws, [0.5 - 0.5 * COVERAGE, 0.5 + 0.5 * COVERAGE], axis=0)
        result[f"{posterior_kind} {variance}"] = {
            "coverage": float(np.mean((low <= truth) & (truth <= high))),
            "width": float(np.mean(high - low)),
            "draws_error": float(np.sqrt(np.mean(np.square(draws.mean(axis=0) - truth)))),
            "model_error": float(np.sqrt(np.mean(np.square(prediction - truth)))),
            "prior_variance": post.plan.prior_variance,
            "fit_seconds": fit_seconds,
            "posterior_seconds": seconds,
        }
    return result
