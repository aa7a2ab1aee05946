"""The best threshold of a probability, found among all of them.

A row is of class 1 if its probability is at least the threshold. n rows with m different
probabilities have m + 1 different decisions, which one sort counts: sorted by falling probability,
the rows above a threshold come first. Of equally good thresholds the highest is taken,
and it lies in the middle between the probabilities on both sides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.caching import cached_property

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Thresholds at which a function of labels is called; metrics of counts look at all.
MOST_CALLS = 1000


class Counts(NamedTuple):
    """Weights of true and false decisions, (n_thresholds,) each."""

    true_negative: Floats
    false_positive: Floats
    false_negative: Floats
    true_positive: Floats


@runtime_checkable
class CountMetric(Protocol):
    """A score of decisions by their counts; the higher, the better."""

    def of_counts(self, counts: Counts) -> Floats:
        """Return the score at each threshold; NaN where a threshold is not allowed."""
        ...


@dataclass(frozen=True)
class FBeta:
    """(1 + beta²) TP / ((1 + beta²) TP + beta² FN + FP); 0 where that is 0 / 0."""

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.beta) and self.beta > 0.0):
            raise ValueError(f"beta must be a number above 0, got {self.beta!r}")

    def of_counts(self, counts: Counts) -> Floats:
        """Return F-beta."""
        square = self.beta * self.beta
        hits = (1.0 + square) * counts.true_positive
        return _ratio(hits, hits + square * counts.false_negative + counts.false_positive)


@dataclass(frozen=True)
class MatthewsCorrelation:
    """Correlation of decisions and classes; 0 where either is constant."""

    def of_counts(self, counts: Counts) -> Floats:
        """Return Matthews' correlation coefficient."""
        tn, fp, fn, tp = counts
        # Roots first, because a product of four counts of many rows may be beyond all floats.
        scale = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
        return _ratio(tp * tn - fp * fn, scale)


@dataclass(frozen=True)
class BalancedAccuracy:
    """Mean of the shares of each class that are decided right."""

    def of_counts(self, counts: Counts) -> Floats:
        """Return the balanced accuracy."""
        tn, fp, fn, tp = counts
        return 0.5 * (_ratio(tp, tp + fn) + _ratio(tn, tn + fp))


@dataclass(frozen=True)
class Accuracy:
    """Share of rows that are decided right."""

    def of_counts(self, counts: Counts) -> Floats:
        """Return the accuracy."""
        tn, fp, fn, tp = counts
        return (tp + tn) / (tp + tn + fp + fn)


@dataclass(frozen=True)
class RecallAtPrecision:
    """Recall, at thresholds whose precision is at least `precision`."""

    precision: float

    def __post_init__(self) -> None:
        _check_share(precision=self.precision)

    def of_counts(self, counts: Counts) -> Floats:
        """Return the recall, NaN below the precision."""
        precision, recall = _precision_and_recall(counts)
        return np.where(precision >= self.precision, recall, np.nan)


@dataclass(frozen=True)
class PrecisionAtRecall:
    """Precision, at thresholds whose recall is at least `recall`."""

    recall: float

    def __post_init__(self) -> None:
        _check_share(recall=self.recall)

    def of_counts(self, counts: Counts) -> Floats:
        """Return the precision, NaN below the recall."""
        precision, recall = _precision_and_recall(counts)
        return np.where(recall >= self.recall, precision, np.nan)


THRESHOLD_METRICS: dict[str, CountMetric] = {
    "accuracy": Accuracy(),
    "balanced_accuracy": BalancedAccuracy(),
    "f0.5": FBeta(0.5),
    "f1": FBeta(1.0),
    "f2": FBeta(2.0),
    "mcc": MatthewsCorrelation(),
}


class Tuned(NamedTuple):
    """A threshold, and the score it was chosen by."""

    threshold: float
    score: float


