"""A document and arrays <-> bytes, for parts of a model file."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.archive import container
from sglb.archive.arguments import from_json
from sglb.archive.container import Arrays
from sglb.errors import ModelFormatError
from sglb.model import Model

Bytes = NDArray[np.uint8]


def pack(document: Mapping[str, Any], arrays: Arrays) -> Bytes:
    """Return a JSON document and arrays as bytes."""
    return np.frombuffer(b"".join(container.pack("part", document, arrays)), dtype=np.uint8)


def unpack(name: str, data: Bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the document and the arrays, views of the bytes, that a part is made of."""
    view = _bytes_of(name, data)
    try:
        return container.unpack("part", view)
    except ModelFormatError as error:
        raise ModelFormatError(f"{name}.{error.field}", error.reason) from error


def _bytes_of(name: str, data: Bytes) -> memoryview:
    require(name, data.dtype == np.uint8 and data.ndim == 1, "it is not bytes")
    return data.data


def model_of(name: str, data: Bytes, loads: Callable[[memoryview], Model]) -> Model:
    """Return the model that `loads` reads from an array of a part."""
    view = _bytes_of(name, data)
    try:
        return loads(view)
    except ModelFormatError as error:
        raise ModelFormatError(f"{name}.{error.field}", error.reason) from error


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
        require(f"{name}.{key}", is_number and value > 0, f"{value!r} is not above 0")
        is_small = isinstance(value, float) or value < 1 << 64
        require(f"{name}.{key}", is_small, "it is too large")
    return numbers
