"""Do predicted probabilities, intervals and uncertainties say what they mean? Scores and tables.

    reliability, expected_calibration_error       probabilities against observed frequencies
    coverage_by_scale                             intervals where the scale is small or large
    rejection_curve, prediction_rejection_ratio   whether the uncertain rows are those with errors
    out_of_domain_auc                             whether foreign rows are more uncertain

All are of rows that the model was not trained on.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score

from sglb.errors import require_rows
from sglb.weights import read_weights

Floats = NDArray[np.float64]

# The usual number of bins of reliability diagrams (Guo et al. 2017 use 15, scikit-learn 5).
N_BINS = 10


class Reliability(NamedTuple):
    """Predicted and observed frequencies in bins of equal mass, all (n_bins,).

    `standard_error` is that of `observed` if the predictions are right,
    sqrt(sum w^2 p (1 - p)) / sum w.
    """

    predicted: Floats
    observed: Floats
    n_rows: NDArray[np.int64]
    weight: Floats
    standard_error: Floats


class CoverageTable(NamedTuple):
    """Coverage and width of intervals in bins of equal mass of the scale, all (n_bins,).

    `standard_error` is that of `coverage` as a binomial share.
    """

    scale: Floats
    coverage: Floats
    width: Floats
    n_rows: NDArray[np.int64]
    standard_error: Floats


class RejectionCurve(NamedTuple):
    """Error that is left after the most uncertain rows were rejected, (n_rows + 1,) each.

    `error` is the sum over the rows that are kept divided by the number of all rows, so that it
    falls from the mean error to 0 as `share`, that of the rejected rows, goes from 0 to 1.
    """

    share: Floats
    error: Floats

    @property
    def area(self) -> float:
        """Area under the curve."""
        return _area(self.error)


def reliability(
    probability: ArrayLike,
    y: ArrayLike,
    n_bins: int = N_BINS,
    weight: ArrayLike | None = None,
) -> Reliability:
    """Return mean predicted and observed frequencies of an event in bins of equal mass.

    probability (n_rows,) is that of y = 1; or (n_rows, n_classes), and the event is that the class
    of highest probability is y. Equal predictions are always in the same bin, so that there may be
    fewer bins than `n_bins`.
    """
    predicted, event = _read_event(probability, y)
    weights = _read_weight(weight, len(predicted))
    bins = _equal_mass(predicted, weights, n_bins)
    mass = np.bincount(bins, weights).astype(np.float64)
    variance = np.bincount(bins, np.square(weights) * predicted * (1.0 - predicted))
    return Reliability(
        np.bincount(bins, weights * predicted) / mass,
        np.bincount(bins, weights * event) / mass,
        np.bincount(bins).astype(np.int64),
        mass,
        np.sqrt(variance) / mass,
    )


def expected_calibration_error(
    probability: ArrayLike,
    y: ArrayLike,
    n_bins: int = N_BINS,
    weight: ArrayLike | None = None,
) -> float:
    """Return the mean of |observed - predicted| over bins of equal mass.

    Chance alone makes it about .8 times the mean standard error of the bins, sqrt(n_bins / n_rows)
    times a constant below .4: compare models on the same rows and bins only.
    """
    table = reliability(probability, y, n_bins, weight)
    if not len(table.weight):
        return math.nan
    return float(np.average(np.abs(table.observed - table.predicted), weights=table.weight))


def coverage_by_scale(
    y: ArrayLike, bounds: ArrayLike, scale: ArrayLike, n_bins: int = N_BINS
) -> CoverageTable:
    """Return coverage and mean width of intervals (n_rows, 2) by quantile of the predicted scale.

    Intervals that are right on average may be too narrow where the scale is small, and too wide
    where it is large: marginal coverage hides this, the table shows it.
    """
    outcome, scales = _read("y", y), _read("scale", scale)
    ends = np.asarray(bounds, dtype=np.float64)
    if ends.shape != (len(outcome), 2) or scales.shape != outcome.shape:
        raise ValueError(
            f"y has shape {outcome.shape}, bounds {ends.shape} and scale {scales.shape}; expected"
            " (n_rows,), (n_rows, 2) and (n_rows,)"
        )
    inside = (ends[:, 0] <= outcome) & (outcome <= ends[:, 1])
    bins = _equal_mass(scales, np.ones(len(scales)), n_bins)
    count = np.bincount(bins)
    share = np.bincount(bins, inside) / count
    return CoverageTable(
        np.bincount(bins, scales) / count,
        share,
        np.bincount(bins, ends[:, 1] - ends[:, 0]) / count,
        count.astype(np.int64),
        np.sqrt(share * (1.0 - share) / count),
    )


def rejection_curve(error: ArrayLike, uncertainty: ArrayLike) -> RejectionCurve:
    """Return the error that is left when the k most uncertain rows are rejected, k = 0..n_rows.

    `error` is any loss of a row that is not negative, such as (y - mean)^2 or [class is wrong].
    Rows of equal uncertainty count with their mean error: the mean over their random orders.
    """
    errors, values = _read("error", error), _read("uncertainty", uncertainty)
    if errors.shape != values.shape:
        raise ValueError(f"error has {len(errors)} rows, uncertainty {len(values)}")
    if not len(errors):
        raise ValueError("a rejection curve needs at least a row")
    require_rows("error", errors, errors >= 0.0, "at least 0")
    _, group = np.unique(values, return_inverse=True)
    mean_error = (np.bincount(group, errors) / np.bincount(group))[group]
    ascending = mean_error[np.argsort(values, kind="stable")]
    rest = np.append(np.cumsum(ascending)[::-1], 0.0) / len(errors)
    return RejectionCurve(np.linspace(0.0, 1.0, len(errors) + 1), rest)


def prediction_rejection_ratio(error: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return how much of the possible gain an uncertainty achieves: 1 best, 0 random.

    PRR = (AUC_uncertainty - AUC_random) / (AUC_oracle - AUC_random), areas under rejection
    curves (Malinin, Prokhorenkova and Ustimenko, 2021); the oracle rejects by the error itself.
    Negative where the uncertainty is worse than chance, NaN where all errors are equal.
    """
    random = 0.5 * float(np.mean(_read("error", error)))
    best = random - rejection_curve(error, error).area
    gain = random - rejection_curve(error, uncertainty).area
    # Equal errors leave nothing but rounding.
    return gain / best if best > 1e-12 * random else math.nan


