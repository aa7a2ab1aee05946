"""A model <-> bytes <-> a file. Nothing in them is code, a pickle or a path.

The bytes are a safetensors file (`container`): a header, one JSON document in its metadata, the
arrays of the trace, and as the last array the SHA-256 of all bytes before it. The same model always
gives the same bytes. What is read is distrusted in this order: size, digest, header, fields of the
document, shapes of the arrays, then their meaning; every failure is a `ModelFormatError` with the
field.

The file of a posterior is the file of its model with one more part, the draws. A checkpoint is the
file of a model too: its trees are those of all chains in progress, one more part says which.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sglb.archive import container
from sglb.archive.arguments import (
    each_score,
    from_json,
    is_same,
    labels_from_json,
    labels_to_json,
    loss_to_json,
    score_from_json,
    to_json,
    without_lost,
)
from sglb.archive.blobs import pack, unpack
from sglb.archive.container import Arrays
from sglb.archive.parts import PARTS, PREFIX, pack_parts, unpack_parts
from sglb.archive.validation import (
    ARRAYS,
    DIGEST_BYTES,
    FORMAT_VERSION,
    check_agreement,
    check_bounds,
    check_chains,
    check_document,
    check_exchange_is_stored,
    check_shapes,
    check_trees,
    check_version,
)
from sglb.bins import Bins
from sglb.categories import storage
from sglb.errors import ModelFormatError
from sglb.files import is_stream, sync_folder, whole_file
from sglb.leaves import LeafRule
from sglb.losses import Loss, get_loss
from sglb.model import Exchange, Model, Record
from sglb.posterior import AnyPosterior
from sglb.recipe import Recipe
from sglb.samplers import Move, Sampler
from sglb.settings import Settings
from sglb.trace import Trace, join, split

MOST_BYTES = 1 << 36
KEY = "sglb"  # of the document
BEGINNING = bytes(8) + b'{"__metadata__":{"' + KEY.encode() + b'":"'

# The same model comes from any number of threads; how many chains there are, the traces tell.
LEFT_OUT = ("n_jobs", "verbose", "warm_start", "n_chains")

CHECKPOINT = f"{PREFIX}checkpoint"


def write(model: Model, path: str | Path, draws: AnyPosterior | None = None) -> None:
    """Write a model, or draws of its posterior as well, to a file, whole or not at all."""
    target = Path(path)
    with whole_file(target) as draft:
        draft.write_bytes(dumps(model, draws))
    sync_folder(target.parent)


def read(path: str | Path, sha256: str | None = None) -> tuple[Model, AnyPosterior | None]:
    """Read a model from a file, with draws if it is the file of a posterior.

    `sha256` is what the whole file must have, as `sha256sum` prints it.
    """
    expected = None if sha256 is None else _checked_hash(sha256)
    data = read_bytes(path)
    if expected is not None:
        actual = hashlib.sha256(data).hexdigest()
        if actual != expected:
            raise ModelFormatError("sha256", f"that of the file is {actual}, not {expected}")
    return loads_with_draws(data)


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file that is not too large for a model."""
    if is_stream(path):
        raise ModelFormatError("file", f"{path} is a pipe or a device, and may never end")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            raise ModelFormatError("size", f"{size} bytes; the limit is {MOST_BYTES}")
        return file.read()


def _checked_hash(sha256: Any) -> str:
    if not isinstance(sha256, str) or not re.fullmatch("[0-9a-fA-F]{64}", sha256.strip()):
        raise ValueError(
            f"sha256={sha256!r} is not allowed; use the 64 hexadecimal digits that"
            " `sha256sum model.sglb` prints"
        )
    return sha256.strip().lower()


def dumps(
    model: Model,
    draws: AnyPosterior | None = None,
    checkpoint: Mapping[str, Any] | None = None,
) -> bytes:
    """Return the bytes of a model, of draws too, or of a checkpoint whose trees the model holds.

    The same model gives the same bytes.
    """
    pieces = _pieces(model, draws, checkpoint)
    return b"".join([*pieces, _digest(pieces)])


