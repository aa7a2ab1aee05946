"""The values of a categorical column as labels: text, or None where a value is missing.

Equal values have the same label, whatever the table and its type: 1, 1.0 and "1" share a label,
True is 1, and the order of a categorical type's categories does not matter. Different numbers have
different labels, so a fraction rounded to float32 is not the float64 of the same spelling:
float32's .1 is "0.10000000149011612", float64's is "0.1". A column of fractions must have the
same type in fit and predict; whole numbers up to 2^24 may change between the two.

Part of reading a table; used by `frame`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.errors import warn

Array = NDArray[Any]

# A leading zero marks a code, "007" for example.
NUMBER = re.compile(r"\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
NUMBER_ADVICE = (
    "convert numbers with astype(float), or name the column in categorical_features to have it as"
    " categories"
)
# Up to this many different numbers as text may well be categories, such as the days of a month.
FEW_NUMBERS = 31


@dataclass(frozen=True)
class LabelColumn:
    """Row r holds labels[index[r]], or a missing value where index[r] is -1.

    A label may belong to no row, and may occur twice.
    """

    index: NDArray[np.int32]
    labels: list[str | None]

    def take(self, rows: Any) -> "LabelColumn":
        """Return the selected rows."""
        return LabelColumn(self.index[rows], self.labels)


def label_of(value: Any) -> str | None:
    """Return the label of a value."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas may be missing
        return None
    if isinstance(value, int | float | Decimal):
        if value != value:
            return None
        whole = isinstance(value, int) or (abs(value) != float("inf") and value == int(value))
        return str(int(value)) if whole else repr(float(value))
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, date | time | timedelta):
        raise ValueError(
            f"{value!r} is a date or time; use numbers instead, for example the days since a date"
        )
    return str(value)


def label_numbers(values: Array) -> LabelColumn:
    """Label a vector of numbers."""
    index, first = _number_values(values)
    return LabelColumn(index, [label_of(value) for value in values[first].tolist()])


def _number_values(values: Array) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Number the values of a vector in order of appearance; return the first row of each, too."""
    wide = np.float64 if values.dtype.kind == "f" else np.uint64
    keys = np.ascontiguousarray(values, dtype=wide).view(np.uint64)
    index = np.empty(len(keys), dtype=np.int32)
    count = _core.number_keys(keys, index)
    first = np.empty(count, dtype=np.intp)
    first[index[::-1]] = np.arange(len(keys) - 1, -1, -1)
    return index, first


def label_objects(values: Array, name: Any) -> LabelColumn:
    """Label a vector of objects or text."""
    numbers: dict[Any, int] = {}  # in order of appearance
    try:
        index = [numbers.setdefault(value, len(numbers)) for value in values.tolist()]
        labels = [label_of(value) for value in numbers]
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} cannot be categorical: {error}") from error
    return LabelColumn(np.array(index, dtype=np.int32), labels)


def label_series(series: Any) -> LabelColumn:
    """Label a column of text or categories of a frame, by the fastest way its library has."""
    library = series.implementation
    try:
        if library.is_pandas_like():
            return _label_pandas(series.to_native())
        if library.is_pyarrow():
            return _label_arrow(series.to_native())
        if library.is_polars():
            return _label_polars(series.to_native())
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {series.name!r} cannot be categorical: {error}") from error
    return label_objects(series.to_numpy().astype(object), series.name)


def _label_pandas(native: Any) -> LabelColumn:
    if hasattr(native, "cat"):
        index, values = native.cat.codes.to_numpy(), native.cat.categories
    else:
        index, values = native.factorize()
    return LabelColumn(index.astype(np.int32), [label_of(value) for value in values.tolist()])


def _label_arrow(native: Any) -> LabelColumn:
    encoded = native if hasattr(native.type, "index_type") else native.dictionary_encode()
    whole = encoded.unify_dictionaries().combine_chunks()
    is_valid = whole.indices.is_valid().to_numpy(zero_copy_only=False)
    index = whole.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)
    labels = [label_of(value) for value in whole.dictionary.to_pylist()]
    return LabelColumn(np.where(is_valid, index, np.int32(-1)), labels)


def _label_polars(native: Any) -> LabelColumn:
    # Physical codes may be in any order: it is enough that equal values share one.
    index, first = _number_values(native.to_physical().to_numpy())
    return LabelColumn(index, native.gather(first).to_list())


def _are_numbers(labels: Sequence[str | None]) -> bool:
    """Whether every label that is not missing is the text of a number."""
    texts = [label for label in labels if label is not None]
    return bool(texts) and all(NUMBER.fullmatch(text) for text in texts)


def reject_numbers(columns: Mapping[Any, LabelColumn], *, each: bool) -> None:
    """Reject an array whose text spells numbers: in any column, or without `each` in all of them.

    An array of text cannot hold numbers as numbers, an array of objects can.
    """
    numeric = [name for name, column in columns.items() if _are_numbers(column.labels)]
    if numeric and (each or len(numeric) == len(columns)):
        raise ValueError(
            f"column {numeric[0]} holds numbers as text, which would become categories;"
            f" {NUMBER_ADVICE}"
        )


def warn_of_numbers(columns: Mapping[Any, LabelColumn]) -> None:
    """Warn of columns of text that spell many different numbers: they become categories."""
    names = [
        name
        for name, column in columns.items()
        if len(set(column.labels)) > FEW_NUMBERS and _are_numbers(column.labels)
    ]
    if names:
        shown = ", ".join(map(repr, names[:20]))
        warn(
            f"these columns hold numbers as text and become categories: {shown}; {NUMBER_ADVICE}",
        )
