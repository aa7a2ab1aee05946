"""Distributions of y as each library gives them.

A method is a module with

    NAME, PACKAGE, NOTE              in the tables; as pip knows it; what was set
    VARIANTS                         names of the forecasts; several may be of one fit
    forecast(train, test, seed, threads) -> {variant: Forecast}

`train` is (X, y), y of mean 0 and standard deviation 1; `test` is X. Libraries are imported inside
the functions. Those that stop early do so on a fifth of the training rows, after PATIENCE rounds
without improvement and MAX_ROUNDS at most; then they are fitted again to all training rows with
that number of rounds.
"""

from importlib import import_module, metadata
from typing import Any, NamedTuple

import numpy as np

OWN = "sglb"
LAWS = (OWN, "sglb_chains")  # methods of this library with a distribution of y
METHODS = (*LAWS, "sglb_conformal")
METHODS += ("ngboost", "catboost", "lightgbm", "quantile_forest", "hessboost")
MAX_ROUNDS, PATIENCE = 1000, 50
HELD_OUT = 0.2
COVERAGE = 0.9


class Forecast(NamedTuple):
    """Mean and interval of each row, the whole distribution where there is one, and fit time."""

    interval: np.ndarray
    seconds: float
    mean: np.ndarray | None = None
    distribution: Any = None

    @classmethod
    def of(cls, distribution, seconds):
        return cls(distribution.interval(COVERAGE), seconds, distribution.mean, distribution)


def held_out(n_rows, seed):
    """Rows to learn from and rows to stop by."""
    order = np.random.default_rng(seed).permutation(n_rows)
    n_valid = round(HELD_OUT * n_rows)
    return order[n_valid:], order[:n_valid]


def get_method(name):
    if name not in METHODS:
        raise ValueError(f"no method {name!r}; there are {', '.join(METHODS)}")
    return import_module(f"benchmarks.uncertainty.methods.{name}")


def installed(name):
    """The version of a library, None without it."""
    try:
        return metadata.version(get_method(name).PACKAGE)
    except metadata.PackageNotFoundError:
        return None


def variants(names):
    """Forecasts of several methods, in their order."""
    return [variant for name in names for variant in get_method(name).VARIANTS]
