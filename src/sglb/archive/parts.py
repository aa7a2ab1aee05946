"""Parts of a model file that only some models have: outcomes, and draws of the fit or of a user.

Each is one more array of bytes, a safetensors file in itself, and is covered by the digest of the
whole.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.archive.arguments import to_json
from sglb.archive.blobs import Bytes, model_of, pack, positive_numbers, require, unpack
from sglb.archive.container import Arrays
from sglb.archive.draws import pack_draws, unpack_draws
from sglb.model import Model
from sglb.outcomes import PARAMETERS, OutcomeModel
from sglb.posterior import AnyPosterior, ChainPosterior

PARTS = ("outcomes", "posterior", "draws")
PREFIX = "part_"


def pack_parts(model: Model, draws: AnyPosterior | None, dumps: Callable[[Model], bytes]) -> Arrays:
    """Return the parts of a model and its draws as arrays of bytes; `dumps` stores a model."""
    parts = {}
    if model.outcomes is not None:
        parts[f"{PREFIX}outcomes"] = _pack_outcomes(model.outcomes, dumps)
    for name, drawn in (("posterior", model.posterior), ("draws", draws)):
        if drawn is not None:
            parts[f"{PREFIX}{name}"] = pack_draws(drawn, model, dumps)
    return parts


def unpack_parts(
    parts: Mapping[str, Bytes],
    model: Model,
    depths: NDArray[np.int32],
    loads: Callable[[memoryview], Model],
    is_file_of: Callable[[memoryview, Model], bool],
) -> dict[str, Any]:
    """Return the parts of a model whose trees have these depths, by the names of its fields."""
    contents: dict[str, Any] = {}
    if "outcomes" in parts:
        contents["outcomes"] = _unpack_outcomes(
            parts["outcomes"], model.recipe.bins.n_features, loads
        )
    n_leaves = np.left_shift(1, depths, dtype=np.int64)
    for name in ("posterior", "draws"):
        if name in parts:
            contents[name] = unpack_draws(name, parts[name], model, n_leaves, loads, is_file_of)
    is_short = isinstance(contents.get("posterior"), ChainPosterior | None)
    require("posterior.kind", is_short, "fit does not draw states of long chains")
    return contents


def _pack_outcomes(outcomes: OutcomeModel, dumps: Callable[[Model], bytes]) -> Bytes:
    scale = b"" if outcomes.scale is None else dumps(outcomes.scale)
    parameters = {name: to_json(value) for name, value in outcomes.parameters.items()}
    document = {"law": outcomes.law, "parameters": parameters, "unit": outcomes.unit}
    return pack(document, {"scale": np.frombuffer(scale, dtype=np.uint8)})


def _unpack_outcomes(
    data: Bytes, n_features: int, loads: Callable[[memoryview], Model]
) -> OutcomeModel:
    name = "outcomes"
    document, arrays = unpack(name, data)
    require(name, set(document) == {"law", "parameters", "unit"}, "unexpected fields")
    law = document["law"]
    require("outcomes.law", isinstance(law, str) and law in PARAMETERS, f"{law!r} is not a law")
    parameters = positive_numbers(name, document["parameters"], set(PARAMETERS[law]))
    unit = positive_numbers(name, {"unit": document["unit"]}, {"unit"})["unit"]
    # Of a scale infinite degrees of freedom are allowed, and nothing else that is infinite.
    finite = [unit, *(value for key, value in parameters.items() if key != "df")]
    require(name, math.isfinite(math.prod(finite)), "its numbers are too large")
    is_bytes = set(arrays) == {"scale"} and arrays["scale"].dtype == np.uint8
    require("outcomes.scale", is_bytes and arrays["scale"].ndim == 1, "it is not bytes")
    content = arrays["scale"]
    has_scale = law == "student"
    goes = (len(content) > 0) == has_scale
    require("outcomes.scale", goes, f"it does not go with the law {law!r}")
    if not has_scale:
        return OutcomeModel(law, parameters, None, unit)
    scale = model_of("outcomes.scale", content, loads)
    fits = scale.recipe.bins.n_features == n_features and len(scale.recipe.offset) == 1
    require("outcomes.scale", fits, "it is not a chain of log scales of this model")
    return OutcomeModel(law, parameters, scale, unit)
