"""How many steps? Cross-validation of a chain's length, one tree at a time.

The rows are dealt into K folds. K chains, each on the rows of all folds but its own, take their
steps together; their losses on the rows left out add up to one curve over steps, and the chain on
all rows is as long as the curve is deep. Codes are those of all rows: bins and category means
hardly depend on a fold, and a row's ordered mean never knows its own target.
"""

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.chain import Chain
from sglb.losses.shapes import user_shape
from sglb.noise import Role
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]

N_FOLDS = 5
# Steps without a better loss before the search ends; a curve of five folds wiggles less than that.
PATIENCE = 100
# Steps that the chains take between two looks at the curve.
STRIDE = 25

# Equal codes are those of one row that was repeated where there are at least this many different
# ones, and at most this share of the repeated ones has different targets.
FEW_CELLS, CHANCE = 100, 0.1


def deal_folds(rows: TrainingSet, seed: int, *, classes: bool) -> NDArray[np.intp]:
    """Return the fold of each row, drawn at random; each class is spread evenly over the folds.

    A row that is there several times is dealt once, else it would be tested on itself. Rows of
    equal codes are taken for such where they agree in their targets: in a table of few values they
    are different rows, and do not.
    """
    n_rows = rows.n_rows // rows.n_copies
    y = rows.y[:n_rows]
    _, first, cell, count = np.unique(
        rows.code_rows[:n_rows], axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    cell = cell.reshape(-1)
    differs = np.bincount(cell, weights=y != y[first][cell]) > 0
    repeated = count > 1
    if repeated.any() and (len(count) < FEW_CELLS or differs[repeated].mean() > CHANCE):
        first, cell = np.arange(n_rows), np.arange(n_rows)
    words = np.empty((len(first), 4), dtype=np.uint32)
    _core.words(seed, 0, Role.FOLD, 0, 0, words)
    keys = (words[:, 0], y[first]) if classes else (words[:, 0],)
    fold = np.empty(len(first), dtype=np.intp)
    fold[np.lexsort(keys)] = np.arange(len(first)) % N_FOLDS
    return fold[cell]


class Fold:
    """A chain on the rows outside of a fold, and its loss on the rows inside."""

    def __init__(self, chain: Chain, held: TrainingSet) -> None:
        self.chain = chain
        self.held = held
        self.state = chain.trace.start(held.n_rows)

    def run(self, steps: range) -> Floats:
        """Take steps; return the weighted sum of the loss inside the fold after each."""
        trace, loss = self.chain.trace, self.chain.rows.loss
        losses = np.empty(len(steps))
        for at, step in enumerate(steps):
            self.chain.step()
            trace.advance(self.held.code_columns, self.state, step, 1)
            held = loss.loss(self.held.y, user_shape(self.state[0]))
            losses[at] = sums.total(held, self.held.weight)
        return losses


def best_length(
    make_fold: Callable[[NDArray[np.bool_]], Fold],
    fold_of: NDArray[np.intp],
    most: int,
    n_threads: int = 1,
) -> int:
    """Return the number of steps, at most `most`, with the lowest cross-validated loss.

    Chains run side by side, each in a thread of its own, so that the number of threads changes
    nothing. A step at which a fold's loss is not a number does not count.
    """
    folds = [make_fold(fold_of == number) for number in range(N_FOLDS)]
    best, lowest = 1, np.inf
    with ThreadPoolExecutor(max(1, min(n_threads, N_FOLDS) - 1)) as pool:
        for first in range(0, most, STRIDE):
            steps = range(first, min(first + STRIDE, most))
            losses = np.array(_each(folds, steps, pool if n_threads > 1 else None))
            curve = np.array([sums.total(of_folds) for of_folds in losses.T])
            at = int(np.argmin(np.where(np.isnan(curve), np.inf, curve)))
            if curve[at] < lowest:
                best, lowest = first + at + 1, float(curve[at])
            if steps[-1] + 1 - best >= PATIENCE:
                break
    if not np.isfinite(lowest):
        raise ValueError(
            "the loss of the rows left out is not finite at any step, so that cross-validation"
            " cannot tell the number of trees; state n_estimators"
        )
    return best


def _each(folds: list[Fold], steps: range, pool: Executor | None) -> list[Floats]:
    """Run all folds; what the caller set, such as np.errstate, holds in the threads too."""
    if pool is None:
        return [fold.run(steps) for fold in folds]
    others = [pool.submit(copy_context().run, fold.run, steps) for fold in folds[1:]]
    return [folds[0].run(steps), *(other.result() for other in others)]
