"""From training rows to a recipe, and to the codes that its chain runs on."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb.cluster import TrainingData
from sglb.losses import Loss
from sglb.prepare.encoded import EncodedRows, encode_rows, encoded_by, is_same
from sglb.prepare.rows import LabelledRows, size_of
from sglb.recipe import Kind, Recipe
from sglb.settings import Settings, resolve
from sglb.target import Target


@dataclass(frozen=True)
class Request:
    """What the caller asks for: an estimator's kind and parameters, names of the columns.

    `alone` means that there is neither an evaluation set nor a callback of the user.
    `check_gradient` compares the gradient of a user's loss with finite differences. `seed` is that
    of a fit to repeat, None to draw it as the parameters say.
    """

    kind: Kind
    parameters: dict[str, Any]
    feature_names: list[str] | None
    alone: bool
    check_gradient: bool
    seed: int | None = None


@dataclass(frozen=True)
class Preparation:
    """A recipe, and the training rows as codes."""

    recipe: Recipe
    encoded: EncodedRows
    data: TrainingData


class Problem(NamedTuple):
    """A loss that knows its target, the best constant to start from, and settings for both."""

    loss: Loss
    start: NDArray[np.float64]
    settings: Settings


def pose(
    target: Target, n_columns: int, loss: Loss, request: Request, n_threads: int = 1
) -> Problem:
    """Fit a loss to a target of rows with `n_columns` columns, and resolve the settings."""
    loss.check_target(target)
    loss = loss.adapt(target, n_threads)
    best = loss.init(target)
    loss = loss.examine(target, best, check=request.check_gradient)
    size, parameters = size_of(target, n_columns, loss, best), request.parameters
    settings = resolve(parameters, loss, size, alone=request.alone)
    if request.seed is not None:
        settings = replace(settings, seed=request.seed)
    loss = loss.for_length(settings.n_steps)
    start = np.zeros_like(best) if parameters.get("init") == "zero" else best
    return Problem(loss, start, settings)


def prepare(rows: LabelledRows, loss: Loss, request: Request, n_threads: int) -> Preparation:
    """Resolve the settings and encode the rows."""
    target, n_columns = rows.target, len(rows.features.is_categorical)
    loss, start, settings = pose(target, n_columns, loss, request, n_threads)
    encoded = encode_rows(rows, settings.max_bins, settings.seed, n_threads)
    recipe = Recipe(
        kind=request.kind,
        parameters=request.parameters,
        settings=settings,
        loss=loss,
        encoding=encoded.encoding,
        bins=encoded.bins,
        offset=start,
        classes=target.classes,
        feature_names=request.feature_names,
        total_weight=target.total_weight,
    )
    return Preparation(recipe, encoded, encoded.training_set(target, n_threads))


def prepare_more(rows: LabelledRows, recipe: Recipe, n_threads: int) -> Preparation:
    """Encode rows for a recipe: as training rows if it was made from them, else as new rows.

    For new rows the result has the recipe's own encoding, the same object.
    """
    target, settings = rows.target, recipe.settings
    assert recipe.loss is not None  # the caller has set a user's own
    recipe.loss.check_target(target)
    encoded = encode_rows(rows, settings.max_bins, settings.seed, n_threads)
    if is_same(encoded, recipe):
        recipe = replace(recipe, encoding=encoded.encoding, bins=encoded.bins)
    else:
        columns = recipe.encode_training(rows.features, target, n_threads)
        encoded = encoded_by(recipe.encoding, recipe.bins, columns)
    return Preparation(recipe, encoded, encoded.training_set(target, n_threads))
