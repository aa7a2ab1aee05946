"""Arguments of the constructor, scores and labels <-> JSON."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.errors import ModelFormatError
from sglb.losses import Loss, get_loss
from sglb.samplers import CLASSES
from sglb.schedules import Schedule

INTEGER_TYPES = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FEATURE_TYPES = ("bool", "float32", "float64", *INTEGER_TYPES)
MOST_LABEL_BYTES = 1 << 26
LABEL_TYPES = ("str", "object", *FEATURE_TYPES)


def loss_to_json(loss: Loss) -> dict[str, Any]:
    """Return a built-in loss as JSON."""
    return {"name": loss.name, "parameters": loss.parameters()}


def to_json(value: Any) -> Any:
    """Turn a constructor argument into JSON; what has no such form is named and lost."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):  # item() of a long double is a long double
        value = float(value) if isinstance(value, np.floating) else value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, list | tuple):
        return {"list": [to_json(item) for item in value]}
    if isinstance(value, Mapping):
        return {"pairs": [[to_json(key), to_json(item)] for key, item in value.items()]}
    if isinstance(value, Schedule) and value.storable:
        return str(value)
    for name, sampler in CLASSES.items():
        if type(value) is sampler and value.storable:
            arguments = {
                field.name: to_json(getattr(value, field.name)) for field in fields(sampler)
            }
            return {"sampler": name, "arguments": arguments}
    if isinstance(value, Loss) and value.storable:
        return {"loss": loss_to_json(value)}
    return {"lost": type(value).__name__}


def from_json(value: Any) -> Any:
    """Turn JSON back into a constructor argument; what was lost comes back as None.

    Only what `to_json` writes is read: the argument becomes the same JSON again.
    """
    if not isinstance(value, dict | list):
        return value
    try:
        argument = _argument_of(value)
    except (TypeError, ValueError, KeyError, ArithmeticError, AttributeError) as error:
        raise ModelFormatError("parameters", str(error)) from error
    if not is_same(to_json(argument), without_lost(value)):
        raise ModelFormatError("parameters", f"{value!r} is not a value that a model file can hold")
    return argument


def is_same(value: Any, other: Any) -> bool:
    """Whether two values are the same text in JSON, where 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


def without_lost(value: Any) -> Any:
    """Return JSON of an argument with None for what was lost."""
    match value:
        case {"lost": str(), **others} if not others:
            return None
        case dict():
            return {key: without_lost(item) for key, item in value.items()}
        case list():
            return [without_lost(item) for item in value]
    return value


def is_lost(value: Any) -> bool:
    """Whether files do not store a constructor argument, or part of it."""
    stored = to_json(value)
    return not is_same(without_lost(stored), stored)


def _argument_of(value: Any) -> Any:
    match value:
        case {"number": str() as number}:
            return float(number)
        case {"list": list() as items}:
            return [from_json(item) for item in items]
        case {"pairs": list() as pairs}:
            return {from_json(key): from_json(item) for key, item in pairs}
        case {"sampler": str() as name, "arguments": dict() as arguments}:
            return CLASSES[name](**{key: from_json(item) for key, item in arguments.items()})
        case {"loss": dict() as loss}:
            return get_loss(loss["name"], **loss["parameters"])
    return None


def score_from_json(value: Any) -> Any:
    """Turn JSON back into a score, a number."""
    score = from_json(value)
    if not isinstance(score, int | float) or isinstance(score, bool):
        raise ModelFormatError("evals_result", f"{value!r} is not a score")
    return score


def each_score(turn: Callable[[Any], Any], result: Mapping[str, Mapping[str, Any]]) -> Any:
    """Turn every score of evals_result into JSON, or back."""
    return {
        name: {metric: [turn(score) for score in scores] for metric, scores in metrics.items()}
        for name, metrics in result.items()
    }


def check_padding(labels: list[Any]) -> None:
    """Reject text labels that NumPy would need much memory for: all are as long as the longest.

    A file of 2 MB would ask for 400 GB.
    """
    longest = max((len(label) for label in labels if isinstance(label, str)), default=0)
    if 4 * longest * len(labels) > MOST_LABEL_BYTES:
        raise ModelFormatError(
            "classes", f"{len(labels)} labels of up to {longest} characters take too much memory"
        )


def labels_to_json(classes: NDArray[Any]) -> dict[str, Any] | None:
    """Return the labels of classes as JSON, None without classes, or raise TypeError."""
    if not len(classes):
        return None
    kind = "str" if classes.dtype.kind == "U" else classes.dtype.name
    labels = classes.tolist()
    if kind == "str":
        check_padding(labels)
    if kind not in LABEL_TYPES or not all(isinstance(label, str | int | float) for label in labels):
        raise TypeError(f"class labels of type {classes.dtype} cannot be stored in a model file")
    return {"dtype": kind, "labels": labels}


def labels_from_json(stored: Mapping[str, Any] | None) -> NDArray[Any]:
    """Return the labels that `labels_to_json` stored."""
    if stored is None:
        return np.empty(0)
    labels = stored["labels"]
    if stored["dtype"] == "str":
        check_padding(labels)
    try:
        classes: NDArray[Any] = np.empty(len(labels), dtype=object)
        classes[:] = labels
        if stored["dtype"] != "object":
            classes = np.array(labels, dtype=stored["dtype"])
        is_sorted = np.array_equal(np.unique(classes), classes)
        same = is_sorted and is_same(classes.tolist(), labels)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFormatError("classes", str(error)) from error
    if not same:
        raise ModelFormatError("classes", "labels must be sorted, distinct and of the stated type")
    return classes
