"""A model <-> bytes <-> a file. Nothing in them is code, a pickle or a path.

The bytes are a safetensors file: a header, one JSON document in its metadata, the arrays of the
ensemble, and as the last array the SHA-256 of all bytes before it. The same model always gives the
same bytes. What is read is distrusted in this order: size, header, digest, fields of the document,
shapes of the arrays, then their meaning; every failure is a `ModelFormatError` with the field.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.bins import Bins
from sglb.categories import Encoding, storage
from sglb.ensemble import Ensemble
from sglb.errors import ModelFormatError
from sglb.files import whole_file
from sglb.losses import Loss, UserLoss, get_loss
from sglb.model import Model
from sglb.samplers import SAMPLERS

FORMAT_VERSION = 2  # 1 had no categorical columns; it is still read
NOISE_VERSION = 1  # how (seed, step, role, output, index) becomes a normal
MOST_BYTES = 1 << 36
MOST_HEADER_BYTES = 1 << 26
MOST_DEPTH = 16
DIGEST_BYTES = 32

# Not part of the model: the same model comes from any of their values.
LEFT_OUT = ("n_jobs", "verbose")

# Shapes: F features, B borders, T trees, D depth, L = 2^D leaves, K outputs, H the digest's bytes.
ARRAYS: Mapping[str, tuple[type[np.generic], str]] = {
    "thresholds": (np.float64, "FB"),
    "n_thresholds": (np.int32, "F"),
    "features": (np.int32, "TD"),
    "lows": (np.uint8, "TD"),
    "highs": (np.uint8, "TD"),
    "depths": (np.int32, "T"),
    "values": (np.float64, "TLK"),
    "shrinks": (np.float64, "T"),
    "gains": (np.float64, "TD"),
    "offset": (np.float64, "K"),
    "sha256": (np.uint8, "H"),
    **storage.ARRAYS,
}

Arrays = dict[str, NDArray[Any]]


def _is_number(value: Any) -> bool:
    return (isinstance(value, float) and math.isfinite(value)) or _is_count(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def _is_loss(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and set(value) == {"name", "parameters"}
        and isinstance(value["name"], str)
        and isinstance(value["parameters"], dict)
        and all(_is_number(number) for number in value["parameters"].values())
    )


def _is_names(value: Any) -> bool:
    if value is None:
        return True
    is_text = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return is_text and len(set(value)) == len(value)


def _is_classes(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and set(value) == {"dtype", "labels"}
        and value["dtype"] in LABEL_TYPES
        and isinstance(value["labels"], list)
        and len(value["labels"]) > 0
        and all(isinstance(label, str | int | float) for label in value["labels"])
    )


def _is_scores(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(metrics, dict) and all(isinstance(scores, list) for scores in metrics.values())
        for metrics in value.values()
    )


INTEGER_TYPES = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FEATURE_TYPES = ("bool", "float32", "float64", *INTEGER_TYPES)
LABEL_TYPES = ("str", "object", *FEATURE_TYPES)

FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "format": lambda v: v == "sglb",
    "version": lambda v: v == FORMAT_VERSION,
    "noise_version": lambda v: v == NOISE_VERSION,
    "kind": lambda v: v in ("classifier", "regressor"),
    "loss": _is_loss,
    "classes": _is_classes,
    "feature_names": _is_names,
    "feature_dtype": lambda v: v in FEATURE_TYPES,
    "categories": lambda v: v is None or isinstance(v, dict),  # examined by their own room
    "parameters": lambda v: isinstance(v, dict),
    "learning_rate": lambda v: _is_number(v) and v > 0,
    "temperature": lambda v: _is_number(v) and v >= 0,
    "shrink_rate": lambda v: _is_number(v) and v >= 0,
    "leaf_method": lambda v: v in ("gradient", "newton"),
    "total_weight": lambda v: _is_number(v) and v > 0,
    "seed": _is_count,
    "residual_variance": lambda v: v is None or (_is_number(v) and v >= 0),
    "best_iteration": lambda v: v is None or _is_count(v),
    "best_score": lambda v: v is None or isinstance(v, int | float | dict),
    "evals_result": _is_scores,
}


def write(model: Model, path: str | Path) -> None:
    """Write a model to a file, whole or not at all."""
    place = Path(path)
    with whole_file(place) as draft:
        draft.write_bytes(dumps(model))
    # The new name is only safe once the directory that holds it is on disk.
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(path: str | Path) -> Model:
    """Read a model from a file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            raise ModelFormatError("size", f"{size} bytes are more than {MOST_BYTES}")
        return loads(file.read())


