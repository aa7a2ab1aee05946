"""Training rows as read, and what the rules for "auto" ask of them."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.defaults import Size
from sglb.errors import warn
from sglb.frame import Features
from sglb.losses import Loss
from sglb.losses.blocks import sample_rows
from sglb.losses.minimisers import quantile, spread
from sglb.losses.shapes import user_shape
from sglb.target import MOST_REPEATS, Target
from sglb.weights import are_equal

Floats = NDArray[np.float64]

# Standard deviations of a normal between its outer percentiles.
OUTER = 4.65
# Residuals that the flatness of a loss is looked at, in those of the best constant.
NEAR = 0.1

# Raw scores of classes at which the depth of a loss's valleys is looked at.
ODDS = (-30.0, -10.0, -3.0, -1.0, -0.3, 0.3, 1.0, 3.0, 10.0, 30.0)


class LabelledRows(NamedTuple):
    """Rows as read: features and target."""

    features: Features
    target: Target

    def with_weight(self) -> "LabelledRows":
        """Return the rows that have weight: rows of weight zero are dropped."""
        has_weight = self.target.weight > 0.0
        if has_weight.all():
            return self
        return LabelledRows(self.features.take(has_weight), self.target.take(has_weight))


def size_of(target: Target, n_columns: int, loss: Loss, best: Floats) -> Size:
    """Return what the rules for "auto" ask of the data; `best` is the best constant score."""
    size = Size(
        len(target),
        target.total_weight,
        target.weight_unit,
        n_columns=n_columns,
        n_groups=target.queries.n_queries if loss.by_group else 0,
    )
    if not loss.convex and loss.independent:
        size = replace(size, depth=_depth(target, loss, best))
    target = target.take(loss.representative_rows(len(target)))
    y = target.values
    raw = user_shape(np.repeat(best[:, None], len(y), axis=1))

    # Scores in the unit of y are steps of their own, each of the length of a single one.
    n_parts = 1 if loss.is_residual(y) else loss.n_outputs

    def mean_square(raw: Floats) -> float:
        with np.errstate(over="ignore"):  # infinity is rejected where it matters
            return n_parts * _mean_of_outputs(np.square(loss.gradients(target, raw)), target)

    length = 1.0
    if target.task == "regression":
        size = replace(size, square=mean_square(raw))
        # Gradients that grow with the residuals have no width to compare with y's.
        if loss.lipschitz is not None or not loss.proven:
            length = spread(target)
            low, high = (quantile(target, level) for level in (0.01, 0.99))
            size = replace(size, spread=length, tail=max(length, (high - low) / OUTER))
            if loss.is_residual(y) and size.square > 0.0:
                column = y if raw.ndim == 1 else y[:, None]
                near = mean_square(column + NEAR * (raw - column))
                size = replace(size, flatness=math.sqrt(near / size.square))
    curvature = _mean_of_outputs(loss.curvatures(target, raw, length), target)
    if loss.by_group and loss.is_residual(y) and curvature > 0.0:
        size = replace(size, spread=math.sqrt(mean_square(raw)) / curvature)
    return replace(size, curvature=curvature)


def _depth(target: Target, loss: Loss, best: Floats) -> float:
    """Return how far below the mean loss at `best` the rows' own optima are, on average.

    Each row may choose among constants: quantiles of the target or, for classes, log-odds.
    """
    target = target.take(sample_rows(len(target)))
    y = target.values
    constants = ODDS if target.n_classes else np.quantile(y, np.linspace(0.0, 1.0, 33))
    with np.errstate(all="ignore"):
        values = np.stack(
            [
                loss.loss(y, user_shape(np.repeat(row[:, None], len(y), axis=1)))
                for row in (best, *(np.full_like(best, constant) for constant in constants))
            ]
        )
        finite = np.where(np.isnan(values), np.inf, values)
        depth = target.mean(values[0] - finite.min(axis=0))
    return depth if math.isfinite(depth) else 0.0


# Its square, times squares of gradients and rows, is far from overflow.
MOST_WEIGHT = 1e100


def warn_of_repeats(weight: Floats) -> None:
    """Warn where weights that may be meant as importance are taken for numbers of equal rows.

    Reject weights for which scores of splits, squares of sums over rows, would not be finite.
    """
    mean = sums.mean(weight) if len(weight) else 1.0
    if mean > MOST_WEIGHT:
        raise ValueError(
            f"sample_weight has the mean {mean:.6g}, which is too large: a weight is a number of"
            " equal rows; if the weights only say which rows matter more, divide them by their mean"
        )
    if mean <= MOST_REPEATS:
        return
    warn(
        f"sample_weight has the mean {mean:.6g}: a weight is a number of equal rows, and"
        f" the settings are those of {MOST_REPEATS * len(weight):,.0f} rows, {MOST_REPEATS:g} for"
        " each row at most; if the weights only say which rows matter more, divide them by their"
        " mean",
    )


def _mean_of_outputs(values: Floats, target: Target) -> float:
    """Return the weighted mean over rows and outputs of values (n_rows,) or (n_rows, n_outputs)."""
    if are_equal(target.weight):
        return sums.mean(values)
    n_outputs = values.size // len(target)
    return sums.mean(values, np.repeat(target.weight, n_outputs))
