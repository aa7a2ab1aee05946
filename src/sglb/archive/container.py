"""A JSON document and arrays <-> bytes: a safetensors file, in the one form that is ever written.

    8 bytes     length of the header
    header      JSON: the document as text in the metadata, then type, shape and bytes of each
                array; spaces up to a multiple of 8
    arrays      one after the other without a hole, by type, the widest first, then by name

A file is read by taking it apart and comparing its header with the one that would be written: so
the same content has the same bytes, and bytes that are read are written again. Arrays are views of
the file, whose header cannot make them larger than it is.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.errors import ModelFormatError

Arrays = dict[str, NDArray[Any]]

# In the order of their arrays.
TYPES = {"U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "I32": "<i4", "U8": "|u1"}
NAMES = {np.dtype(code): name for name, code in TYPES.items()}

MOST_HEADER_BYTES = 1 << 26
MOST_ARRAYS, MOST_AXES = 64, 4
MOST_NESTING = 50  # a parameter is a list or a dict of numbers and labels at most
# What Python's objects of a header may take: so much whatever the file, or 4 times the file. The
# shortest JSON, such as [], [], ..., becomes 20 times as large.
MOST_OBJECT_BYTES = 1 << 26


def pack(key: str, document: Mapping[str, Any], arrays: Arrays) -> list[Any]:
    """Return the pieces of a file: the header with a document named `key`, then each array."""
    contiguous = {name: np.ascontiguousarray(arrays[name]) for name in _order(arrays)}
    header = _header(key, _text_of(document), contiguous)
    return [header, *(array.reshape(-1).view(np.uint8) for array in contiguous.values())]


def unpack(
    key: str,
    data: bytes | memoryview,
    check: Callable[[Mapping[str, Any]], None] = lambda document: None,
) -> tuple[dict[str, Any], Arrays]:
    """Return the document of this name and the arrays of a file, or raise `ModelFormatError`.

    `check` sees the document before the form of the file is examined, which a newer version of the
    library may have changed.
    """
    view = memoryview(data)
    length = int.from_bytes(view[:8], "little")
    if length > min(len(view) - 8, MOST_HEADER_BYTES):
        raise ModelFormatError(
            "header", "it is longer than the file or the limit; this is not a model file"
        )
    content = bytes(view[8 : 8 + length])
    _check_amount(content, len(view))
    try:
        header = json.loads(content)
        text = header.pop("__metadata__")[key]
        document = json.loads(text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFormatError(
            "header", "it cannot be read; this is not a model file of sglb"
        ) from error
    except RecursionError as error:
        raise ModelFormatError("header", "it is nested too deeply") from error
    if not isinstance(document, dict):
        raise ModelFormatError("header", "the document is not a JSON object")
    _check_nesting(document)
    check(document)
    arrays = _arrays_of(header, view[8 + length :])
    try:
        same = _text_of(document) == text and _header(key, text, arrays) == view[: 8 + length]
    except ValueError as error:  # a number that is not finite
        raise ModelFormatError("header", str(error)) from error
    if not same:
        raise ModelFormatError("header", "it is not in the form in which sglb writes it")
    return document, arrays


def _text_of(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _order(arrays: Arrays) -> list[str]:
    ranks = list(TYPES)
    return sorted(arrays, key=lambda name: (ranks.index(NAMES[arrays[name].dtype]), name))


def _header(key: str, text: str, arrays: Arrays) -> bytes:
    """Return the bytes before the arrays."""
    header: dict[str, Any] = {"__metadata__": {key: text}}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        kind, shape = NAMES[array.dtype], list(array.shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    content = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    content += b" " * (-len(content) % 8)
    return len(content).to_bytes(8, "little") + content


def _arrays_of(header: Mapping[str, Any], content: memoryview) -> Arrays:
    """Return views of the arrays that a header describes, one after the other."""
    if len(header) > MOST_ARRAYS:
        raise ModelFormatError("arrays", f"there are {len(header)}; the limit is {MOST_ARRAYS}")
    arrays: Arrays = {}
    end = 0
    for name, entry in header.items():
        kind = entry.get("dtype") if isinstance(entry, dict) else None
        if not (isinstance(kind, str) and kind in TYPES):
            raise ModelFormatError(name, f"its type is {kind!r}, not one of {', '.join(TYPES)}")
        shape, dtype = entry.get("shape"), np.dtype(TYPES[kind])
        if not (isinstance(shape, list) and len(shape) <= MOST_AXES and all(map(_is_size, shape))):
            raise ModelFormatError(name, f"its shape {shape!r} is not allowed")
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        if end > len(content):
            raise ModelFormatError(name, f"its shape {shape} is larger than the file")
        try:
            arrays[name] = np.ndarray(shape, dtype, content, begin)
        except ValueError as error:  # no value at all, but of 2^39 columns each
            raise ModelFormatError(name, str(error)) from error
    if end != len(content):
        raise ModelFormatError("arrays", f"they have {end} bytes, the file {len(content)}")
    if _order(arrays) != list(arrays):
        raise ModelFormatError("arrays", "they are in another order than that of their types")
    return arrays


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 40


def _check_amount(content: bytes, n_bytes: int) -> None:
    """Reject a header whose objects would take far more memory than the file."""
    # Upper bounds of what CPython's objects take: an entry, an empty list, a dict of a few entries.
    sizes = {b",": 64, b"[": 64, b"{": 256}
    amount = sum(size * content.count(mark) for mark, size in sizes.items())
    if amount > max(MOST_OBJECT_BYTES, 4 * n_bytes):
        raise ModelFormatError("header", f"its values would take {amount} bytes of memory")


def _check_nesting(document: Any) -> None:
    """Reject a document that is nested too deeply for recursive code."""
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > MOST_NESTING:
            raise ModelFormatError("header", f"the document is nested deeper than {MOST_NESTING}")
        parts = [list(node.values()) if isinstance(node, dict) else node for node in level]
        level = [item for part in parts if isinstance(part, list) for item in part]
