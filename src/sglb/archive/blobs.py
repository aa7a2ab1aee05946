"""A document and arrays <-> bytes, for parts of a model file."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.archive.arguments import from_json
from sglb.errors import ModelFormatError

Bytes = NDArray[np.uint8]
Arrays = dict[str, NDArray[Any]]


def pack(document: Mapping[str, Any], arrays: Arrays) -> Bytes:
    """Return a JSON document and arrays as bytes."""
    from safetensors.numpy import save

    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return np.frombuffer(save(arrays, metadata={"part": text}), dtype=np.uint8)


def unpack(name: str, data: Bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the document and the arrays that bytes are made of."""
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


def require(name: str, condition: bool, wrong: str) -> None:
    """Reject a field unless a condition holds."""
    if not condition:
        raise ModelFormatError(name, wrong)


def positive_numbers(name: str, stored: Any, expected: set[str]) -> dict[str, float]:
    """Return positive numbers by name; infinity is allowed."""
    require(name, isinstance(stored, dict) and set(stored) == expected, "its numbers are others")
    numbers = {key: from_json(value) for key, value in stored.items()}
    for key, value in numbers.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        require(f"{name}.{key}", is_number and value > 0.0, f"{value!r} is not above 0")
    return numbers
