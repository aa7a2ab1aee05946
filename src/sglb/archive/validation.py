"""What the document and the arrays of a model file must be: fields, shapes, meaning, agreement.

Every failure is a `ModelFormatError` with the field.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.archive.arguments import LABEL_TYPES
from sglb.archive.container import Arrays
from sglb.categories import Encoding, storage
from sglb.errors import ModelFormatError
from sglb.losses import Loss
from sglb.samplers import CLASSES
from sglb.trace import Trace

FORMAT_VERSION = 2
MOST_DEPTH = 16
MOST_PARTS = 16  # of a state
DIGEST_BYTES = 32

# Shapes: F features, B borders, T trees, D depth, L = 2^D leaves, K outputs, P parts of the state,
# H the digest's bytes.
ARRAYS: Mapping[str, tuple[type[np.generic], str]] = {
    "thresholds": (np.float64, "FB"),
    "n_thresholds": (np.int32, "F"),
    "features": (np.int32, "TD"),
    "lows": (np.uint8, "TD"),
    "highs": (np.uint8, "TD"),
    "depths": (np.int32, "T"),
    "values": (np.float64, "TLK"),
    "cover": (np.float64, "TL"),
    "C": (np.float64, "TPP"),
    "b": (np.float64, "TP"),
    "temperatures": (np.float64, "T"),
    "gains": (np.float64, "TD"),
    "offset": (np.float64, "K"),
    "sha256": (np.uint8, "H"),
    **storage.ARRAYS,
}

# Which estimator has a loss of a task.
KIND_OF_TASK = {
    "regression": "regressor",
    "binary": "classifier",
    "multiclass": "classifier",
    "ranking": "ranker",
}

# Names of samplers whose chains exchange temperatures.
LADDERS = [name for name, sampler in CLASSES.items() if sampler.exchanges]


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
        and all(_is_parameter(v) for v in value["parameters"].values())
    )


def _is_parameter(value: Any) -> bool:
    return isinstance(value, str | bool) or _is_number(value) or _is_numbers(value)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(number) for number in value)


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


FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "format": lambda v: v == "sglb",
    "version": lambda v: _is_count(v) and v == FORMAT_VERSION,
    "noise_version": _is_count,  # prediction draws no noise
    "kind": lambda v: v in ("classifier", "regressor", "ranker"),
    "loss": _is_loss,
    "classes": _is_classes,
    "feature_names": _is_names,
    "categories": lambda v: v is None or isinstance(v, dict),  # examined by their own room
    "parameters": lambda v: isinstance(v, dict),
    "learning_rate": lambda v: _is_number(v) and v > 0,
    "temperature": lambda v: _is_number(v) and v >= 0,
    "shrink_rate": lambda v: _is_number(v) and v >= 0,
    "leaf_method": lambda v: v in ("gradient", "newton"),
    "leaf_steps": lambda v: _is_count(v) and 1 <= v <= 100,
    "l2_regularization": lambda v: _is_number(v) and v >= 0,
    "sampler": lambda v: isinstance(v, dict),
    "max_bins": lambda v: _is_count(v) and 2 <= v <= 255,
    "structure_rows": _is_count,
    "structure_outputs": _is_count,
    "random_strength": lambda v: _is_number(v) and v >= 0,
    "n_steps": _is_count,
    "total_weight": lambda v: _is_number(v) and v > 0,
    "seed": _is_count,
    "residual_variance": lambda v: v is None or (_is_number(v) and v >= 0),
    "best_iteration": lambda v: v is None or _is_count(v),
    "best_score": lambda v: v is None or isinstance(v, int | float | dict),
    "evals_result": _is_scores,
}


# Of several chains: how many trees each has, and its own scores.
CHAIN_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "n_trees": lambda v: _is_count(v) and v > 0,
    **{name: FIELDS[name] for name in ("best_iteration", "best_score", "evals_result")},
}


def check_version(document: Mapping[str, Any]) -> None:
    """Reject a file of another version of the format, with the version that reads it."""
    version: Any = document.get("version")
    if not _is_count(version) or version == FORMAT_VERSION:
        return
    advice = "an older version of sglb wrote it, train the model again"
    if version > FORMAT_VERSION:
        advice = f"install a newer version of sglb, that reads format {version}"
    raise ModelFormatError(
        "version",
        f"the file has format {version}, this version of sglb reads format {FORMAT_VERSION}:"
        f" {advice}",
    )


def check_document(document: Mapping[str, Any]) -> None:
    """Check that every field is there and is what it must be."""
    fields = {n: value for n, value in document.items() if n not in ("chains", "exchange")}
    _check_fields(fields, FIELDS)


def _check_fields(
    fields: Mapping[str, Any], checks: Mapping[str, Callable[[Any], bool]], where: str = ""
) -> None:
    for field in sorted(set(fields) ^ set(checks)):
        raise ModelFormatError(where + field, "missing" if field in checks else "unknown field")
    for field, holds in checks.items():
        if not holds(fields[field]):
            raise ModelFormatError(where + field, f"{fields[field]!r} is not allowed")


def check_chains(document: Mapping[str, Any], n_trees: int) -> list[int]:
    """Check the field that several chains have; return the number of trees of each chain."""
    if "exchange" in document:
        return _check_exchange(document, n_trees)
    if "chains" not in document:
        return [n_trees]
    chains = document["chains"]
    if not isinstance(chains, list) or len(chains) < 2:
        raise ModelFormatError("chains", "they must be a list of two or more")
    for number, chain in enumerate(chains):
        if not isinstance(chain, dict):
            raise ModelFormatError(f"chains[{number}]", "it is not a JSON object")
        _check_fields(chain, CHAIN_FIELDS, f"chains[{number}].")
        _check_best(chain, f"chains[{number}].")
    lengths = [chain["n_trees"] for chain in chains]
    if sum(lengths) != n_trees:
        raise ModelFormatError("chains", f"they have {sum(lengths)} trees, the file has {n_trees}")
    return lengths


def check_exchange_is_stored(document: Mapping[str, Any]) -> None:
    """Reject the file of a model whose sampler exchanges temperatures, but whose chains did not."""
    sampler = document.get("sampler")
    is_ladder = isinstance(sampler, dict) and sampler.get("sampler") in LADDERS
    if is_ladder and "exchange" not in document:
        raise ModelFormatError("exchange", "missing: the chains exchanged temperatures")


def _check_exchange(document: Mapping[str, Any], n_trees: int) -> list[int]:
    """Check the field of chains that exchanged temperatures; return the length of each."""
    rates = document["exchange"]
    if "chains" in document or not isinstance(rates, list) or not rates:
        raise ModelFormatError("exchange", "it must be a list of rates, of a single model")
    for rate in rates:
        is_rate = isinstance(rate, float) and 0.0 <= rate <= 1.0
        if not is_rate and rate != {"number": "nan"}:
            raise ModelFormatError("exchange", f"{rate!r} is not a rate")
    match document["sampler"]:
        case {"lost": str(), **others} if not others:  # one of the user's own, or his learning rate
            pass
        case {"sampler": str(), "arguments": {"n_replicas": int(n_replicas)}}:
            if len(rates) != n_replicas - 1:
                wrong = f"{n_replicas} chains do not have {len(rates)} pairs of neighbours"
                raise ModelFormatError("exchange", wrong)
        case _:
            raise ModelFormatError("exchange", "the sampler exchanges no temperatures")
    length, remainder = divmod(n_trees, len(rates) + 1)
    if remainder or not length:
        wrong = f"{n_trees} trees are not those of {len(rates) + 1} chains of one length"
        raise ModelFormatError("exchange", wrong)
    return [length] * (len(rates) + 1)


def check_shapes(arrays: Arrays) -> dict[str, int]:
    """Check names, types and shapes of the arrays; return the size behind each letter."""
    for name in sorted(set(arrays) ^ set(ARRAYS)):
        raise ModelFormatError(name, "missing" if name in ARRAYS else "unknown array")
    sizes = {"H": DIGEST_BYTES}
    for name, (dtype, axes) in ARRAYS.items():
        array = arrays[name]
        if array.dtype != dtype or array.ndim != len(axes):
            raise ModelFormatError(name, f"is {array.dtype} {array.shape}, not {dtype.__name__}")
        for axis, size in zip(axes, array.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise ModelFormatError(name, f"shape {array.shape} does not match the other arrays")
    if sizes["D"] > MOST_DEPTH or sizes["L"] != 1 << sizes["D"]:
        raise ModelFormatError("values", f"{sizes['L']} leaves do not match depth {sizes['D']}")
    if not 1 <= sizes["P"] <= MOST_PARTS:
        raise ModelFormatError("b", f"a state has 1 to {MOST_PARTS} parts, not {sizes['P']}")
    if sizes["F"] < 1 or sizes["K"] < 1 or not 1 <= sizes["B"] <= 254:
        raise ModelFormatError(
            "thresholds", "a model needs a feature, an output and 1 to 254 borders"
        )
    return sizes


def check_trees(arrays: Arrays, sizes: Mapping[str, int]) -> None:
    """Check that borders increase, splits point at what exists and numbers are finite."""
    thresholds, n_thresholds = arrays["thresholds"], arrays["n_thresholds"]
    used = np.arange(sizes["B"]) < n_thresholds[:, None]
    first, second = thresholds[:, :-1], thresholds[:, 1:]
    in_tree = np.arange(sizes["D"]) < arrays["depths"][:, None]
    features = arrays["features"]
    is_feature = (features >= 0) & (features < sizes["F"])
    n_codes = n_thresholds[np.where(is_feature, features, 0)] + 2  # a missing value has a code too
    lows, highs = arrays["lows"], arrays["highs"]
    C, temperatures = arrays["C"], arrays["temperatures"]
    # A model of one part shrinks; how parts of several mix is up to the sampler.
    shrinks = (C > 0.0) & (C <= 1.0) if sizes["P"] == 1 else np.isfinite(C)
    conditions = {
        "n_thresholds": (n_thresholds >= 0) & (n_thresholds <= sizes["B"]),
        "thresholds": np.isfinite(thresholds) == used,
        "thresholds padding": used | (thresholds == np.inf),
        "thresholds order": (first < second) | ~used[:, 1:],
        "depths": (arrays["depths"] >= 0) & (arrays["depths"] <= sizes["D"]),
        "features": is_feature | ~in_tree,
        "lows": (lows <= highs) | ~in_tree,
        "highs": (highs < n_codes) | ~in_tree,
        "values": np.isfinite(arrays["values"]),
        "cover": np.isfinite(arrays["cover"]) & (arrays["cover"] >= 0.0),
        "C": shrinks,
        "b": np.isfinite(arrays["b"]),
        "temperatures": np.isfinite(temperatures) & (temperatures >= 0.0),
        "gains": np.isfinite(arrays["gains"]),
        "offset": np.isfinite(arrays["offset"]),
    }
    for field, holds in conditions.items():
        if not holds.all():
            raise ModelFormatError(
                field, f"the value at index {np.argwhere(~holds)[0].tolist()} is not valid"
            )


def check_bounds(traces: Sequence[Trace]) -> None:
    """Check that raw scores are finite whatever the leaves of a row, and so is the sum of gains."""
    total = np.float64(0.0)
    for trace in traces:
        highest, lowest = (f(trace.values, (1, 2), initial=0.0) for f in (np.max, np.min))
        largest = np.maximum(highest, -lowest)
        with _no_overflow("values"):
            # A state of one part shrinks: in none has a tree more weight than when it was added.
            weights = np.abs(trace.b if trace.size == 1 else trace.weights()).max(axis=1)
            total += np.abs(trace.offset).max() + (weights * largest).sum()
        if not math.isfinite(trace.feature_gains().sum()):
            raise ModelFormatError("gains", "their sum is not finite")


@contextlib.contextmanager
def _no_overflow(field: str) -> Iterator[None]:
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except FloatingPointError as error:
        raise ModelFormatError(field, f"sums of them are not finite: {error}") from error


def check_agreement(
    document: Mapping[str, Any],
    loss: Loss | None,
    classes: NDArray[Any],
    encoding: Encoding,
    sizes: Mapping[str, int],
) -> None:
    """Check that names, columns, classes, outputs and loss belong to one model."""
    n_columns = encoding.n_columns
    if encoding.n_features != sizes["F"]:
        wrong = f"{encoding.n_features} features, the trees have {sizes['F']}"
        raise ModelFormatError("categories", wrong)
    names = document["feature_names"]
    if names is not None and len(names) != n_columns:
        raise ModelFormatError("feature_names", f"{len(names)} names for {n_columns} columns")
    if (not len(classes)) != (document["kind"] != "classifier"):
        raise ModelFormatError("classes", f"they do not match a {document['kind']}")
    outputs = sizes["K"]
    # Up to two classes have one output or two, more have one each.
    if len(classes) and max(len(classes), 2) != max(outputs, 2):
        raise ModelFormatError("classes", f"{len(classes)} classes for {outputs} outputs")
    if loss is not None and loss.n_outputs != outputs:
        raise ModelFormatError("loss", f"{loss.name!r} does not have {outputs} outputs")
    if loss is not None and KIND_OF_TASK[loss.task] != document["kind"]:
        raise ModelFormatError("loss", f"{loss.name!r} is not a loss of a {document['kind']}")
    _check_best(document)


def _check_best(record: Mapping[str, Any], where: str = "") -> None:
    best, results = record["best_iteration"], record["evals_result"].values()
    steps = max((len(scores) for result in results for scores in result.values()), default=0)
    if best is not None and best > steps:
        raise ModelFormatError(f"{where}best_iteration", f"{best} is past the end of evals_result")
