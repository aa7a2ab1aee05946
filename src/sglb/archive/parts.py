"""Parts of a model file that only some models have: outcomes, and draws of the fit or of a user.

Each is one more array of bytes, a safetensors file in itself, and is covered by the digest of the
whole.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.archive.arguments import from_json, to_json
from sglb.errors import ModelFormatError
from sglb.model import Model
from sglb.outcomes import PARAMETERS, OutcomeModel
from sglb.posterior import ChainPosterior, LeafDraws, PosteriorPlan

Bytes = NDArray[np.uint8]
Arrays = dict[str, NDArray[Any]]

PARTS = ("outcomes", "posterior", "draws")
PREFIX = "part_"


def pack_parts(
    model: Model, draws: ChainPosterior | None, dumps: Callable[[Model], bytes]
) -> Arrays:
    """Return the parts of a model and its draws as arrays of bytes; `dumps` stores a model."""
    parts = {}
    if model.outcomes is not None:
        parts[f"{PREFIX}outcomes"] = _pack_outcomes(model.outcomes, dumps)
    if model.posterior is not None:
        parts[f"{PREFIX}posterior"] = _pack_posterior(model.posterior)
    if draws is not None:
        parts[f"{PREFIX}draws"] = _pack_posterior(draws)
    return parts


def unpack_parts(
    parts: Mapping[str, Bytes],
    model: Model,
    depths: NDArray[np.int32],
    loads: Callable[[bytes], Model],
) -> dict[str, Any]:
    """Return the parts of a model whose trees have these depths, by the names of its fields."""
    known: dict[str, Any] = {}
    for name, data in parts.items():
        _require(name, data.dtype == np.uint8 and data.ndim == 1, "it is not bytes")
    if "outcomes" in parts:
        known["outcomes"] = _unpack_outcomes(parts["outcomes"], model.recipe.bins.n_features, loads)
    n_leaves = np.left_shift(1, depths, dtype=np.int64)
    for name in ("posterior", "draws"):
        if name in parts:
            n_outputs = len(model.recipe.offset)
            known[name] = _unpack_posterior(name, parts[name], n_leaves, n_outputs)
    return known


def _pack(document: Mapping[str, Any], arrays: Arrays) -> Bytes:
    from safetensors.numpy import save

    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return np.frombuffer(save(arrays, metadata={"part": text}), dtype=np.uint8)


def _unpack(name: str, data: Bytes) -> tuple[dict[str, Any], Arrays]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    content = data.tobytes()
    try:
        length = int.from_bytes(content[:8], "little")
        document = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["part"])
        arrays = load(content)
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelFormatError(name, str(error)) from error
    if not isinstance(document, dict):
        raise ModelFormatError(name, "its document is not a JSON object")
    return document, {key: np.array(array, order="C") for key, array in arrays.items()}


def _require(name: str, condition: bool, wrong: str) -> None:
    if not condition:
        raise ModelFormatError(name, wrong)


def _numbers(name: str, stored: Any, expected: set[str]) -> dict[str, float]:
    """Return positive numbers by name; infinity is allowed."""
    _require(name, isinstance(stored, dict) and set(stored) == expected, "its numbers are others")
    numbers = {key: from_json(value) for key, value in stored.items()}
    for key, value in numbers.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        _require(f"{name}.{key}", is_number and value > 0.0, f"{value!r} is not above 0")
    return numbers


# Outcomes.


def _pack_outcomes(outcomes: OutcomeModel, dumps: Callable[[Model], bytes]) -> Bytes:
    scale = b"" if outcomes.scale is None else dumps(outcomes.scale)
    parameters = {name: to_json(value) for name, value in outcomes.parameters.items()}
    document = {"law": outcomes.law, "parameters": parameters, "unit": outcomes.unit}
    return _pack(document, {"scale": np.frombuffer(scale, dtype=np.uint8)})


def _unpack_outcomes(data: Bytes, n_features: int, loads: Callable[[bytes], Model]) -> OutcomeModel:
    name = "outcomes"
    document, arrays = _unpack(name, data)
    _require(name, set(document) == {"law", "parameters", "unit"}, "its fields are others")
    law = document["law"]
    _require("outcomes.law", isinstance(law, str) and law in PARAMETERS, f"{law!r} is not a law")
    parameters = _numbers(name, document["parameters"], set(PARAMETERS[law]))
    unit = _numbers(name, {"unit": document["unit"]}, {"unit"})["unit"]
    _require(name, math.isfinite(unit), "its unit is not finite")
    is_bytes = set(arrays) == {"scale"} and arrays["scale"].dtype == np.uint8
    _require("outcomes.scale", is_bytes and arrays["scale"].ndim == 1, "it is not bytes")
    content = arrays["scale"].tobytes()
    has_scale = law == "student"
    _require("outcomes.scale", bool(content) == has_scale, f"it does not go with the law {law!r}")
    if not has_scale:
        return OutcomeModel(law, parameters, None, unit)
    scale = loads(content)
    fits = scale.recipe.bins.n_features == n_features and len(scale.recipe.offset) == 1
    is_plain = scale.outcomes is None and scale.posterior is None
    _require("outcomes.scale", fits and is_plain, "it is not a chain of log scales of this model")
    return OutcomeModel(law, parameters, scale, unit)


# Draws.

_PLAN = tuple(field.name for field in fields(PosteriorPlan))


def _pack_posterior(posterior: ChainPosterior) -> Bytes:
    draws = posterior.draws
    document = {"plan": asdict(posterior.plan), "mirror": draws.mirror}
    return _pack(document, {"values": draws.values, "stages": draws.stages})


def _unpack_posterior(
    name: str, data: Bytes, n_leaves: NDArray[np.int64], n_outputs: int
) -> ChainPosterior:
    document, arrays = _unpack(name, data)
    plan, mirror = document.get("plan"), document.get("mirror")
    _require(name, set(document) == {"plan", "mirror"}, "its fields are others")
    _require(name, isinstance(plan, dict) and set(plan) == set(_PLAN), "its plan is another")
    assert isinstance(plan, dict)
    _require(name, mirror is (plan["kind"] == "laplace"), "its mirror images do not fit its kind")
    _require(f"{name}.kind", plan["kind"] in ("laplace", "full"), f"{plan['kind']!r} is no kind")
    for field in ("n_draws", "n_steps", "seed"):
        value = plan[field]
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        _require(f"{name}.{field}", is_count, f"{value!r} is not a count")
    numbers = {key: plan[key] for key in ("prior_variance", "temperature")}
    finite = all(math.isfinite(value) for value in _numbers(name, numbers, set(numbers)).values())
    _require(name, finite, "its numbers are not finite")
    _require(name, set(arrays) == {"values", "stages"}, "its arrays are others")
    values, stages = arrays["values"], arrays["stages"]
    n_values = plan["n_draws"] // 2 if mirror else plan["n_draws"]
    expected = int(n_leaves.sum()), n_outputs, n_values
    is_float = values.dtype == np.float32 and stages.dtype == np.float64
    _require(f"{name}.values", is_float and values.shape == expected, "it has another shape")
    watched = stages.ndim == 4 and stages.shape[:2] == (2, n_outputs)
    whole = watched and stages.shape[3] == plan["n_draws"]
    _require(f"{name}.stages", whole, "it has another shape")
    is_finite = bool(np.isfinite(values).all() and np.isfinite(stages).all())
    _require(f"{name}.values", is_finite, "a value is not finite")
    return ChainPosterior(LeafDraws(n_leaves, values, bool(mirror), stages), PosteriorPlan(**plan))
