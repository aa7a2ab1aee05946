"""Models of an estimator, each fitted without some rows, and their predictions for those rows.

Each model is a clone that runs the whole procedure on its rows: categories, bins, automatic values,
the cross-validated number of trees. So it knows nothing of the rows that it was fitted without,
unlike the chains of `folds`, which share their codes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sglb import _core, tasks
from sglb.caching import cached_property
from sglb.estimators.base import ChainEstimator
from sglb.folds import N_FOLDS
from sglb.frame import Table, read_weight
from sglb.noise import Role
from sglb.settings import draw_seed
from sglb.target import Target
from sglb.weights import are_equal, take_weight

Floats = NDArray[np.float64]
RowIndices = NDArray[np.intp]

# Step of the words that folds of whole procedures come from; those of chains have step 0.
PROCEDURE = 1

E = TypeVar("E", bound=ChainEstimator)


class FoldModels(Generic[E]):
    """Five clones of an estimator, model k fitted without the rows of fold k.

    models    the clones, fitted when they are first asked for
    fold      fold of each row, (n_rows,)
    target    values and classes of the rows
    weight    stated weights of the rows
    kept      numbers of the rows among the stated ones, `n_stated`

    Rows of weight zero are left out. Folds are drawn independently of the values of the rows,
    except that the rows of each class are spread evenly over them. The models get their rows in a
    random order, so that no row has a special place.
    """

    def __init__(self, estimator: E, X: Any, y: Any, sample_weight: Any = None) -> None:
        _reject_early_stopping(estimator)
        self.estimator, self.table = estimator, Table(X)
        weight = read_weight(sample_weight, self.table)
        # Read here, so that a message names a row of the whole table.
        target = estimator._read_target(y, weight)
        estimator._choose_loss(target.classes).check_target(target)
        self.n_stated, self.row_numbers = len(weight), np.flatnonzero(weight > 0.0)
        self.target, self.weight = (
            target.take(self.row_numbers),
            take_weight(weight, self.row_numbers),
        )
        _require_enough(self.target)
        self._order, self.fold = assign_rows(self.target, draw_seed(estimator.random_state))

    @cached_property
    def models(self) -> tuple[E, ...]:
        """The clone without fold 0, without fold 1, ..."""
        labels: Any = self.target.values
        if len(self.target.classes):
            labels = self.target.classes[labels.astype(np.intp)]
        fits = []
        for number in range(N_FOLDS):
            rows = self._order[self.fold[self._order] != number]
            weight = take_weight(self.weight, rows)
            # Equal weights are a fit without weights.
            stated = None if are_equal(weight) else weight
            new = clone(self.estimator)
            fits.append(
                partial(_fit, new, self.table, self.row_numbers[rows], labels[rows], stated)
            )
        return tuple(tasks.run(fits))

    def __len__(self) -> int:
        return len(self.fold)

    def out_of_fold(self, predict: Callable[[E, Any], Floats]) -> Floats:
        """Return for each row what `predict` returns for the model fitted without it."""
        parts = [
            predict(model, self._take(np.flatnonzero(self.fold == number)))
            for number, model in enumerate(self.models)
        ]
        values = np.empty((len(self), *parts[0].shape[1:]))
        for number, part in enumerate(parts):
            values[self.fold == number] = part
        return values

    def _take(self, rows: RowIndices) -> Any:
        return self.table.take(self.row_numbers[rows])


def _fit(estimator: E, table: Table, rows: RowIndices, labels: Any, weight: Any) -> E:
    """Fit an estimator to some rows of a table."""
    return estimator.fit(table.take(rows), labels, weight)


def assign_rows(target: Target, seed: int) -> tuple[RowIndices, RowIndices]:
    """Return a random order of the rows, and the fold of each; sizes differ by a row at most."""
    words = np.empty((len(target), 4), dtype=np.uint32)
    _core.words(seed, PROCEDURE, Role.FOLD, 0, 0, words)
    keys = words[:, 1], words[:, 0]
    fold = np.empty(len(target), dtype=np.intp)
    by_class = np.lexsort((*keys, target.values)) if len(target.classes) else np.lexsort(keys)
    fold[by_class] = np.arange(len(target)) % N_FOLDS
    return np.lexsort(keys), fold


def _reject_early_stopping(estimator: ChainEstimator) -> None:
    if estimator.early_stopping_rounds is not None:
        raise ValueError(
            f"early_stopping_rounds={estimator.early_stopping_rounds!r} needs an evaluation set,"
            " which models without a fold do not have; set it to None and state n_estimators, or"
            " leave that at 'auto'"
        )


def _require_enough(target: Target) -> None:
    """Reject fewer rows than folds, and a class that a model would not see."""
    if len(target) < N_FOLDS:
        raise ValueError(f"{N_FOLDS} folds need at least as many rows, got {len(target)}")
    if len(target.classes):
        if len(target.classes) < 2:
            raise ValueError(f"y has a single class, {target.classes.tolist()[0]!r}")
        count = np.bincount(target.values.astype(np.intp), minlength=len(target.classes))
        if (rare := np.flatnonzero(count < 2)).size:
            raise ValueError(
                f"class {target.classes.tolist()[rare[0]]!r} has fewer than two rows, so that a"
                " model without a fold would not know it"
            )
