"""What fit adds to a model with `uncertainty=True`."""

import math
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sglb.folds import N_FOLDS, CrossValidation, folds_for_residuals, out_of_folds
from sglb.model import Model
from sglb.noise import chain_seed
from sglb.outcomes import learn_outcomes
from sglb.posterior import BATCH, PosteriorPlan, draw_for_chains, noise_temperature
from sglb.target import Target
from sglb.training_set import TrainingSet

# Draws that a fit makes: two batches of chains and their mirror images. A variance over them has a
# standard error of 25 %, over the 100 of `posterior` 20 %, which takes half as long again.
N_DRAWS = 4 * BATCH
# Rows out of fold from which a temperature is learned without error bars: a variance of normal
# residuals has a standard error of 3 % then.
HELD_OUT_ROWS = 2000


def add_error_bars(
    model: Model, data: TrainingSet, validation: CrossValidation | None, n_threads: int
) -> Model:
    """Add to a model how y is distributed about its predictions, and draws of the model.

    In regression both need predictions of rows by chains that have not seen them: up to five for
    each chain of the model, of which a cross-validation of the length has left those of the first.
    """
    recipe, loss = model.recipe, model.recipe.loss
    assert loss is not None  # a chain has run
    rows = data.first_copy()
    plan = PosteriorPlan(n_draws=N_DRAWS, seed=chain_seed(recipe.settings.seed))
    if loss.task == "regression":
        held_out, raw = _out_of_fold(model, data, validation, n_threads if loss.thread_safe else 1)
        outcomes = learn_outcomes(recipe, loss, held_out, raw, n_threads)
        target = held_out.first_copy().target
        plan = replace(plan, temperature=noise_temperature(loss, target, raw))
        model = replace(model, outcomes=outcomes)
    target = _whole(rows.target, data.n_copies)
    codes, order = rows.code_columns, recipe.training_order(len(target))
    drawn = draw_for_chains(loss, model.traces, codes, target, plan, n_threads, order)
    return replace(model, posterior=drawn)


def _out_of_fold(
    model: Model, data: TrainingSet, first: CrossValidation | None, n_threads: int
) -> tuple[TrainingSet, NDArray[np.float64]]:
    """Return rows, and their raw scores (n_outputs, n_rows) by chains that have not seen them.

    Of several chains the mean, as in predictions: errors of a single chain are larger.
    """
    recipe, n_folds = model.recipe, folds_for_residuals(data.n_rows // data.n_copies)
    lengths = [len(trace) for trace in model.traces]
    raws = [] if first is None else [first.out_of_fold(lengths[0], n_threads)]
    others = [
        recipe.lazy_cross_validation(
            data, number=number, n_folds=n_folds if first is None else first.n_folds
        )
        for number in range(len(raws), len(lengths))
    ]
    raws += out_of_folds(others, lengths[len(raws) :], n_threads)
    held_out = (first or others[0]).held_out
    if not held_out.all():
        data = data.take(np.tile(held_out, data.n_copies))
    return data, reduce(np.add, raws) / len(raws)


def automatic_temperature(
    model: Model, columns: NDArray[np.uint8], target: Target, n_threads: int
) -> float:
    """Return 1 for classes; in regression the temperature of a fit with error bars, or learn it.

    It is learned from the codes of the training rows and their target as a fit does, but by the
    first chain alone, and from as few folds as have HELD_OUT_ROWS rows.
    """
    recipe, loss = model.recipe, model.recipe.loss
    assert loss is not None
    if loss.task != "regression":
        return 1.0
    if model.posterior is not None:
        return model.posterior.plan.temperature
    check_two_rows(target, "temperature='auto'")
    data = TrainingSet.build(
        columns, recipe.bins.n_codes, target, n_threads, is_level=recipe.encoding.is_level
    ).take(target.weight > 0.0)
    n_folds = min(math.ceil(N_FOLDS * HELD_OUT_ROWS / data.n_rows), N_FOLDS)
    validation = recipe.lazy_cross_validation(data, n_folds=n_folds)
    raw = validation.out_of_fold(len(model.traces[0]), n_threads if loss.row_wise else 1)
    return noise_temperature(loss, data.target.take(validation.held_out), raw)


def check_two_rows(target: Target, request: str) -> None:
    """Reject training rows of which none can be compared with a chain of the others."""
    n_rows = int(np.count_nonzero(target.weight))
    if n_rows < 2:
        raise ValueError(
            f"{request} needs two rows or more, as y is compared with predictions of chains that"
            f" have not seen it; there is {n_rows}"
        )


def _whole(target: Target, n_copies: int) -> Target:
    """Return the target of one of several copies of the rows, with the whole of their weight."""
    return target if n_copies == 1 else replace(target, weight=target.weight * n_copies)
