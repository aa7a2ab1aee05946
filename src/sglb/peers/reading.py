"""Find the library of a model by the modules of its classes, without an import."""

from importlib import import_module
from typing import Any

from sglb.peers.base import PeerModel

# Package of a library -> module with the function `read`.
LIBRARIES = {
    "catboost": "sglb.peers.catboost",
    "lightgbm": "sglb.peers.lightgbm",
    "sklearn": "sglb.peers.sklearn",
    "xgboost": "sglb.peers.xgboost",
}


def read_model(model: Any) -> PeerModel:
    """Return what a posterior needs of a model."""
    packages = [kind.__module__.split(".")[0] for kind in type(model).__mro__]
    if "sglb" in packages:
        raise TypeError(
            f"a {type(model).__name__} has a posterior method: use model.posterior(X, y)"
        )
    # Estimators of other libraries are scikit-learn's as well, by their base classes.
    for package in sorted(LIBRARIES, key="sklearn".__eq__):
        if package in packages:
            reader: PeerModel = import_module(LIBRARIES[package]).read(model)
            return reader
    raise TypeError(
        f"posterior_of does not support {type(model).__name__}; supported are models of"
        f" {', '.join(LIBRARIES)}"
    )