def dumps(model: Model) -> bytes:
    """Return the bytes of a model; the same model gives the same bytes."""
    from safetensors.numpy import save

    categories, tables = storage.pack(model.encoding)
    digest = {"sha256": np.zeros(DIGEST_BYTES, dtype=np.uint8)}
    arrays = _arrays_of(model.ensemble, tables) | digest
    document = json.dumps(
        _document_of(model) | {"categories": categories},
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    # One key: safetensors writes several in an order that changes from process to process.
    content: bytes = save(arrays, metadata={"sglb": document})
    body = content[:-DIGEST_BYTES]
    return body + hashlib.sha256(body).digest()


def loads(data: bytes) -> Model:
    """Return the model of these bytes, or raise `ModelFormatError`."""
    document, arrays = _upgraded(*_open(data))
    _check_document(document)
    sizes = _check_shapes(arrays)
    _check_trees(arrays, sizes)
    loss = _loss_of(document)
    classes = None if document["classes"] is None else _labels(document["classes"])
    encoding = storage.unpack(document["categories"], arrays)
    _check_agreement(document, loss, classes, encoding, sizes)
    bins = Bins(arrays["thresholds"], arrays["n_thresholds"])
    plain = {name: document[name] for name in _PLAIN_FIELDS}
    return Model(
        parameters={name: _live(value) for name, value in document["parameters"].items()},
        loss=loss,
        ensemble=Ensemble.from_arrays(bins, arrays["offset"], arrays),
        encoding=encoding,
        classes=classes,
        best_score=_live(document["best_score"]),
        evals_result=_each_score(_live, document["evals_result"]),
        **plain,
    )


_PLAIN_FIELDS = (
    "kind",
    "feature_names",
    "feature_dtype",
    "learning_rate",
    "temperature",
    "shrink_rate",
    "leaf_method",
    "total_weight",
    "seed",
    "residual_variance",
    "best_iteration",
)


def _arrays_of(ensemble: Ensemble, tables: Arrays) -> Arrays:
    parts = tables | {
        "thresholds": ensemble.bins.thresholds,
        "n_thresholds": ensemble.bins.n_thresholds,
        "offset": ensemble.offset,
        **ensemble.arrays(),
    }
    return {name: np.ascontiguousarray(part, ARRAYS[name][0]) for name, part in parts.items()}


def _document_of(model: Model) -> dict[str, Any]:
    loss = None if isinstance(model.loss, UserLoss) else model.loss
    parameters = {name: v for name, v in model.parameters.items() if name not in LEFT_OUT}
    return {
        "format": "sglb",
        "version": FORMAT_VERSION,
        "noise_version": NOISE_VERSION,
        "loss": None if loss is None else _plain_loss(loss),
        "classes": None if model.classes is None else _plain_labels(model.classes),
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "best_score": _plain(model.best_score),
        "evals_result": _each_score(_plain, model.evals_result),
    } | {name: getattr(model, name) for name in _PLAIN_FIELDS}


def _plain_loss(loss: Loss) -> dict[str, Any]:
    return {"name": loss.name, "parameters": loss.parameters()}


def _plain(value: Any) -> Any:
    """Turn a constructor argument into JSON; what has no such form is named and lost."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, list | tuple | np.ndarray):
        return {"list": [_plain(item) for item in value]}
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), _plain(item)] for key, item in value.items()]}
    for name, sampler in SAMPLERS.items():
        if type(value) is sampler:
            arguments = {one.name: getattr(value, one.name) for one in fields(sampler)}
            return {"sampler": name, "arguments": arguments}
    if isinstance(value, Loss) and not isinstance(value, UserLoss):
        return {"loss": _plain_loss(value)}
    return {"lost": type(value).__name__}


def _live(value: Any) -> Any:
    """Turn JSON back into a constructor argument; what was lost comes back as None."""
    if not isinstance(value, dict):
        return value
    try:
        match value:
            case {"number": str() as number}:
                return float(number)
            case {"list": list() as items}:
                return [_live(item) for item in items]
            case {"pairs": list() as pairs}:
                return {_live(key): _live(item) for key, item in pairs}
            case {"sampler": str() as name, "arguments": dict() as arguments}:
                return SAMPLERS[name](**arguments)
            case {"loss": dict() as loss}:
                return get_loss(loss["name"], **loss["parameters"])
            case {"lost": str()}:
                return None
    except (TypeError, ValueError, KeyError) as error:
        raise ModelFormatError("parameters", str(error)) from error
    raise ModelFormatError("parameters", f"{value!r} is not known")


def _each_score(turn: Callable[[Any], Any], result: Mapping[str, Mapping[str, Any]]) -> Any:
    """Turn every score of evals_result into JSON, or back."""
    return {
        name: {metric: [turn(score) for score in scores] for metric, scores in metrics.items()}
        for name, metrics in result.items()
    }


def _plain_labels(classes: NDArray[Any]) -> dict[str, Any]:
    kind = "str" if classes.dtype.kind == "U" else classes.dtype.name
    labels = classes.tolist()
    if kind not in LABEL_TYPES or not all(isinstance(one, str | int | float) for one in labels):
        raise TypeError(f"class labels of type {classes.dtype} cannot be stored in a model file")
    return {"dtype": kind, "labels": labels}


def _labels(stored: Mapping[str, Any]) -> NDArray[Any]:
    labels = stored["labels"]
    try:
        classes: NDArray[Any] = np.empty(len(labels), dtype=object)
        classes[:] = labels
        if stored["dtype"] != "object":
            classes = np.array(labels, dtype=stored["dtype"])
        same = classes.tolist() == labels and np.array_equal(np.unique(classes), classes)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFormatError("classes", str(error)) from error
    if not same:
        raise ModelFormatError("classes", "labels must be sorted, distinct and of the stated type")
    return classes


def _open(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the document and arrays of a file whose digest is right."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if len(data) < 8 + DIGEST_BYTES:
        raise ModelFormatError("size", f"{len(data)} bytes are too few for a model")
    length = int.from_bytes(data[:8], "little")
    if length > min(len(data) - 8, MOST_HEADER_BYTES):
        raise ModelFormatError("header", "longer than the file or the limit; not a model file")
    try:
        header = json.loads(data[8 : 8 + length])
        document = json.loads(header["__metadata__"]["sglb"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFormatError("header", "cannot be read; not a model file of sglb") from error
    if hashlib.sha256(data[:-DIGEST_BYTES]).digest() != data[-DIGEST_BYTES:]:
        raise ModelFormatError("sha256", "the digest does not fit; the file is damaged")
    if not isinstance(document, dict):
        raise ModelFormatError("header", "the document is not a JSON object")
    try:
        arrays = load(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise ModelFormatError("arrays", str(error)) from error
    # The library's arrays look into `data`; the model's own are writable and outlive it.
    return document, {name: np.array(array, order="C") for name, array in arrays.items()}


def _upgraded(document: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """Return the content of a file of version 1 as this version has it."""
    if document.get("version") == 1 and document.get("categories") == []:
        news = {"version": FORMAT_VERSION, "categories": None}
        return document | news, storage.empty_arrays() | arrays
    return document, arrays


def _check_document(document: Mapping[str, Any]) -> None:
    """Check that every field is there and is what it must be."""
    version = document.get("version")
    if _is_count(version) and version != FORMAT_VERSION:
        raise ModelFormatError("version", f"{version} is not readable; this is {FORMAT_VERSION}")
    for field in sorted(set(document) ^ set(FIELDS)):
        raise ModelFormatError(field, "missing" if field in FIELDS else "not known")
    for field, holds in FIELDS.items():
        if not holds(document[field]):
            raise ModelFormatError(field, f"{document[field]!r} is not allowed")


def _check_shapes(arrays: Arrays) -> dict[str, int]:
    """Check names, types and shapes of the arrays; return the size behind each letter."""
    for name in sorted(set(arrays) ^ set(ARRAYS)):
        raise ModelFormatError(name, "missing" if name in ARRAYS else "not known")
    sizes = {"H": DIGEST_BYTES}
    for name, (dtype, axes) in ARRAYS.items():
        array = arrays[name]
        if array.dtype != dtype or array.ndim != len(axes):
            raise ModelFormatError(name, f"is {array.dtype} {array.shape}, not {dtype.__name__}")
        for axis, size in zip(axes, array.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ModelFormatError(name, f"shape {array.shape} does not fit the other arrays")
    if sizes["D"] > MOST_DEPTH or sizes["L"] != 1 << sizes["D"]:
        raise ModelFormatError("values", f"{sizes['L']} leaves do not fit depth {sizes['D']}")
    if sizes["F"] < 1 or sizes["K"] < 1 or not 1 <= sizes["B"] <= 254:
        raise ModelFormatError("thresholds", "a model has features, outputs and 1 to 254 borders")
    return sizes


def _check_trees(arrays: Arrays, sizes: Mapping[str, int]) -> None:
    """Check that borders increase, splits point at what exists and numbers are finite."""
    thresholds, n_thresholds = arrays["thresholds"], arrays["n_thresholds"]
    used = np.arange(sizes["B"]) < n_thresholds[:, None]
    first, second = thresholds[:, :-1], thresholds[:, 1:]
    in_tree = np.arange(sizes["D"]) < arrays["depths"][:, None]
    features = arrays["features"]
    known = (features >= 0) & (features < sizes["F"])
    n_codes = n_thresholds[np.where(known, features, 0)] + 2  # a missing value has a code too
    lows, highs = arrays["lows"], arrays["highs"]
    shrinks = arrays["shrinks"]
    laws = {
        "n_thresholds": (n_thresholds >= 0) & (n_thresholds <= sizes["B"]),
        "thresholds": np.isfinite(thresholds) == used,
        "thresholds padding": used | (thresholds == np.inf),
        "thresholds order": (first < second) | ~used[:, 1:],
        "depths": (arrays["depths"] >= 0) & (arrays["depths"] <= sizes["D"]),
        "features": known | ~in_tree,
        "lows": (lows <= highs) | ~in_tree,
        "highs": (highs < n_codes) | ~in_tree,
        "values": np.isfinite(arrays["values"]),
        "shrinks": (shrinks > 0.0) & (shrinks <= 1.0),
        "gains": np.isfinite(arrays["gains"]),
        "offset": np.isfinite(arrays["offset"]),
    }
    for field, holds in laws.items():
        if not holds.all():
            raise ModelFormatError(field, f"wrong at index {np.argwhere(~holds)[0].tolist()}")


def _loss_of(document: Mapping[str, Any]) -> Loss | None:
    if document["loss"] is None:
        return None
    try:
        return get_loss(document["loss"]["name"], **document["loss"]["parameters"])
    except (TypeError, ValueError, KeyError) as error:
        raise ModelFormatError("loss", str(error)) from error


def _check_agreement(
    document: Mapping[str, Any],
    loss: Loss | None,
    classes: NDArray[Any] | None,
    encoding: Encoding | None,
    sizes: Mapping[str, int],
) -> None:
    """Check that names, columns, classes, outputs and loss belong to one model."""
    n_columns = sizes["F"] if encoding is None else encoding.n_columns
    if encoding is not None and encoding.n_features != sizes["F"]:
        wrong = f"{encoding.n_features} features, the trees have {sizes['F']}"
        raise ModelFormatError("categories", wrong)
    names = document["feature_names"]
    if names is not None and len(names) != n_columns:
        raise ModelFormatError("feature_names", f"{len(names)} names for {n_columns} columns")
    if (classes is None) != (document["kind"] == "regressor"):
        raise ModelFormatError("classes", f"do not fit a {document['kind']}")
    outputs = sizes["K"]
    if classes is not None and len(classes) > max(outputs, 2):
        raise ModelFormatError("classes", f"{len(classes)} classes for {outputs} outputs")
    if loss is not None and loss.n_outputs != outputs:
        raise ModelFormatError("loss", f"{loss.name!r} does not have {outputs} outputs")
    best, results = document["best_iteration"], document["evals_result"].values()
    steps = max((len(scores) for result in results for scores in result.values()), default=0)
    if best is not None and best > steps:
        raise ModelFormatError("best_iteration", f"{best} is past the end of evals_result")
