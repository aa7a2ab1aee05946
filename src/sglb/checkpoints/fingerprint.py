"""What a chain depends on, by the names that users know: two fits with the same are the same."""

import hashlib
import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.archive import dumps
from sglb.archive.arguments import from_json, to_json
from sglb.callbacks import EvaluationSet
from sglb.categories import storage
from sglb.cluster import DealtRows, TrainingData
from sglb.leaves import LeafRule
from sglb.losses import Loss
from sglb.metrics import Metric
from sglb.model import Model
from sglb.recipe import Kind, Recipe
from sglb.schedules import Moving, StepFunction
from sglb.target import Target

# Sections, each a JSON value by name. Where one differs, those after it need not be looked at.
Fingerprint = dict[str, dict[str, Any]]

# Parameters on which no step depends.
IDLE = ("n_jobs", "verbose", "warm_start")


def describe(value: Any) -> Any:
    """Return JSON that identifies an argument; of a user's object, the name of its type."""
    if isinstance(value, StepFunction):
        return _digest(np.array(value.values))
    if isinstance(value, Moving) and not value.storable and is_dataclass(value):
        parts = {each.name: describe(getattr(value, each.name)) for each in fields(value)}
        return _digest(type(value).__name__, json.dumps(parts))
    return to_json(value)


def describe_parameters(kind: Kind, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that distinguish a fit from others."""
    stated = {name: describe(value) for name, value in parameters.items() if name not in IDLE}
    return {"estimator": kind} | stated


def describe_data(
    data: TrainingData,
    sets: Sequence[EvaluationSet],
    metrics: Sequence[Metric],
    recipe: Recipe,
    origin: Model | None,
) -> dict[str, Any]:
    """Return digests of all that is learned from and scored; `origin` is continued, if stated."""
    document, tables = storage.pack(recipe.encoding)
    described = {
        "n_rows": data.n_rows // data.n_copies,
        "thresholds": _digest(recipe.bins.thresholds, recipe.bins.n_thresholds),
        "categories": _digest(repr(document), *(tables[name] for name in sorted(tables))),
        "classes": _digest(repr(recipe.classes.tolist())),
        "feature_names": recipe.feature_names,
        "init_model": None if origin is None else _digest(np.frombuffer(dumps(origin), np.uint8)),
        "eval_metric": [metric.name for metric in metrics] if sets else [],
        "n_eval_sets": len(sets),
        **_rows(_codes(data), data.target, ""),
    }
    for number, each in enumerate(sets):
        described |= _rows(each.columns, each.target, f"eval_set[{number}].")
    return described


def describe_settings(recipe: Recipe) -> dict[str, Any]:
    """Return the numbers that "auto" stands for, and the loss."""
    settings, loss = recipe.settings, recipe.loss
    described = {each.name: getattr(settings, each.name) for each in fields(settings)}
    leaves: LeafRule = described.pop("leaves")
    return {
        "noise_version": recipe.noise_version,
        "loss": None if loss is None else loss.name,
        "loss_parameters": None if loss is None else _describe_loss(loss),
        "offset": recipe.offset.tolist(),
        "leaf_method": leaves.method,
        "leaf_steps": leaves.steps,
        "l2_regularization": leaves.l2,
    } | {name: describe(value) for name, value in described.items()}


def _describe_loss(loss: Loss) -> Any:
    if loss.storable or not loss.schedules:
        return to_json(loss.parameters())
    return describe(loss)


def differences(now: Fingerprint, then: Fingerprint) -> list[str]:
    """Return what differs between two fingerprints, in the first section where something does."""
    for section, values in now.items():
        before = then.get(section, {})
        names = [*values, *sorted(before.keys() - values.keys())]
        different = [name for name in names if values.get(name) != before.get(name)]
        if different:
            return [_in_words(name, values.get(name), before.get(name)) for name in different]
    return []


def _in_words(name: str, now: Any, then: Any) -> str:
    if name == "search_length":
        return (
            "n_estimators='auto' is found by cross-validation where there are neither evaluation"
            " sets nor callbacks other than a Checkpoint, which holds for one of the two only"
        )
    if any(isinstance(value, str) and value.startswith(MARK) for value in (now, then)):
        return f"{name} differs"
    return f"{name} is {_shown(now)}, not {_shown(then)}"


def _shown(value: Any) -> str:
    return reprlib.repr(from_json(value) if isinstance(value, dict) else value)


def _codes(data: TrainingData) -> NDArray[Any]:
    """Return the codes of training rows or, of those on servers, what they say of their pieces."""
    return np.array(data.digests()) if isinstance(data, DealtRows) else data.code_columns


def _rows(columns: NDArray[Any], target: Target, prefix: str) -> dict[str, Any]:
    """Return digests of rows: codes, which are all that chains see of X, and target."""
    parts: dict[str, NDArray[Any]] = {
        "X": columns,
        "y": target.values,
        "sample_weight": target.weight,
        "group": target.groups,
        "costs": target.costs,
    }
    return {prefix + name: _digest(part) for name, part in parts.items()}


MARK = "sha256:"


def _digest(*parts: NDArray[Any] | str) -> str:
    content = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            content.update(part.encode("utf-8", "surrogatepass"))
            continue
        content.update(f"{part.dtype.str}{part.shape}".encode())
        content.update(np.ascontiguousarray(part).data)
    return MARK + content.hexdigest()
