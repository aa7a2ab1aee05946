"""CatBoost: `calc_leaf_indexes` and `RawFormulaVal`. A tree has values for all classes."""

from typing import Any

import numpy as np

from sglb.peers.base import NO_CLASSES, PeerModel, loss_of

LOSSES = {
    "Logloss": "logistic",
    "MultiClass": "softmax",
    "RMSE": "squared",
    "MAE": "absolute",
    "Quantile": "quantile",
    "Poisson": "poisson",
}


def read(model: Any) -> PeerModel:
    """Read a fitted model."""
    objective = str(model.get_all_params().get("loss_function", "custom"))
    name, _, words = objective.partition(":")
    options = dict(word.split("=", 1) for word in words.split(";") if "=" in word)
    level = {"level": float(options.get("alpha", 0.5))} if name == "Quantile" else {}
    classes = np.asarray(model.classes_)
    is_class = len(classes) > 0
    return PeerModel(
        objective,
        classes if is_class else NO_CLASSES,
        lambda X: model.predict(X, prediction_type="RawFormulaVal"),
        model.calc_leaf_indexes,
        loss_of(LOSSES, name, len(classes), **level),
    )
