"""LightGBM: `pred_leaf` and `raw_score` of a Booster."""

import re
from typing import Any

import numpy as np

from sglb.peers.base import NO_CLASSES, PeerModel, loss_of

LOSSES = {
    "binary": "logistic",
    "multiclass": "softmax",
    "regression": "squared",
    "regression_l1": "absolute",
    "quantile": "quantile",
    "poisson": "poisson",
}


def read(model: Any) -> PeerModel:
    """Read a Booster, or the Booster of a fitted estimator."""
    booster = model if hasattr(model, "model_to_string") else model.booster_
    # Such as "binary sigmoid:1"; "regression sqrt" is the square root of y.
    text = booster.model_to_string(num_iteration=1)
    line = re.search(r"^objective=(.*)$", text, re.MULTILINE)
    objective, *words = line.group(1).split() if line else ["custom"]
    options = dict(word.split(":", 1) for word in words if ":" in word)
    classes = getattr(model, "classes_", NO_CLASSES)
    if not len(classes) and objective in ("binary", "multiclass", "multiclassova"):
        classes = np.arange(int(options.get("num_class", 2)))
    # Raw scores are in units of the sigmoid's: P = 1 / (1 + exp(-sigmoid raw)).
    unit = float(options.get("sigmoid", 1.0))
    alpha = re.search(r"^\[alpha: (.*)\]$", text, re.MULTILINE)
    level = {"level": float(alpha.group(1))} if objective == "quantile" and alpha else {}
    is_plain = len(words) == len(options)
    return PeerModel(
        " ".join([objective, *words]),
        np.asarray(classes),
        lambda X: unit * np.asarray(booster.predict(X, raw_score=True)),
        lambda X: booster.predict(X, pred_leaf=True),
        loss_of(LOSSES, objective, len(classes), **level) if is_plain else None,
    )
