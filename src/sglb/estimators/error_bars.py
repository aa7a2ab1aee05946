"""What fit adds to a model with `uncertainty=True`."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sglb.folds import CrossValidation
from sglb.model import Model
from sglb.noise import chain_seed
from sglb.outcomes import learn_outcomes
from sglb.posterior import PosteriorPlan, draw_for_chains, noise_temperature
from sglb.target import Target
from sglb.training_set import TrainingSet


def add_error_bars(
    model: Model, data: TrainingSet, validation: CrossValidation | None, n_threads: int
) -> Model:
    """Add to a model how y is distributed about its predictions, and draws of the model.

    In regression both need predictions of rows by chains that have not seen them: five for each
    chain of the model, of which a cross-validation of the length has left those of the first.
    """
    recipe, loss = model.recipe, model.recipe.loss
    assert loss is not None  # a chain has run
    rows = data.first_copy()
    plan = PosteriorPlan(seed=chain_seed(recipe.settings.seed))
    if loss.task == "regression":
        raw = _out_of_fold(model, data, validation, n_threads if loss.row_wise else 1)
        outcomes = learn_outcomes(recipe, loss, data, raw, n_threads)
        plan = replace(plan, temperature=noise_temperature(loss, rows.target, raw))
        model = replace(model, outcomes=outcomes)
    target = _whole(rows.target, data.n_copies)
    codes, order = rows.code_columns, recipe.training_order(len(target))
    drawn = draw_for_chains(loss, model.traces, codes, target, plan, n_threads, order)
    return replace(model, posterior=drawn)


def _out_of_fold(
    model: Model, data: TrainingSet, first: CrossValidation | None, n_threads: int
) -> NDArray[np.float64]:
    """Return raw scores of the rows by chains that have not seen them, (n_outputs, n_rows).

    Of several chains the mean, as in predictions: errors of a single chain are larger.
    """
    validation = first or model.recipe.cross_validation(data)
    raw = validation.out_of_fold(len(model.traces[0]), n_threads)
    for number, trace in enumerate(model.traces[1:], start=1):
        validation = model.recipe.cross_validation(data, number=number)
        raw += validation.out_of_fold(len(trace), n_threads)
    return raw / len(model.traces)


def _whole(target: Target, n_copies: int) -> Target:
    """Return the target of one of several copies of the rows, with the whole of their weight."""
    return target if n_copies == 1 else replace(target, weight=target.weight * n_copies)
