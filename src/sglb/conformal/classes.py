"""Sets of classes with coverage guaranteed within every class."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import sums
from sglb.conformal.ranks import Floats, check_coverage, rank, warn_too_few
from sglb.errors import require_rows

# Probabilities of a row add up to 1 but for rounding of float32.
ROUNDING = 1e-5


@dataclass(frozen=True)
class PredictionSets:
    """Sets of classes and what is promised of them.

    members      (n_rows, n_classes), whether a class is in the set of a row
    coverage     probability that was asked for
    guarantee    proven probability that the set contains the class, among rows of each class
    n_rows       calibration rows of each class, (n_classes,)
    """

    members: NDArray[np.bool_]
    coverage: float
    guarantee: float
    n_rows: NDArray[np.int64]

    @property
    def mean_size(self) -> float:
        """Mean number of classes in a set; NaN without rows."""
        return sums.mean(self.members.sum(axis=1)) if len(self.members) else math.nan

    def __len__(self) -> int:
        return len(self.members)

    def __str__(self) -> str:
        return (
            f"{len(self):,} sets of {self.mean_size:.3g} classes on average: among the rows of each"
            f" class a set contains that class with a probability of at least {self.guarantee:.4g}"
        )


class ConformalClasses:
    """Sets of all classes whose probability is at least a threshold of that class.

    The score is 1 - p_y: of all scores it gives the smallest sets on average (Sadinle, Lei and
    Wasserman, 2019). The threshold of a class comes from its calibration rows alone (Mondrian,
    label-conditional), so rare classes are covered as well as frequent ones. A set may be empty:
    the row is like none of the classes. A class with too few calibration rows is in all sets.

    y (n_rows,) are class indices, probability has shape (n_rows, n_classes); or (n_rows,), the
    probability of class 1 of two. Weights are not supported: the guarantee needs rows of a class to
    be exchangeable, and a change in the frequency of classes does no harm.
    """

    def __init__(self, y: ArrayLike, probability: ArrayLike) -> None:
        table = read_probability(probability)
        label = read_label(y, table)
        score = 1.0 - table[np.arange(len(label)), label]
        self.scores = [np.sort(score[label == index]) for index in range(table.shape[1])]

    def sets(self, probability: ArrayLike, coverage: float = 0.9) -> PredictionSets:
        """Return the sets of new rows."""
        check_coverage(coverage)
        table = read_probability(probability)
        if table.shape[1] != len(self.scores):
            raise ValueError(
                f"probability has {table.shape[1]} classes, that of the calibration rows"
                f" {len(self.scores)}"
            )
        bounds = np.full(len(self.scores), np.inf)
        for index, scores in enumerate(self.scores):
            if (k := rank(len(scores), coverage)) <= len(scores):
                bounds[index] = scores[k - 1]
        n_rows = np.array([len(scores) for scores in self.scores], dtype=np.int64)
        if (short := np.flatnonzero(np.isinf(bounds))).size:
            consequence = f"class {short[0]} is in every set"
            if len(short) > 1:
                consequence = f"classes {', '.join(map(str, short))} are in every set"
            warn_too_few(int(n_rows[short].min()), coverage, consequence)
        return PredictionSets(1.0 - table <= bounds, coverage, coverage, n_rows)


def read_label(y: ArrayLike, table: Floats) -> NDArray[np.intp]:
    """Return class indices of the rows of a table of probabilities."""
    label = np.asarray(y)
    if label.shape != (len(table),):
        raise ValueError(f"y must have shape ({len(table)},), not {label.shape}")
    valid = np.isin(label, np.arange(table.shape[1]))
    require_rows("y", label, valid, f"a class index 0..{table.shape[1] - 1}")
    return label.astype(np.intp)


def read_probability(probability: ArrayLike) -> Floats:
    """Return probabilities of all classes, (n_rows, n_classes)."""
    table = np.asarray(probability, dtype=np.float64)
    if table.ndim == 1:
        table = np.column_stack([1.0 - table, table])
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(
            f"probability must have shape (n_rows,) or (n_rows, n_classes), not {table.shape}"
        )
    within = np.asarray(((table >= 0.0) & (table <= 1.0)).all(axis=1))
    require_rows("probability", table, within, "in [0, 1]")
    require_rows("probability", table, np.abs(table.sum(axis=1) - 1.0) < ROUNDING, "of sum 1")
    return table