@dataclass(frozen=True)
class Sweep:
    """All thresholds of probabilities (n_rows,) of rows that are positive or not."""

    probability: Floats
    positive: NDArray[np.bool_]
    weight: Floats

    @cached_property
    def values(self) -> Floats:
        """The different probabilities, falling."""
        return -np.unique(-self.probability)

    @cached_property
    def rank(self) -> NDArray[np.intp]:
        """Where the probability of each row is among them."""
        return np.searchsorted(-self.values, -self.probability)

    def above(self, amount: Floats) -> Floats:
        """Return the weighted sum of amounts over the rows of class 1, at each threshold."""
        n_values = len(self.values)
        signed = [
            sums.running(sums.by_group(self.rank, part, n_values, self.weight))
            for part in (np.maximum(amount, 0.0), np.maximum(-amount, 0.0))
        ]
        return np.append(0.0, signed[0] - signed[1])

    def counts(self) -> Counts:
        """Return the counts at each threshold, from the highest on."""
        positive = self.positive.astype(np.float64)
        tp, fp = self.above(positive), self.above(1.0 - positive)
        return Counts(fp[-1] - fp, fp, tp[-1] - tp, tp)

    def threshold(self, number: int) -> float:
        """Return the threshold above which are the first `number` different probabilities."""
        values = self.values
        if number == len(values):
            return 0.0
        lower = float(values[number])
        upper = float(values[number - 1]) if number else 1.0
        middle = lower + 0.5 * (upper - lower)
        if middle > lower:
            return middle
        return upper if number else float(np.nextafter(1.0, 2.0))

    def best(self, scores: Floats, metric: Any) -> Tuned:
        """Return the highest threshold of the best score, of those that are allowed."""
        known = np.where(np.isnan(scores), -np.inf, scores)
        number = int(np.argmax(known))
        if known[number] == -np.inf:
            raise ValueError(f"{metric} allows no threshold of these rows; ask for less")
        return Tuned(self.threshold(number), float(scores[number]))

    def by_counts(self, metric: CountMetric) -> Tuned:
        """Return the threshold with the best score of counts."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.best(np.asarray(metric.of_counts(self.counts())), metric)

    def by_savings(self, savings: Floats, idle: float) -> Tuned:
        """Return the threshold of least cost, and minus its mean cost.

        `savings` is what decision 1 saves in a row, `idle` the mean cost of decision 0 for all.
        """
        total = sums.total(self.weight)
        return self.best(self.above(savings) / total - idle, "cost")

    def by_function(self, function: Callable[[Array, Array], float], classes: Array) -> Tuned:
        """Return the best of at most MOST_CALLS thresholds by a function of (y, decisions)."""
        n_values = len(self.values)
        tried = np.arange(n_values + 1)
        if n_values >= MOST_CALLS:  # between rows in equal numbers
            at = np.linspace(0, len(self.probability) - 1, MOST_CALLS - 1).astype(np.intp)
            tried = np.unique(np.append(0, np.sort(self.rank)[at] + 1))
        y = classes[self.positive.astype(np.intp)]
        scores = np.full(n_values + 1, np.nan)
        for number in tried.tolist():
            decided = (self.rank < number).astype(np.intp)
            scores[number] = float(function(y, classes[decided]))
        return self.best(scores, getattr(function, "__name__", function))


def find_metric(metric: Any) -> CountMetric | Callable[[Array, Array], float]:
    """Return a metric of thresholds by its name, or the object or function itself."""
    if isinstance(metric, str):
        if metric in THRESHOLD_METRICS:
            return THRESHOLD_METRICS[metric]
        known = ", ".join(THRESHOLD_METRICS)
        raise ValueError(
            f"metric={metric!r} is not known; allowed: {known}, 'cost' with costs, objects of"
            " sglb.thresholds such as RecallAtPrecision(0.9), or a function of (y, decisions)"
        )
    if isinstance(metric, type):
        raise TypeError(f"metric must be an object, got the class {metric.__name__}")
    if isinstance(metric, CountMetric):
        return metric
    if callable(metric):
        function: Callable[[Array, Array], float] = metric
        return function
    raise ValueError(f"metric={metric!r} is neither a name nor a function of (y, decisions)")


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return the ratio, 0 where the denominator is."""
    ratio: Floats = np.where(
        denominator > 0.0, numerator / np.where(denominator > 0.0, denominator, 1.0), 0.0
    )
    return ratio


def _precision_and_recall(counts: Counts) -> tuple[Floats, Floats]:
    """Return both; without a decision for class 1 there is no precision, which is NaN."""
    selected = counts.true_positive + counts.false_positive
    precision = np.where(selected > 0.0, _ratio(counts.true_positive, selected), np.nan)
    return precision, _ratio(counts.true_positive, counts.true_positive + counts.false_negative)


def _check_share(**share: float) -> None:
    ((name, value),) = share.items()
    if not 0.0 < value <= 1.0:
        raise ValueError(f"{name} must be in (0, 1], got {value!r}")
