"""Small frames of a layout that was checked before: read in one go, without a look at each column.

To check a frame column by column takes a hundred times as long as to predict one row. What those
checks find depends on the names and types of the columns alone, so a fitted model remembers them
from the last frame that passed, and reads a small frame with the same ones as NumPy sees it.

Part of reading a table; `frame` asks for it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb.labels import LabelColumn, of_array, of_objects

Array = NDArray[Any]
Mask = NDArray[np.bool_]

# Rows up to which a frame is small: a copy of it, at worst as Python objects, costs little.
MOST_ROWS = 100

# Whole numbers below this are float64 exactly, so that they keep their label.
EXACT = 2.0**53


class Parts(NamedTuple):
    """The numeric columns of a small frame side by side, and the labels of the others."""

    values: Array
    labels: tuple[LabelColumn, ...]
    is_categorical: Mask


class KnownLayout:
    """The layout of the last frame that passed every check of a fitted model."""

    def __init__(self) -> None:
        self._known: tuple[Any, Any, list[Any], Mask] | None = None  # type, layout, names, mask

    def learn(self, X: Any, names: list[Any], is_categorical: Mask) -> None:
        """Remember a frame that was found in order, and which of its columns are categorical."""
        layout = _layout(X)
        if layout is not None:
            self._known = type(X), layout, names, is_categorical

    def read(self, X: Any) -> Parts | None:
        """Return a small frame of the layout remembered; None for all else."""
        known = self._known
        if known is None or type(X) is not known[0] or len(X) > MOST_ROWS:
            return None
        _, layout, names, mask = known
        if _layout(X) != layout:
            return None
        try:
            table = _side_by_side(X)
        except TypeError:  # of a library that does not let NumPy see its memory
            return None
        if table.shape != (len(X), len(names)) or table.dtype.kind not in "biufO":
            return None
        if not mask.any() and table.dtype.kind != "O":
            return Parts(table, (), mask)
        return _separate(table, names, mask)


def _layout(X: Any) -> Any:
    """Return names and types of a frame's columns, in whatever words its library has for them.

    Attributes are looked for in the class: those of a frame may be its columns.
    """
    if not hasattr(type(X), "dtypes"):
        return X.schema if hasattr(type(X), "schema") else None
    names, types = X.columns, []
    for dtype in X.dtypes:
        # Other categories than before are new levels, which are accepted.
        types.append(type(dtype) if hasattr(dtype, "categories") else dtype)
    return names.tolist() if hasattr(names, "tolist") else list(names), types


def _side_by_side(X: Any) -> Array:
    """Return a frame as one array, of objects if its columns have no type in common."""
    if not hasattr(type(X), "to_pylist"):
        return np.asarray(X)
    # NumPy sees the first value of a dictionary where an Arrow table has a null.
    return np.array([column.to_pylist() for column in X.columns], dtype=object).T


def _separate(table: Array, names: list[Any], mask: Mask) -> Parts | None:
    """Return columns of numbers and labels, None if a value would not come out as it is."""
    places = np.flatnonzero(mask).tolist()
    if table.dtype.kind == "O":
        try:
            values = table[:, ~mask].astype(np.float64)
        except TypeError:  # a null of pandas
            return None
        return Parts(values, tuple(of_objects(table[:, p], names[p]) for p in places), mask)
    if table.dtype.kind == "f" and (np.abs(table[:, places]) >= EXACT).any():
        return None
    return Parts(table[:, ~mask], tuple(of_array(table[:, p]) for p in places), mask)
