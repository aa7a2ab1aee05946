"""The posterior of another library's model.

Leaves get the numbers 0, 1, ... of those that training rows fall into, and one more for all others:
a leaf without training rows counts as a leaf of one row (`sglb.posterior.prior`).

Libraries that grow a tree for each class use every tree for one class; here every tree is
a partition for all classes. The prior then knows more trees than the model had for a class.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb.estimators.classes import numbers_of
from sglb.estimators.posterior import Posterior
from sglb.estimators.sources import SourceRows
from sglb.frame import read_labels, read_numbers, read_weight
from sglb.losses import Loss, get_loss
from sglb.losses.links import IDENTITY
from sglb.peers.base import PeerModel
from sglb.peers.reading import read_model
from sglb.posterior import (
    AUTO_STEPS,
    PosteriorPlan,
    StoredPartitions,
    draw_for_trees,
    noise_temperature,
)
from sglb.settings import check_parameters, draw_seed, n_threads
from sglb.target import Target

Array = NDArray[Any]
Floats = NDArray[np.float64]


class LeafNumbers:
    """Numbers of the leaves of each tree that training rows (n_rows, n_trees) fall into."""

    def __init__(self, leaves: ArrayLike) -> None:
        self._known = [np.unique(tree) for tree in _two_dimensional(leaves).T]
        self.n_leaves = np.array([len(known) + 1 for known in self._known], dtype=np.int64)

    def partitions(self, leaves: ArrayLike) -> StoredPartitions:
        """Return the partitions of any rows; leaves that are not known are the last one."""
        table = _two_dimensional(leaves)
        if table.shape[1] != len(self._known):
            raise ValueError(
                f"the model has {table.shape[1]} trees, and had {len(self._known)} when draws were"
                " made"
            )
        numbers = np.empty((len(self._known), len(table)), dtype=np.int32)
        for k, known in enumerate(self._known):
            index = np.searchsorted(known, table[:, k])
            is_known = known[np.minimum(index, len(known) - 1)] == table[:, k]
            numbers[k] = np.where(is_known, index, len(known))
        return StoredPartitions(numbers, self.n_leaves)


class PeerSource:
    """A model of another library, with the leaves of its training rows."""

    estimator = None

    def __init__(self, model: PeerModel, loss: Loss, X: Any, n_jobs: int | None) -> None:
        self.model = model
        self.loss = loss
        self.n_jobs = n_jobs
        self.temperature = 1.0
        if not _count_rows(X):
            raise ValueError("X has no rows")
        leaves = _two_dimensional(model.leaves(X))
        if not leaves.size:
            raise ValueError("the model has no trees")
        self.numbers = LeafNumbers(leaves)

    @property
    def classes(self) -> Array:
        """Labels of the classes, (0,) for numbers."""
        return self.model.classes

    @property
    def n_threads(self) -> int:
        """Threads to use."""
        return n_threads(self.n_jobs)

    def rows(self, X: Any) -> SourceRows:
        """Return the leaves and raw scores of rows; libraries cannot tell those of none."""
        if not _count_rows(X):
            none = np.empty((0, len(self.numbers.n_leaves)))
            return SourceRows(self.numbers.partitions(none), np.empty((self.loss.n_outputs, 0)))
        return SourceRows(self.numbers.partitions(self.model.leaves(X)), self.raw(X))

    def raw(self, X: Any) -> Floats:
        """Return raw scores, (n_outputs, n_rows)."""
        raw = np.asarray(self.model.raw(X), dtype=np.float64)
        raw = raw.reshape(len(raw), -1).T
        if len(raw) != self.loss.n_outputs:
            raise ValueError(
                f"the model has {len(raw)} raw scores for a row, and loss '{self.loss.name}'"
                f" {self.loss.n_outputs}"
            )
        return np.ascontiguousarray(raw)

    def predict_from(self, raw: Floats) -> Floats:
        """Turn raw scores into numbers or probabilities of all classes."""
        prediction = self.loss.link(raw)
        if len(self.classes) and prediction.ndim == 1:
            prediction = np.column_stack([1.0 - prediction, prediction])
        return prediction

    def total_variance(self, X: Any, knowledge: Floats) -> Floats | None:
        """Return the variance of the noise plus that of the prediction, for the squared loss."""
        is_squared = self.loss.predicts_mean and self.loss.link is IDENTITY
        return knowledge + self.temperature if is_squared else None

    def target(self, y: Any, weight: Floats) -> Target:
        """Read a target."""
        if not len(self.classes):
            return Target.of(read_numbers(self.model, y, len(weight)), weight)
        labels = read_labels(self.model, y, len(weight))
        return Target.of(numbers_of(labels, self.classes), weight, classes=self.classes)


def posterior_of(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    loss: Any = None,
    X_calibration: Any = None,
    y_calibration: Any = None,
    n_draws: int = 100,
    prior_variance: float | str = "auto",
    temperature: float | str = "auto",
    n_steps: int | str = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Posterior:
    """Draw models from the posterior of a fitted model of LightGBM, XGBoost, CatBoost or
    scikit-learn (forests, GradientBoosting), given its training rows X, y.

    The mean of the raw scores of the draws is the model as it is; X is passed to the model's own
    methods. Offsets of rows (`init_score`, `base_margin`, `baseline`) are not known here.

    loss : by default the loss that the model was trained with: squared, absolute, quantile,
        poisson, logistic or softmax. A name, or an object of `sglb.losses`.
    X_calibration, y_calibration : in regression, rows that the model was not trained on. Their
        residuals tell the temperature.
    prior_variance : variance of a raw score before any data, at temperature 1; more is more spread.
        "auto" is .3 / curvature of the loss for numbers, and for classes the largest of 3, 1.7, 1,
        ... .01 at which the mean of the draws costs about 0.1 % at most of the loss of new rows.
    temperature : 1 for a loss that is minus a log likelihood; for the squared loss the variance of
        the noise, for example that of residuals in a cross-validation. "auto" is 1 for classes, and
        in regression comes from the calibration rows.
    n_steps : steps of the chain of each draw; "auto" as in `model.posterior`.
    """
    check_parameters({"n_draws": n_draws, "n_steps": n_steps})
    check_parameters({"prior_variance": prior_variance, "posterior_temperature": temperature})
    peer = read_model(model)
    source = PeerSource(peer, _choose_loss(peer, loss), X, n_jobs)
    partitions, raw = source.rows(X)
    target = source.target(y, read_weight(sample_weight, range(partitions.n_rows)))
    source.loss.check_target(target)
    source.loss = source.loss.adapt(target)
    if temperature == "auto":
        temperature = _temperature(source, X_calibration, y_calibration)
    source.temperature = float(temperature)
    plan = PosteriorPlan(
        "laplace",
        n_draws,
        None if prior_variance == "auto" else float(prior_variance),
        source.temperature,
        AUTO_STEPS if n_steps == "auto" else int(n_steps),
        draw_seed(random_state),
    )
    # Only the full posterior would begin at the start.
    start = np.zeros(source.loss.n_outputs)
    return Posterior(
        source, draw_for_trees(source.loss, partitions, raw, start, target, plan, source.n_threads)
    )


def _choose_loss(peer: PeerModel, stated: Any) -> Loss:
    """Return the loss that is stated, or that the model was trained with."""
    loss = peer.loss if stated is None else get_loss(stated, n_classes=len(peer.classes))
    if loss is None:
        raise ValueError(
            f"no loss of this library goes with the objective {peer.objective!r}; state one that is"
            " close to it, loss=..."
        )
    is_class = loss.task != "regression"
    if is_class != bool(len(peer.classes)):
        raise ValueError(
            f"loss '{loss.name}' is for {'classes' if is_class else 'numbers'}, and the model is"
            f" not: its objective is {peer.objective!r}"
        )
    return loss


def _temperature(source: PeerSource, X: Any, y: Any) -> float:
    if len(source.classes):
        return 1.0
    if X is None or y is None:
        raise ValueError(
            "temperature='auto' needs rows that the model was not trained on: pass X_calibration"
            " and y_calibration; or state temperature=..., for the squared loss the variance of the"
            " noise, for example the mean squared residual in a cross-validation"
        )
    raw = source.raw(X)
    target = source.target(y, read_weight(None, range(raw.shape[1])))
    source.loss.check_target(target)
    return noise_temperature(source.loss, target, raw)


def _count_rows(X: Any) -> int:
    """Return the number of rows of anything that a library accepts."""
    if hasattr(X, "num_row"):  # XGBoost's DMatrix and CatBoost's Pool
        return int(X.num_row())
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def _two_dimensional(leaves: ArrayLike) -> Array:
    """Return leaf numbers as (n_rows, n_trees), the trees of several classes one after another."""
    table = np.asarray(leaves)
    n_trees = int(np.prod(table.shape[1:]))
    return table.reshape(len(table), n_trees)
