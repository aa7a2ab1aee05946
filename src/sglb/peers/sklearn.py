"""scikit-learn: `apply` of forests and of GradientBoosting.

A forest has no raw scores, so that its prediction takes their place: for classes the logarithm of
its probabilities, which are at least half the vote of a tree.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sglb.losses import Loss
from sglb.peers.base import NO_CLASSES, PeerModel, loss_of

Floats = NDArray[np.float64]

LOSSES = {
    "log_loss": "logistic",
    "squared_error": "squared",
    "absolute_error": "absolute",
    "quantile": "quantile",
}


def read(model: Any) -> PeerModel:
    """Read a fitted forest or GradientBoosting."""
    names = {kind.__name__ for kind in type(model).__mro__}
    for kind, read_fitted in (
        ("BaseForest", _read_forest),
        ("BaseGradientBoosting", _read_boosting),
    ):
        if kind in names:
            check_is_fitted(model)
            return read_fitted(model)
    reason = "it is not an ensemble of trees with a method `apply`"
    if "BaseHistGradientBoosting" in names:
        reason = "scikit-learn does not tell the leaves of its rows; GradientBoosting has `apply`"
    raise TypeError(f"no posterior of {type(model).__name__}: {reason}")


def _read_boosting(model: Any) -> PeerModel:
    classes = np.asarray(getattr(model, "classes_", NO_CLASSES))
    level = {"level": float(model.alpha)} if model.loss == "quantile" else {}
    return PeerModel(
        str(model.loss),
        classes,
        model.decision_function if len(classes) else model.predict,
        model.apply,
        _loss(model.loss, classes, level),
    )


def _read_forest(model: Any) -> PeerModel:
    if model.n_outputs_ > 1:
        name = type(model).__name__
        raise TypeError(f"posterior_of does not support a {name} with several targets")
    classes = np.asarray(getattr(model, "classes_", NO_CLASSES))
    objective = "log_loss" if len(classes) else str(model.criterion)
    # Trees that average, whatever they were grown by, predict means.
    loss = None if objective == "absolute_error" else _loss("squared_error", classes, {})
    if len(classes):
        loss = _loss("log_loss", classes, {})
    half_vote = 0.5 / len(model.estimators_)

    def raw(X: Any) -> Floats:
        if not len(classes):
            return np.asarray(model.predict(X))
        scores: Floats = np.log(np.maximum(model.predict_proba(X), half_vote))
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(classes) == 2 else scores

    return PeerModel(objective, classes, raw, model.apply, loss)


def _loss(name: str, classes: NDArray[Any], parameters: dict[str, float]) -> Loss | None:
    if len(classes) > 2 and name in LOSSES:
        return loss_of({name: "softmax"}, name, len(classes))
    return loss_of(LOSSES, name, len(classes), **parameters)
