"""Convert an encoding to plain data and back: part of a JSON document, and arrays.

Stored data is validated before use. The labels of all columns are concatenated as UTF-8, and so are
the entries of all tables.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.categories.combinations import MOST_KEYS
from sglb.categories.encoding import Encoding, LevelTable
from sglb.categories.vocabulary import Vocabulary
from sglb.errors import ModelFormatError

Arrays = dict[str, NDArray[Any]]

# X bytes of text, V labels, M targets, S entries with statistics, C with counts, Q with keys.
ARRAYS: dict[str, tuple[type[np.generic], str]] = {
    "level_text": (np.uint8, "X"),
    "level_ends": (np.int64, "V"),
    "table_statistics": (np.float64, "MS"),
    "table_counts": (np.float64, "C"),
    "table_keys": (np.uint64, "Q"),
}


def empty_arrays() -> Arrays:
    """Return the arrays of a model without categorical columns."""
    return {name: np.zeros((0,) * len(axes), dtype) for name, (dtype, axes) in ARRAYS.items()}


def pack(encoding: Encoding) -> tuple[dict[str, Any] | None, Arrays]:
    """Return an encoding as JSON, None where all columns are numbers, and arrays."""
    if encoding.is_numeric:
        return None, empty_arrays()
    labels = [label for vocabulary in encoding.vocabularies for label in vocabulary.labels]
    texts = [label.encode("utf-8", "surrogatepass") for label in labels]
    document = {
        "is_categorical": encoding.is_categorical.tolist(),
        "columns": [
            {"n_labels": len(vocabulary.labels), "has_missing": vocabulary.has_missing}
            for vocabulary in encoding.vocabularies
        ],
        "level_columns": list(encoding.level_columns),
        "tables": [
            {"members": list(table.members), "n_entries": table.statistics.shape[1]}
            for table in encoding.tables
        ],
    }
    return document, empty_arrays() | {
        "level_text": np.frombuffer(b"".join(texts), dtype=np.uint8),
        "level_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        **_table_arrays(encoding.tables),
    }


def _table_arrays(tables: tuple[LevelTable, ...]) -> Arrays:
    if not tables:
        return {}
    counts = [table.counts for table in tables if table.counts is not None]
    keys = [table.keys for table in tables if table.keys is not None]
    return {
        "table_statistics": np.concatenate([table.statistics for table in tables], axis=1),
        "table_counts": np.concatenate([np.zeros(0), *counts]),
        "table_keys": np.concatenate([np.zeros(0, dtype=np.uint64), *keys]),
    }


def unpack(document: Any, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Encoding:
    """Return the encoding that `pack` was called with, or raise `ModelFormatError`."""
    if document is None:
        _require(all(not any(arrays[name].shape) for name in ARRAYS), "has arrays but no columns")
        return Encoding.numeric(n_features)
    _check_document(document)
    vocabularies = _vocabularies(document["columns"], arrays)
    encoding = Encoding(
        np.array(document["is_categorical"], dtype=np.bool_),
        vocabularies,
        tuple(document["level_columns"]),
        _tables(document["tables"], [v.n_levels for v in vocabularies], arrays),
    )
    single = [table.members[0] for table in encoding.tables if table.keys is None]
    encoded = sorted([*encoding.level_columns, *single])
    _require(encoded == list(range(len(vocabularies))), "each column must be encoded once")
    return encoding


def _require(holds: Any, reason: str, field: str = "categories") -> None:
    if not holds:
        raise ModelFormatError(field, reason)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _is_rows(value: Any, keys: set[str]) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, dict) and row.keys() == keys for row in value
    )


def _check_document(document: Any) -> None:
    """Check that the JSON part has the form that `pack` gives it."""
    fields = {"is_categorical", "columns", "level_columns", "tables"}
    _require(isinstance(document, dict) and document.keys() == fields, f"is not {sorted(fields)}")
    mask, columns = document["is_categorical"], document["columns"]
    _require(isinstance(mask, list) and all(isinstance(flag, bool) for flag in mask), "bad mask")
    _require(_is_rows(columns, {"n_labels", "has_missing"}), "bad columns")
    for column in columns:
        _require(_is_count(column["n_labels"]), "n_labels is not a count")
        _require(isinstance(column["has_missing"], bool), "has_missing is not true or false")
    _require(sum(mask) == len(columns) > 0, "the mask does not fit the columns")
    by_level = document["level_columns"]
    _require(isinstance(by_level, list) and all(map(_is_count, by_level)), "bad level_columns")
    tables = document["tables"]
    _require(_is_rows(tables, {"members", "n_entries"}), "bad tables")
    for table in tables:
        members = table["members"]
        _require(isinstance(members, list) and all(map(_is_count, members)), "bad members")
        _require(0 < len(set(members)) == len(members), "members of a table must be distinct")
        _require(all(member < len(columns) for member in members), "a member is not a column")
        _require(_is_count(table["n_entries"]), "n_entries is not a count")
        _require(table["n_entries"] > 0, "a table has no entry, not even that of new levels")


def _vocabularies(columns: Any, arrays: Mapping[str, NDArray[Any]]) -> tuple[Vocabulary, ...]:
    text, ends = arrays["level_text"].tobytes(), arrays["level_ends"]
    rising = (np.diff(ends, prepend=0) >= 0).all()
    _require(rising and (ends[-1] if len(ends) else 0) == len(text), "wrong order", "level_ends")
    _require(
        sum(column["n_labels"] for column in columns) == len(ends), "wrong number", "level_ends"
    )
    pieces = pairwise([0, *ends.tolist()])
    try:
        labels = [text[a:b].decode("utf-8", "surrogatepass") for a, b in pieces]
    except UnicodeDecodeError as error:
        raise ModelFormatError("level_text", str(error)) from error
    vocabularies, begin = [], 0
    for column in columns:
        names = labels[begin : begin + column["n_labels"]]
        begin += len(names)
        _require(all(map(str.__lt__, names, names[1:])), "labels must be sorted", "level_text")
        vocabularies.append(Vocabulary(tuple(names), column["has_missing"]))
    return tuple(vocabularies)


def _tables(
    rows: Any, n_levels: list[int], arrays: Mapping[str, NDArray[Any]]
) -> tuple[LevelTable, ...]:
    sizes = [row["n_entries"] for row in rows]
    parts = {
        "table_statistics": sizes,
        "table_counts": [n for n, row in zip(sizes, rows, strict=True) if len(row["members"]) == 1],
        "table_keys": [
            n - 1 for n, row in zip(sizes, rows, strict=True) if len(row["members"]) > 1
        ],
    }
    for name, lengths in parts.items():
        _require(sum(lengths) == arrays[name].shape[-1], "wrong length", name)
    statistics, counts, keys = (
        iter(np.split(arrays[name], np.cumsum(lengths)[:-1].astype(np.intp), axis=-1))
        for name, lengths in parts.items()
    )
    _require(np.isfinite(arrays["table_statistics"]).all(), "not finite", "table_statistics")
    valid_counts = np.isfinite(arrays["table_counts"]) & (arrays["table_counts"] >= 0.0)
    _require(valid_counts.all(), "not finite or negative", "table_counts")
    n_targets = len(arrays["table_statistics"])
    _require(bool(rows) == bool(n_targets), "no targets or no tables", "table_statistics")
    tables = []
    for row in rows:
        members, single = tuple(row["members"]), len(row["members"]) == 1
        radices = [n_levels[member] for member in members]
        table_keys = None if single else np.ascontiguousarray(next(keys))
        if table_keys is None:
            _require(row["n_entries"] == radices[0] + 1, "a table does not fit its column")
        else:
            possible = math.prod(radices)
            _require(possible < MOST_KEYS, "a combination has too many levels")
            _require(
                len(np.unique(table_keys)) == len(table_keys), "keys must be distinct", "table_keys"
            )
            _require((table_keys < np.uint64(possible)).all(), "a key is too large", "table_keys")
        entries = np.ascontiguousarray(next(statistics))
        n_rows = np.array(next(counts)) if single else None
        tables.append(LevelTable(members, table_keys, entries, n_rows))
    return tuple(tables)
