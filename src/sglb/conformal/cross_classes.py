"""Sets of classes from out-of-fold probabilities: every row trains and every row calibrates."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb.conformal.classes import PredictionSets, read_label, read_probability
from sglb.conformal.cross import read_fold
from sglb.conformal.ranks import Floats, check_coverage, rows_needed
from sglb.errors import warn


class CrossConformalClasses:
    """Cross-conformal sets of classes, guaranteed within each class (Vovk, 2015).

    K models are each trained without the rows of a fold. Fold k gives class c of a new row x a
    p-value, by the rows i of class c in it (score s = 1 - probability of the class):

        p_k(c) = (1 + number of rows i with s_k(i) >= s_k(x, c)) / (1 + number of rows i)

    Given model k those rows and a new row of class c are exchangeable, so that p_k is at most a
    with a probability of at most a. Twice a mean of such p-values is one again, however they depend
    on each other (Vovk and Wang, 2020). So the set of all classes whose mean p-value is above
    alpha = 1 - coverage contains the class with a probability of at least 1 - 2 alpha, among the
    rows of each class; this is `PredictionSets.guarantee`. In practice it is close to 1 - alpha.

    y, fold (n_rows,) and probability (n_rows, n_classes) are out-of-fold values of the training
    rows. Weights are not supported, as in `ConformalClasses`.
    """

    def __init__(self, y: ArrayLike, probability: ArrayLike, fold: ArrayLike) -> None:
        table = read_probability(probability)
        label = read_label(y, table)
        number = read_fold(fold, len(table))
        score = 1.0 - table[np.arange(len(label)), label]
        # Of each fold and class, in increasing order.
        self.scores = [
            [np.sort(score[(number == k) & (label == c)]) for c in range(table.shape[1])]
            for k in range(int(number.max()) + 1)
        ]

    def sets(self, probability: ArrayLike, coverage: float = 0.9) -> PredictionSets:
        """Return the sets of new rows; probability (n_folds, n_rows, n_classes) of all models."""
        check_coverage(coverage)
        p_value, n_rows = self.p_values(probability), self._n_rows()
        least = np.zeros(len(n_rows))
        for scores_of_fold in self.scores:
            least += [1.0 / (1.0 + len(scores)) for scores in scores_of_fold]
        least /= len(self.scores)
        alpha = 1.0 - coverage
        if (short := np.flatnonzero(least > alpha)).size:
            warn(
                f"{n_rows[short].min()} rows of a class in {len(self.scores)} folds are too few for"
                f" a coverage of {coverage:g}, which needs"
                f" {len(self.scores) * rows_needed(coverage)}; every set contains the classes"
                f" {', '.join(map(str, short))}",
            )
        guarantee = max(1.0 - 2.0 * alpha, 0.0)
        return PredictionSets(p_value > alpha, coverage, guarantee, n_rows)

    def p_values(self, probability: ArrayLike) -> Floats:
        """Return the mean p-value of each class of new rows, (n_rows, n_classes)."""
        tables = np.asarray(probability, dtype=np.float64)
        n_folds, n_classes = len(self.scores), len(self.scores[0])
        if tables.ndim != 3 or (len(tables), tables.shape[2]) != (n_folds, n_classes):
            raise ValueError(
                f"probability must have shape ({n_folds}, n_rows, {n_classes}), those of every"
                f" fold's model, not {tables.shape}"
            )
        total = np.zeros(tables.shape[1:])
        for scores_of_fold, table in zip(self.scores, tables, strict=True):
            new = 1.0 - read_probability(table)
            for c, scores in enumerate(scores_of_fold):
                below = np.searchsorted(scores, new[:, c], side="left")
                total[:, c] += (1.0 + len(scores) - below) / (1.0 + len(scores))
        return total / n_folds

    def _n_rows(self) -> NDArray[np.int64]:
        """Return the rows of each class."""
        count = [[len(scores) for scores in of_fold] for of_fold in self.scores]
        return np.asarray(np.array(count, dtype=np.int64).sum(axis=0))
