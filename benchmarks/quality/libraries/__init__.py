"""The libraries as a user meets them first: defaults, early stopping, own treatment of categories.

A library is a module with

    NAME, PACKAGE, NOTE              in the tables; as pip knows it; what it does by itself
    fit(train, valid, protocol)      two parts and the protocol -> model
    predict(model, X)                probability of each class, or numbers; this call is timed
    rounds(model)                    boosting rounds in the model

and, where it needs such a thing,

    prepare(train, valid, test)      frames -> frames in types it can read, off the clock
    predict_best(model, X)           if `predict` does not stop at the best round by itself

Libraries are imported inside the functions: one that is not installed can still be listed.
"""

from importlib import import_module, metadata

OWN = "sglb"
LIBRARIES = (OWN, "catboost", "lightgbm", "xgboost", "sklearn_hgb")


def get_library(name):
    if name not in LIBRARIES:
        raise ValueError(f"no library {name!r}; there are {', '.join(LIBRARIES)}")
    return import_module(f"benchmarks.quality.libraries.{name}")


def version(name):
    """The installed version of a library, None if it is not installed."""
    try:
        return metadata.version(get_library(name).PACKAGE)
    except metadata.PackageNotFoundError:
        return None
