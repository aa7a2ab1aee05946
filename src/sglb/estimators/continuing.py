"""Fits that continue a model: its recipe and trees stay, and steps are added.

The rows may be others than those of the model. If they are the same ones they get the same codes,
and a model of 100 steps continued for 100 is the model of 200, as far as its settings do not depend
on the number of steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglb import archive
from sglb.checkpoints import describe
from sglb.defaults import SCHEDULED
from sglb.losses import Loss
from sglb.model import Model
from sglb.prepare import LabelledRows, Preparation, Request, pose, prepare_more
from sglb.rates import check_stability
from sglb.samplers import Sampler, StorableSampler, Tempering
from sglb.settings import NOT_IN_FILES
from sglb.trace import Trace

if TYPE_CHECKING:
    from sglb.estimators.base import ChainEstimator

# Parameters that may change from one fit to the next.
FREE = ("n_estimators", "early_stopping_rounds", "n_jobs", "verbose", "warm_start")


@dataclass(frozen=True)
class Origin:
    """A model that a fit continues up to `n_steps` steps, and a fitted estimator that reads rows
    as the model does.
    """

    model: Model
    n_steps: int
    reader: "ChainEstimator"

    @property
    def traces(self) -> dict[str, Trace]:
        """The traces of the chains, by the names that a journal has for them."""
        return {f"chain {number}": trace for number, trace in enumerate(self.model.traces)}

    def prepare(
        self, rows: LabelledRows, loss: Loss, request: Request, n_threads: int
    ) -> Preparation:
        """Return the model's recipe with more steps, and rows as it codes them."""
        recipe, parameters = self.model.recipe, request.parameters
        recipe.check_noise()
        settings = replace(
            recipe.settings,
            sampler=self._sampler(parameters["sampler"]),
            n_steps=self.n_steps,
            search_length=False,
        )
        if recipe.loss is None:
            n_columns = len(rows.features.is_categorical)
            recipe = replace(recipe, loss=pose(rows.target, n_columns, loss, request).loss)
        recipe = replace(
            recipe,
            parameters=parameters | {"n_estimators": self.n_steps},
            settings=settings,
            total_weight=rows.target.total_weight,
        )
        if recipe.loss is not None and isinstance(settings.sampler, StorableSampler):
            # More steps of a schedule than the model was checked for.
            move = settings.sampler.boldest_move(self.n_steps)
            check_stability(move, recipe.loss, settings.leaves.method)
        prepared = prepare_more(rows, recipe, n_threads)
        if parameters.get("uncertainty") and prepared.recipe.encoding is recipe.encoding:
            raise ValueError(
                "uncertainty=True cannot learn error bars for a model that continues on rows other"
                " than its own, because no chain has learned from both without some of them; use"
                " uncertainty=False, then conformalize(X, y) with rows it has not seen"
            )
        return prepared

    def _sampler(self, stated: Any) -> Sampler:
        """Return the sampler of the model, or the stated one if its file may not have held it."""
        settings = self.model.recipe.settings
        sampler = settings.sampler
        if hasattr(stated, "move") and not isinstance(sampler, StorableSampler):
            sampler = stated
        if isinstance(sampler, archive.LostSampler):
            raise ValueError(f"init_model: {_why_lost(self.model.recipe.parameters)}")
        if not isinstance(sampler, StorableSampler):
            return sampler
        # Schedules without a length have that of the model, and go on for more steps.
        return sampler.for_length(settings.n_steps).for_length(self.n_steps)


def _why_lost(parameters: Mapping[str, Any]) -> str:
    """Return what a file does not hold of a sampler, and the remedy."""
    if parameters["sampler"] is None:
        return "files do not store a user-defined sampler; call set_params(sampler=...)"
    names = [name for name in SCHEDULED if parameters[name] is None]
    return (
        f"a file does not hold {' and '.join(names)} where that is a function of the step; continue"
        " the fitted estimator or a pickle of it, which do"
    )


def find_origin(estimator: "ChainEstimator", init_model: Any) -> Origin | None:
    """Return the model that a fit is to continue, None if it starts from nothing."""
    is_warm = estimator.warm_start and "_model" in estimator.__dict__
    if init_model is None:
        if not is_warm:
            return None
        model, words = estimator._fitted(), "warm_start=True"
    else:
        if estimator.warm_start:
            raise ValueError("warm_start=True and init_model exclude each other; use one of them")
        model, words = _model_of(init_model), "init_model"
    parameters = estimator.get_params(deep=False)
    _check_alike(estimator, model, parameters, words)
    stated = parameters["n_estimators"]
    if stated == "auto":
        meaning = "steps in all" if init_model is None else "steps to add"
        raise ValueError(f"{words} needs n_estimators, the number of {meaning}; it is 'auto'")
    n_steps = int(stated) + (0 if init_model is None else model.n_steps)
    if n_steps < model.n_steps:
        raise ValueError(
            f"n_estimators={stated} is less than the {model.n_steps} steps of the model that"
            " warm_start=True continues; model[:k] has fewer of them"
        )
    return Origin(model, n_steps, estimator._of(model))


def _model_of(init_model: Any) -> Model:
    """Return a model as stated: a path, or a fitted estimator."""
    if isinstance(init_model, str | Path):
        return archive.read(init_model)[0]
    if not callable(fitted := getattr(init_model, "_fitted", None)):
        raise TypeError(
            f"init_model={init_model!r} is not a model of sglb; use a fitted estimator or the path"
            " of its file"
        )
    model: Model = fitted()
    return model


def _check_alike(
    estimator: "ChainEstimator", model: Model, parameters: Mapping[str, Any], words: str
) -> None:
    """Reject an estimator that is not the model's: of another kind, or with other parameters."""
    recipe = model.recipe
    if recipe.kind != estimator._kind:
        raise ValueError(f"{words}: the model is a {recipe.kind}, not a {estimator._kind}")
    if isinstance(recipe.settings.sampler, Tempering):
        raise ValueError(
            f"{words}: a model of sampler='tempering' cannot be continued: its file does not store"
            " the rungs of its chains; a checkpoint does (resume_from)"
        )
    for name, value in parameters.items():
        if name in FREE or name not in recipe.parameters:
            continue
        model_value = recipe.parameters[name]
        if model_value is None and name in NOT_IN_FILES:
            continue
        if describe(value) != describe(model_value):
            raise ValueError(
                f"{words}: {name}={value!r} differs from the {name}={model_value!r} that the model"
                f" was trained with; call set_params({name}={model_value!r})"
            )
