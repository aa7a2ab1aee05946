"""Cross-validation: the number of steps, and raw scores of rows that a chain has not seen.

The rows are divided into K folds. K chains, each trained without the rows of a fold, take their
steps together. Their losses on the held-out rows add up to a curve over steps, and the chain on all
rows gets as many steps as the minimum of the curve. Codes are those of all rows: bins and category
means hardly depend on a fold, and the ordered mean of a row does not contain its own target.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums, tasks
from sglb.chain import Chain
from sglb.losses.shapes import user_shape
from sglb.noise import Role
from sglb.threads import side_by_side
from sglb.trace import Trace
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]

N_FOLDS = 5
# Steps without a lower loss before the search ends; the noise of a curve of five folds is shorter.
PATIENCE = 100
# Steps of the chains between two checks of the curve.
STRIDE = 25
# Steps of the first task of a chain that is made anew in each; a later one doubles those taken, so
# that steps which are repeated, and steps too many, are fewer than those needed.
FIRST_STRETCH = 100

# Of how many folds residuals are learned from, by the number of rows: (most rows, folds). Of more
# rows two are enough: 20,000 residuals. On three tables of 18,000 to 41,000 rows three folds
# instead of five raised minus the log likelihood by .008 to .02, and changed the coverage of 90 %
# intervals by 0.3 % at most; a single one raised it by .02 to .1 (docs/defaults.md).
RESIDUAL_FOLDS = ((10_000, 5), (15_000, 4), (50_000, 3))
FEWEST_FOLDS = 2

# Rows of equal codes are copies of a row if there are at least this many different codes, and at
# most this share of the codes with several rows has different targets.
FEW_CELLS, CHANCE = 100, 0.1
# Share of redundant rows, whose codes another row has already, from which a table was resampled:
# its copies say nothing of new rows. A bootstrap sample has 37 %, a doubled table 50 %, and two
# classes of which the smaller one, less than a third, was repeated up to the size of the other have
# more than 25 %. Below that, rows are taken to repeat by nature (15 % of UCI's red wines), and a
# new row repeats a training row as often as a held-out row does.
RESAMPLED = 0.25


def folds_for_residuals(n_rows: int) -> int:
    """Return of how many folds residuals are learned from.

    The chains of fewer folds are trained on four fifths of the rows all the same, so that their
    residuals are no larger.
    """
    return next((n_folds for most, n_folds in RESIDUAL_FOLDS if n_rows <= most), FEWEST_FOLDS)


def assign_folds(rows: TrainingSet, seed: int) -> NDArray[np.intp]:
    """Return the fold of each row, drawn at random; each class is spread evenly over the folds.

    In a table with many copies of rows, copies of a row are in the same fold, because otherwise a
    chain would be tested on rows it was trained on. Rows of equal codes are copies if they agree in
    their targets; in a table of few different values they are different rows, and do not agree.
    Where few rows are copies, new rows will be copies as often, and all rows are drawn alike.
    Rows of a group are in one fold.
    """
    n_rows = rows.n_rows // rows.n_copies
    if len(rows.target.groups):
        query = rows.target.take(slice(n_rows)).queries.query
        return _drawn_folds(np.zeros(int(query.max(initial=-1)) + 1), seed)[query]
    y = rows.target.values[:n_rows]
    _, first, cell, count = np.unique(
        rows.turned_rows[:n_rows],
        axis=0,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    cell = cell.reshape(-1)
    differs = np.bincount(cell, weights=y != y[first][cell]) > 0
    repeated = count > 1
    if repeated.any() and (len(count) < FEW_CELLS or sums.mean(differs[repeated]) > CHANCE):
        first, cell = np.arange(n_rows), np.arange(n_rows)
    elif n_rows - len(count) < RESAMPLED * n_rows:
        first = np.lexsort((y, cell))  # whatever the order of the rows is
        cell = np.empty(n_rows, dtype=np.intp)
        cell[first] = np.arange(n_rows)
    classes = y[first] if rows.target.n_classes else np.zeros(len(first))
    return _drawn_folds(classes, seed)[cell]


def _drawn_folds(classes: Floats, seed: int) -> NDArray[np.intp]:
    """Return a fold for each of the classes (n,), at random; each class is spread evenly."""
    n = len(classes)
    words = np.empty((n, 4), dtype=np.uint32)
    _core.words(seed, 0, Role.FOLD, 0, 0, words)
    fold = np.empty(n, dtype=np.intp)
    fold[np.lexsort((words[:, 0], classes))] = np.arange(n) % N_FOLDS
    return fold


class Fold:
    """A chain trained on the rows outside a fold, and its state at the held-out rows inside."""

    def __init__(self, chain: Chain, held_out: TrainingSet) -> None:
        self.chain = chain
        self.held_out = held_out
        self.state = chain.trace.replay(held_out.code_columns, 1)
        self.n_scored = len(chain.trace)

    def run(self, steps: range) -> Floats:
        """Take steps; return the weighted sum of the held-out losses after each."""
        trace, loss, target = self.chain.trace, self.chain.rows.loss, self.held_out.target
        energies = np.empty(len(steps))
        for index, step in enumerate(steps):
            self.chain.step()
            trace.advance(self.held_out.code_columns, self.state, step, 1)
            losses = loss.losses(target, user_shape(self.state[0]))
            energies[index] = sums.total(losses, target.weight)
        self.n_scored = steps.stop
        return energies

    def raw_after(self, n_steps: int) -> Floats:
        """Return the raw scores of the held-out rows after `n_steps` steps, (n_outputs, rows).

        Steps that are still to be taken are not scored, which saves a tenth of their time.
        """
        trace, state = self.chain.trace, self.state
        while len(trace) < n_steps:
            self.chain.step()
        if n_steps != self.n_scored:
            state = trace.at(n_steps).replay(self.held_out.code_columns, 1)
        raw: Floats = state[0]
        return raw


class FoldMaker(Protocol):
    """Makes the fold of some rows, whose chain begins where a trace leads to."""

    def __call__(self, inside: NDArray[np.bool_], trace: Trace | None = None, /) -> Fold:
        """Return the fold."""
        ...


class CrossValidation:
    """One chain a fold, trained on the rows outside of it; `fold_of` is the fold of each row.

    Only the first `n_folds` folds have a chain, and rows of these are `held_out`. The chains take
    their steps together, each in a single thread, so that nothing depends on the number of threads.
    """

    def __init__(
        self,
        make_fold: FoldMaker,
        fold_of: NDArray[np.intp],
        n_folds: int = N_FOLDS,
    ) -> None:
        self.fold_of = fold_of
        self.held_out: NDArray[np.bool_] = fold_of < n_folds
        self.n_folds = n_folds
        self.n_steps = 0
        self._make_folds(make_fold, [fold_of == number for number in range(n_folds)])

    def _make_folds(self, make_fold: FoldMaker, insides: list[NDArray[np.bool_]]) -> None:
        self.folds = [make_fold(inside) for inside in insides]

    def best_length(
        self,
        max_steps: int,
        n_threads: int = 1,
        watch: Callable[[int, int], None] = lambda end, first: None,
    ) -> int:
        """Return the number of steps, at most `max_steps`, with the lowest held-out loss.

        A step at which the loss of a fold is NaN does not count. `watch` is called now and then
        with the number of steps that the chains have taken, and had taken the last time.
        """
        best, lowest = 1, np.inf
        for first in range(0, max_steps, STRIDE):
            end = min(first + STRIDE, max_steps)
            curve = self.run_to(end, n_threads, max_steps)
            watch(end, first)
            index = int(np.argmin(np.where(np.isnan(curve), np.inf, curve)))
            if curve[index] < lowest:
                best, lowest = first + index + 1, float(curve[index])
            if end - best >= PATIENCE:
                break
        if not np.isfinite(lowest):
            raise ValueError(
                "the loss of the held-out rows is not finite at any step, so that cross-validation"
                " cannot choose the number of trees; state n_estimators"
            )
        return best

    def run_to(self, n_steps: int, n_threads: int = 1, most: int = 0) -> Floats:
        """Take steps up to number `n_steps`; return the held-out loss of all rows after each.

        There will be no use for more than `most` steps.
        """
        steps = range(self.n_steps, max(n_steps, self.n_steps))
        energies = self._run(steps, n_threads, most)
        self.n_steps = steps.stop
        return np.array([sums.total(of_folds) for of_folds in energies.T])

    def _run(self, steps: range, n_threads: int, most: int) -> Floats:
        """Return the held-out loss of each fold after each step, (n_folds, steps)."""
        return np.array(side_by_side([partial(fold.run, steps) for fold in self.folds], n_threads))

    def out_of_fold(self, n_steps: int, n_threads: int = 1) -> Floats:
        """Return raw scores of the held-out rows, each by the chain that was not trained on it
        after `n_steps` steps, (n_outputs, held-out rows).
        """
        return self.joined(side_by_side(self.raw_tasks(n_steps), n_threads))

    def raw_tasks(self, n_steps: int) -> list[Callable[[], Floats]]:
        """Return tasks with the raw scores of the held-out rows of each fold as results."""
        return [partial(fold.raw_after, n_steps) for fold in self.folds]

    def joined(self, parts: Sequence[Floats]) -> Floats:
        """Return raw scores by fold as those of all held-out rows, (n_outputs, rows)."""
        fold_of = self.fold_of[self.held_out]
        raw = np.empty((len(parts[0]), len(fold_of)))
        for number, part in enumerate(parts):
            raw[:, fold_of == number] = part
        return raw


@dataclass(frozen=True)
class LazyFold:
    """A fold whose chain is made anew, from its trace, in each task."""

    make: FoldMaker
    inside: NDArray[np.bool_]
    trace: Trace | None = None

    def run(self, steps: range) -> tuple[Trace, Floats]:
        """Return the trace after steps, and the weighted sum of the held-out losses after each."""
        fold = self.make(self.inside, self.trace)
        energies = fold.run(steps)
        return fold.chain.trace, energies

    def raw_after(self, n_steps: int) -> Floats:
        """Return the raw scores of the held-out rows after `n_steps` steps."""
        return self.make(self.inside, self.trace).raw_after(n_steps)


class LazyCrossValidation(CrossValidation):
    """The same chains, made when they are needed: a joblib context may have them run elsewhere."""

    def _make_folds(self, make_fold: FoldMaker, insides: list[NDArray[np.bool_]]) -> None:
        self.lazy_folds = [LazyFold(make_fold, inside) for inside in insides]
        self._energies = np.empty((self.n_folds, 0))

    def out_of_fold(self, n_steps: int, n_threads: int = 1) -> Floats:
        """Return raw scores of the held-out rows, (n_outputs, held-out rows)."""
        return self.joined(tasks.run(self.raw_tasks(n_steps), n_threads))

    def raw_tasks(self, n_steps: int) -> list[Callable[[], Floats]]:
        """Return tasks with the raw scores of the held-out rows of each fold as results."""
        return [partial(fold.raw_after, n_steps) for fold in self.lazy_folds]

    def _run(self, steps: range, n_threads: int, most: int) -> Floats:
        n_taken = self._energies.shape[1]
        if steps.stop > n_taken:
            end = max(steps.stop, min(2 * n_taken or FIRST_STRETCH, most))
            runs = [partial(fold.run, range(n_taken, end)) for fold in self.lazy_folds]
            traces, energies = zip(*tasks.run(runs, n_threads), strict=True)
            self.lazy_folds = [
                replace(fold, trace=trace)
                for fold, trace in zip(self.lazy_folds, traces, strict=True)
            ]
            self._energies = np.hstack([self._energies, energies])
        return self._energies[:, steps.start : steps.stop]


def out_of_folds(
    validations: Sequence[LazyCrossValidation], lengths: Sequence[int], n_threads: int
) -> list[Floats]:
    """Return the raw scores out of fold of several cross-validations, all their chains at once."""
    raws = [
        task
        for validation, n_steps in zip(validations, lengths, strict=True)
        for task in validation.raw_tasks(n_steps)
    ]
    parts = iter(tasks.run(raws, n_threads))
    return [each.joined([next(parts) for _ in range(each.n_folds)]) for each in validations]
