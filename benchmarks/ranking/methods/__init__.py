"""Rankers of each library.

A method is a module with

    NAME, PACKAGE                 in the tables; as pip knows it
    NOTE                          the space of its settings
    VARIANTS                      names of its rankers, each tuned by itself
    settings(variant, point)      from a point of the unit cube, DIMENSIONS long
    fit(variant, rows, settings, n_trees, seed)
    default(variant, rows, seed)  without any setting
    stages(model, X, counts)      scores after each of these numbers of trees
    predict(model, X)

All fits use one thread. Libraries are imported inside the functions.
"""

from importlib import import_module, metadata

METHODS = ("sglb", "lightgbm", "xgboost", "catboost")
TRIALS, DIMENSIONS = 6, 6


def log_between(share, low, high):
    return float(low * (high / low) ** share)


def between(share, low, high):
    return float(low + (high - low) * share)


def whole_between(share, low, high):
    """A whole number from low to high, both included."""
    return min(high, low + int(share * (high - low + 1)))


def rate_and_l2(point):
    """What all libraries have in common."""
    return log_between(point[0], 0.05, 0.3), log_between(point[2], 0.3, 30.0)


def get_method(name):
    if name not in METHODS:
        raise ValueError(f"no library {name!r}; there are {', '.join(METHODS)}")
    return import_module(f"benchmarks.ranking.methods.{name}")


def installed(name):
    """The version of a library, None without it."""
    try:
        return metadata.version(get_method(name).PACKAGE)
    except metadata.PackageNotFoundError:
        return None


def variants(names=METHODS):
    """(library, variant) of several libraries, in their order."""
    return [(name, variant) for name in names for variant in get_method(name).VARIANTS]


def library_of(variant):
    return next(name for name, known in variants() if known == variant)
