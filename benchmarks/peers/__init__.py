"""The libraries, one module each.

A peer is a module with

    NAME, PACKAGE, NOTE              in the table; as pip knows it; what it does differently
    IMPORT                           the statement a user writes before the first fit
    BY_CLASS                         True if a round is a tree for each class; False if left out
    fit(X, y, settings) -> model
    predict(model, X)                probability of class 1, or of each class, or the number

and, where the library has such a thing,

    fit_custom(X, y, settings)       with the loss of `numpy_logistic`, on binary labels
    predict_custom(model, X)         probability of class 1 of such a model
    fit_built_in(X, y, settings)     the built-in loss trained as a custom one is; `fit` if left out
    predict_row(model, row)          its call for one row (n_features,) without an estimator around
    predict_states(model, X, n)      uncertainty from n states of one model
    score_states(model, X, n)        raw scores of these states
    warm_up()                        more than a tiny fit does
    enters(problem)                  whether it says anything new there; True if left out

Libraries are imported inside the functions: a peer that is not installed can still be listed.
"""

from importlib import import_module, metadata

PEERS = (
    "sglb_langevin",
    "sglb_gradient",
    "sglb_plain",
    "sglb_ten_steps",
    "catboost_sglb",
    "catboost_newton",
    "catboost_default",
    "lightgbm_plain",
    "lightgbm_quantised",
    "xgboost_hist",
    "hessboost_plain",
    "hessboost_langevin",
    "sklearn_hgb",
    "chimeraboost",
)
OWN = tuple(name for name in PEERS if name.startswith("sglb_"))


def get_peer(name):
    if name not in PEERS:
        raise ValueError(f"no peer {name!r}; there are {', '.join(PEERS)}")
    return import_module(f"benchmarks.peers.{name}")


def version(name):
    """The installed version of a peer's package, None if it is not installed."""
    try:
        return metadata.version(get_peer(name).PACKAGE)
    except metadata.PackageNotFoundError:
        return None