def out_of_domain_auc(inside: ArrayLike, outside: ArrayLike) -> float:
    """Return the probability that a foreign row is more uncertain than a row of the domain.

    `inside` and `outside` are uncertainties of both kinds of rows; ties count one half.
    """
    domain, foreign = _read("inside", inside), _read("outside", outside)
    if not len(domain) or not len(foreign):
        raise ValueError("out_of_domain_auc needs rows of both kinds")
    label = np.append(np.zeros(len(domain)), np.ones(len(foreign)))
    return float(roc_auc_score(label, np.append(domain, foreign)))


def _area(curve: Floats) -> float:
    """Return the area under values at equal distances from 0 to 1, by trapezia."""
    return float(np.mean(0.5 * (curve[1:] + curve[:-1])))


def _read(name: str, values: ArrayLike) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1:
        raise ValueError(f"{name} must have shape (n_rows,), not {vector.shape}")
    require_rows(name, vector, np.isfinite(vector), "finite")
    return vector


def _read_weight(weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return weights that count equal rows, without a weight of 0 in all rows."""
    weights = read_weights(weight, n_rows)
    if n_rows and not weights.any():
        raise ValueError("weight is zero in every row")
    return weights


def _read_event(probability: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the probability of an event and whether it happened."""
    table, label = np.asarray(probability, dtype=np.float64), np.asarray(y)
    if table.ndim not in (1, 2) or label.shape != table.shape[:1]:
        raise ValueError(
            f"probability has shape {table.shape} and y {label.shape}; expected (n_rows,) or"
            " (n_rows, n_classes), and (n_rows,)"
        )
    inside = (table >= 0.0) & (table <= 1.0)
    valid = np.asarray(inside if table.ndim == 1 else inside.all(axis=1))
    require_rows("probability", table, valid, "in [0, 1]")
    n_classes = 2 if table.ndim == 1 else table.shape[1]
    known = np.isin(label, np.arange(n_classes))
    require_rows("y", label, known, f"a class index 0..{n_classes - 1}")
    if table.ndim == 1:
        return table, np.asarray(label == 1)
    return table.max(axis=1), np.asarray(label == table.argmax(axis=1))


def _equal_mass(values: Floats, weight: Floats, n_bins: int) -> NDArray[np.intp]:
    """Return the bin of each row, 0, 1, ... without gaps; equal values share a bin."""
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    # Rows that weigh nothing could make an empty bin: they join the bin of their value, or the
    # nearest below it.
    levels, group = np.unique(values, return_inverse=True)
    mass = np.bincount(group, weight, minlength=len(levels))
    total = mass.sum()
    middle = np.cumsum(mass) - 0.5 * mass
    number = np.minimum((middle / total * n_bins).astype(np.intp), n_bins - 1) if total else group
    occupied = np.unique(number[mass > 0.0])
    return np.maximum(np.searchsorted(occupied, number[group], side="right") - 1, 0)
