"""Read small frames whose layout was checked before, without another check of each column.

Checking a frame column by column takes a hundred times as long as predicting a row. The result of
those checks depends on the names and types of the columns alone, so a fitted model remembers both
from the last frame that passed, and converts a small frame with the same layout by NumPy alone.

Part of reading a table; used by `frame`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb.labels import LabelColumn, label_numbers, label_objects

Array = NDArray[Any]
Mask = NDArray[np.bool_]

# Rows of a small frame: copying it, at worst as Python objects, is cheap.
MOST_ROWS = 100

# Whole numbers below this are exact in float64, so they keep their labels.
EXACT = 2.0**53


class SmallFrame(NamedTuple):
    """The numeric columns of a small frame side by side, and the labels of the others."""

    values: Array
    labels: tuple[LabelColumn, ...]
    is_categorical: Mask


class KnownLayout:
    """The layout of the last frame that passed every check of a fitted model."""

    def __init__(self) -> None:
        self._learned: tuple[Any, Any, list[Any], Mask] | None = None  # type, layout, names, mask

    def learn(self, X: Any, names: list[Any], is_categorical: Mask) -> None:
        """Remember a frame that passed all checks, and which of its columns are categorical."""
        layout = _layout(X)
        if layout is not None:
            self._learned = type(X), layout, names, is_categorical

    def read(self, X: Any) -> SmallFrame | None:
        """Return a small frame if it has the remembered layout, otherwise None."""
        learned = self._learned
        if learned is None or type(X) is not learned[0] or len(X) > MOST_ROWS:
            return None
        _, layout, names, mask = learned
        if _layout(X) != layout:
            return None
        try:
            array = _as_array(X)
        except TypeError:  # a library that NumPy cannot read
            return None
        if array.shape != (len(X), len(names)) or array.dtype.kind not in "biufO":
            return None
        if not mask.any() and array.dtype.kind != "O":
            return SmallFrame(array, (), mask)
        return _split_columns(array, names, mask)


def _layout(X: Any) -> Any:
    """Return names and types of a frame's columns, in the terms of its library.

    Attributes are looked up in the class, because an attribute of the frame may be a column.
    """
    if not hasattr(type(X), "dtypes"):
        return X.schema if hasattr(type(X), "schema") else None
    names, types = X.columns, []
    for dtype in X.dtypes:
        # Categories that differ from those before are new levels, which are accepted.
        types.append(type(dtype) if hasattr(dtype, "categories") else dtype)
    return names.tolist() if hasattr(names, "tolist") else list(names), types


def _as_array(X: Any) -> Array:
    """Return a frame as one array, of objects if its columns have no type in common."""
    if not hasattr(type(X), "to_pylist"):
        return np.asarray(X)
    # NumPy would read a null of a dictionary column as the first value of the dictionary.
    return np.array([column.to_pylist() for column in X.columns], dtype=object).T


def _split_columns(array: Array, names: list[Any], mask: Mask) -> SmallFrame | None:
    """Return columns of numbers and labels, None if that would change a value."""
    categorical = np.flatnonzero(mask).tolist()
    if array.dtype.kind == "O":
        try:
            values = array[:, ~mask].astype(np.float64)
        except TypeError:  # pandas.NA
            return None
        return SmallFrame(
            values, tuple(label_objects(array[:, j], names[j]) for j in categorical), mask
        )
    if array.dtype.kind == "f" and (np.abs(array[:, categorical]) >= EXACT).any():
        return None
    return SmallFrame(array[:, ~mask], tuple(label_numbers(array[:, j]) for j in categorical), mask)
