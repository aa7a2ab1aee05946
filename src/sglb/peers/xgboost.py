"""XGBoost: `pred_leaf` and `output_margin` of a Booster, `apply` of an estimator."""

import json
from typing import Any

import numpy as np

from sglb.peers.base import NO_CLASSES, PeerModel, loss_of

LOSSES = {
    "binary:logistic": "logistic",
    "binary:logitraw": "logistic",
    "reg:logistic": "logistic",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "reg:squarederror": "squared",
    "reg:absoluteerror": "absolute",
    "count:poisson": "poisson",
}


def read(model: Any) -> PeerModel:
    """Read a Booster or a fitted estimator."""
    is_booster = not hasattr(model, "get_booster")
    booster = model if is_booster else model.get_booster()
    learner = json.loads(booster.save_config())["learner"]
    objective = learner["objective"]["name"]
    classes = getattr(model, "classes_", NO_CLASSES)
    if not len(classes) and LOSSES.get(objective) in ("logistic", "softmax"):
        classes = np.arange(max(int(learner["learner_model_param"]["num_class"]), 2))
    loss = loss_of(LOSSES, objective, len(classes))
    if not is_booster:  # cuts itself back to the best iteration
        return PeerModel(
            objective,
            np.asarray(classes),
            lambda X: model.predict(X, output_margin=True),
            model.apply,
            loss,
        )
    return PeerModel(
        objective,
        np.asarray(classes),
        lambda X: booster.predict(_matrix(X), output_margin=True),
        lambda X: booster.predict(_matrix(X), pred_leaf=True),
        loss,
    )


def _matrix(X: Any) -> Any:
    from xgboost import DMatrix

    return X if isinstance(X, DMatrix) else DMatrix(X, enable_categorical=True)