def _pieces(
    model: Model,
    draws: AnyPosterior | None = None,
    checkpoint: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Return a file but for its digest."""
    categories, tables = storage.pack(model.recipe.encoding)
    digest = {"sha256": np.zeros(DIGEST_BYTES, dtype=np.uint8)}
    parts = pack_parts(model, draws, dumps)
    if checkpoint is not None:
        parts[CHECKPOINT] = pack(checkpoint, {})
    others = () if model.exchange is None else model.exchange.others
    arrays = _arrays_of(join(model.traces + others), tables) | parts | digest
    document = _document_of(model) | {"categories": categories}
    return container.pack(KEY, document, arrays)[:-1]  # the digest comes last


def _digest(pieces: list[Any]) -> bytes:
    hashed = hashlib.sha256()
    for piece in pieces:
        hashed.update(piece)
    return hashed.digest()


def _is_file_of(data: memoryview, model: Model) -> bool:
    """Whether these bytes are those of a model, by their digest."""
    return data[-DIGEST_BYTES:] == _digest(_pieces(model))


def loads(data: bytes | memoryview) -> Model:
    """Return the model of these bytes, or raise `ModelFormatError`."""
    model, draws = loads_with_draws(data)
    if draws is not None:
        raise ModelFormatError("draws", "these are the bytes of a posterior, not of a model")
    return model


def _loads_part(data: memoryview) -> Model:
    """Return the model that is a part of another file, and has none itself."""
    document, arrays = _open(data)
    for name in arrays:
        if name.startswith(PREFIX):  # reading it would go as deep as a forger likes
            raise ModelFormatError(name.removeprefix(PREFIX), "a part of a file has no parts")
    return _unpack(document, arrays)[0]


def loads_with_draws(data: bytes | memoryview) -> tuple[Model, AnyPosterior | None]:
    """Return the model of these bytes, with draws if they are those of a posterior."""
    document, arrays = _open(data)
    if CHECKPOINT in arrays:
        raise ModelFormatError(
            "checkpoint", "this is a checkpoint, not a model: continue with fit(resume_from=...)"
        )
    check_exchange_is_stored(document)
    return _unpack(document, arrays)


def loads_checkpoint(data: bytes) -> tuple[Model, dict[str, Any]]:
    """Return the model that holds the trees of a checkpoint, and what else it holds."""
    document, arrays = _open(data)
    if CHECKPOINT not in arrays:
        raise ModelFormatError(
            "checkpoint", "this is a model, not a checkpoint: continue with fit(init_model=...)"
        )
    stored, more = unpack("checkpoint", arrays.pop(CHECKPOINT))
    if more:
        raise ModelFormatError("checkpoint", "it has arrays")
    return _unpack(document, arrays)[0], stored


def _unpack(document: dict[str, Any], arrays: Arrays) -> tuple[Model, AnyPosterior | None]:
    parts = {name: arrays.pop(PREFIX + name) for name in PARTS if PREFIX + name in arrays}
    check_document(document)
    sizes = check_shapes(arrays)
    check_trees(arrays, sizes)
    lengths = check_chains(document, sizes["T"])
    # A trace copies its trees; what else the model keeps must not be a view of the file.
    arrays |= {name: np.array(arrays[name]) for name in (*_BINS, *storage.ARRAYS)}
    n_chains = 1 if "exchange" in document else len(lengths)
    recipe = _recipe_of(document, arrays, sizes, n_chains=n_chains)
    trees = Trace.from_arrays(recipe.bins, recipe.offset, arrays)
    record = _record_of(document)
    chain_records = [_record_of(chain) for chain in document.get("chains", [])] or [record]
    traces, exchange = split(trees, lengths), None
    check_bounds(traces)
    if "exchange" in document:
        traces, others = traces[:1], traces[1:]
        exchange = Exchange(others, tuple(score_from_json(r) for r in document["exchange"]))
    model = Model(
        recipe,
        traces,
        document["residual_variance"],
        record,
        tuple(chain_records),
        exchange=exchange,
    )
    depths = trees.depths[: sum(map(len, traces))]
    contents = unpack_parts(parts, model, depths, _loads_part, _is_file_of)
    draws = contents.pop("draws", None)
    return replace(model, **contents), draws


_BINS = ("thresholds", "n_thresholds", "offset")


def _record_of(stored: Mapping[str, Any]) -> Record:
    best = stored["best_score"]
    return Record(
        stored["best_iteration"],
        None if best is None else score_from_json(best),
        each_score(score_from_json, stored["evals_result"]),
    )


def _record_to_json(record: Record) -> dict[str, Any]:
    return {
        "best_iteration": record.best_iteration,
        "best_score": to_json(record.best_score),
        "evals_result": each_score(to_json, record.evals_result),
    }


def _chains_to_json(model: Model) -> dict[str, Any]:
    """Return the lengths and scores of several chains, or how often they exchanged temperatures; a
    single one is the model itself.
    """
    if model.exchange is not None:
        return {"exchange": [to_json(rate) for rate in model.exchange.swap_rates]}
    if len(model.traces) == 1:
        return {}
    pairs = zip(model.traces, model.chain_records, strict=True)
    return {
        "chains": [{"n_trees": len(trace)} | _record_to_json(record) for trace, record in pairs]
    }


def _recipe_of(
    document: dict[str, Any], arrays: Arrays, sizes: Mapping[str, int], *, n_chains: int
) -> Recipe:
    loss = _loss_of(document)
    classes = labels_from_json(document["classes"])
    encoding = storage.unpack(document["categories"], arrays, sizes["F"])
    check_agreement(document, loss, classes, encoding, sizes)
    return Recipe(
        kind=document["kind"],
        parameters={name: from_json(value) for name, value in document["parameters"].items()}
        | {"n_chains": n_chains},
        settings=_settings_of(document, sizes["D"], sizes["P"]),
        loss=loss,
        encoding=encoding,
        bins=Bins(arrays["thresholds"], arrays["n_thresholds"]),
        offset=arrays["offset"],
        classes=classes,
        feature_names=document["feature_names"],
        total_weight=document["total_weight"],
        noise_version=document["noise_version"],
    )


# Fields of the settings that are stored as they are.
_NUMBERS = (
    "learning_rate",
    "temperature",
    "shrink_rate",
    "max_bins",
    "structure_rows",
    "structure_outputs",
    "random_strength",
    "seed",
    "n_steps",
)


def _settings_of(document: Mapping[str, Any], max_depth: int, n_parts: int) -> Settings:
    try:
        leaves = LeafRule(
            document["leaf_method"], document["l2_regularization"], document["leaf_steps"]
        )
    except ValueError as error:
        raise ModelFormatError("leaf_steps", str(error)) from error
    sampler = _sampler_of(document["sampler"], n_parts)
    numbers = {name: document[name] for name in _NUMBERS}
    return Settings(sampler=sampler, leaves=leaves, max_depth=max_depth, **numbers)


def _sampler_of(stored: Any, n_parts: int) -> Sampler:
    """Return a sampler whose states have this many parts."""
    if without_lost(stored) != stored:
        return LostSampler()
    try:
        sampler = from_json(stored)
        size = sampler.move(0).transition.size
    except ModelFormatError as error:
        raise ModelFormatError("sampler", error.reason) from error
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ModelFormatError("sampler", str(error)) from error
    if size != n_parts:
        raise ModelFormatError("sampler", f"its states have {size} parts, the trees {n_parts}")
    made: Sampler = sampler
    return made


class LostSampler:
    """Stands for a sampler of the user's own, which a model file does not hold."""

    def move(self, step: int) -> Move:
        """Raise: a sampler that is not stored cannot take steps."""
        raise ValueError(
            "the sampler of this model was a user-defined object, which a model file does not"
            " contain: the model can predict, but not continue training"
        )


def _arrays_of(trace: Trace, tables: Arrays) -> Arrays:
    parts = tables | {
        "thresholds": trace.bins.thresholds,
        "n_thresholds": trace.bins.n_thresholds,
        "offset": trace.offset,
        **trace.arrays(),
    }
    return {name: np.ascontiguousarray(part, ARRAYS[name][0]) for name, part in parts.items()}


def _document_of(model: Model) -> dict[str, Any]:
    recipe, settings = model.recipe, model.recipe.settings
    loss = recipe.loss if recipe.loss is not None and recipe.loss.storable else None
    parameters = {name: v for name, v in recipe.parameters.items() if name not in LEFT_OUT}
    return {
        "format": "sglb",
        "version": FORMAT_VERSION,
        "noise_version": recipe.noise_version,
        "kind": recipe.kind,
        "loss": None if loss is None else loss_to_json(loss),
        "classes": labels_to_json(recipe.classes),
        "feature_names": recipe.feature_names,
        "total_weight": recipe.total_weight,
        "parameters": {name: to_json(value) for name, value in parameters.items()},
        "sampler": to_json(settings.sampler),
        "leaf_method": settings.leaves.method,
        "leaf_steps": settings.leaves.steps,
        "l2_regularization": settings.leaves.l2,
        "residual_variance": model.residual_variance,
        **_record_to_json(model.record),
        **_chains_to_json(model),
        **{name: getattr(settings, name) for name in _NUMBERS},
    }


def _open(data: bytes | memoryview) -> tuple[dict[str, Any], Arrays]:
    """Return the document of a file whose digest is right, and its arrays, views of the file."""
    view = memoryview(data)
    if len(view) < len(BEGINNING) + DIGEST_BYTES:
        raise ModelFormatError("size", f"{len(view)} bytes are too few for a model")
    if view[8 : len(BEGINNING)] != BEGINNING[8:]:
        raise ModelFormatError("header", "this is not a model file of sglb")
    if hashlib.sha256(view[:-DIGEST_BYTES]).digest() != view[-DIGEST_BYTES:]:
        raise ModelFormatError(
            "sha256", "the checksum is wrong: the file is damaged or was changed"
        )
    return container.unpack(KEY, view, check_version)


def _loss_of(document: Mapping[str, Any]) -> Loss | None:
    if document["loss"] is None:
        return None
    try:
        loss = get_loss(document["loss"]["name"], **document["loss"]["parameters"])
    except (TypeError, ValueError, KeyError, ArithmeticError, AttributeError) as error:
        raise ModelFormatError("loss", str(error)) from error
    if not is_same(loss_to_json(loss), document["loss"]):
        raise ModelFormatError("loss", f"{document['loss']!r} has other parameters")
    return loss
