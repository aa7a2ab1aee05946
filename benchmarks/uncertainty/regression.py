"""Distributions of y: log likelihood, CRPS, error, coverage and width of 90 % intervals."""

from math import log

import numpy as np

from benchmarks.uncertainty.methods import COVERAGE, get_method
from sglb.calibration import coverage_by_scale
from sglb.datasets import data_folder, load_table

MANY = 2000  # test rows from which coverage by predicted scale is told: 400 of a quintile
TEST = 0.1


def load(name):
    """Features (n_rows, n_features) and y; categories are numbers for every method."""
    table = load_table(name)
    frame = table.X.to_pandas()
    for column in frame.columns[[kind.name == "category" for kind in frame.dtypes]]:
        frame[column] = frame[column].cat.codes
    return frame.to_numpy(dtype=np.float64), table.y.astype(np.float64)


def is_test(name, n_rows, split):
    """Which rows an official split scores on; a random tenth where a set has no splits."""
    import pandas as pd

    path = data_folder() / "splits" / f"{name}.splits.parquet"
    if path.exists():
        return pd.read_parquet(path, columns=[f"test_{split}"]).to_numpy()[:, 0].astype(bool)
    return np.random.default_rng(split).permutation(n_rows) < round(TEST * n_rows)


def measure(method, X, y, test, seed, threads, **settings):
    """Scores of every forecast of a method, in the unit of y: {variant: numbers}.

    y is standardised by its training rows for every method, and scores are taken back.
    """
    centre, unit = y[~test].mean(), y[~test].std()
    z = (y - centre) / unit
    forecasts = get_method(method).forecast(
        (X[~test], z[~test]), X[test], seed, threads, **settings
    )
    shape = {"rows": int((~test).sum()), "test_rows": int(test.sum())}
    return {name: shape | scores(single, z[test], unit) for name, single in forecasts.items()}


def scores(forecast, z, unit):
    """Scores in the unit of y of a forecast of z = y / unit.

    `interval_score` is width + 2 / (1 - coverage) times how far y is outside (Gneiting and
    Raftery, 2007): the one number for which narrower and right are both better.
    """
    low, high = forecast.interval.T
    outside = np.maximum(low - z, 0.0) + np.maximum(z - high, 0.0)
    result = {
        "coverage": float(np.mean(outside == 0.0)),
        "width": unit * float(np.mean(high - low)),
        "interval_score": unit * float(np.mean(high - low + 2.0 / (1.0 - COVERAGE) * outside)),
        "fit_seconds": forecast.seconds,
    }
    if forecast.mean is not None:
        result["rmse"] = unit * float(np.sqrt(np.mean(np.square(forecast.mean - z))))
    if forecast.distribution is not None:
        result["nll"] = log(unit) - float(np.mean(forecast.distribution.logpdf(z)))
        result["crps"] = unit * float(np.mean(forecast.distribution.crps(z)))
    if len(z) >= MANY:
        table = coverage_by_scale(z, forecast.interval, high - low, 5)
        result["by_scale"] = [float(value) for value in table.coverage]
    return result
