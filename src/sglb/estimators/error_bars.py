"""What fit adds to a model that is asked for uncertainty."""

from dataclasses import replace

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

    In regression both need predictions of rows by chains that have not seen them: those that a
    cross-validation of the length has left, or five more.
    """
    recipe, loss = model.recipe, model.recipe.loss
    assert loss is not None  # a chain has run
    rows = data.first_copy()
    plan = PosteriorPlan(seed=chain_seed(recipe.settings.seed))
    if loss.task == "regression":
        validation = validation or recipe.cross_validation(data)
        lengths = sorted(len(trace) for trace in model.traces)
        raw = validation.out_of_fold(lengths[len(lengths) // 2], n_threads if loss.row_wise else 1)
        outcomes = learn_outcomes(recipe, loss, data, raw, n_threads)
        plan = replace(plan, temperature=noise_temperature(loss, rows.target, raw))
        model = replace(model, outcomes=outcomes)
    target = _whole(rows.target, data.n_copies)
    codes, order = rows.code_columns, recipe.training_order(len(target))
    drawn = draw_for_chains(loss, model.traces, codes, target, plan, n_threads, order)
    return replace(model, posterior=drawn)


def _whole(target: Target, n_copies: int) -> Target:
    """Return the target of one of several copies of the rows, with the whole of their weight."""
    return target if n_copies == 1 else replace(target, weight=target.weight * n_copies)
