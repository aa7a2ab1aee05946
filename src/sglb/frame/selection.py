"""Which columns of a table are categorical, by `categorical_features`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

_FIT_ADVICE = (
    "name it in categorical_features, leave that at 'from_dtype', or encode the column as numbers"
)
_PREDICT_ADVICE = "it held numbers in fit: convert it to numbers"


def is_from_dtype(categorical: Any) -> bool:
    """Whether the types of the columns say which are categorical."""
    return isinstance(categorical, str) and categorical == "from_dtype"


def text_advice(reset: bool) -> str:
    """Return what to do about text where numbers are expected, in fit (`reset`) or later."""
    return _FIT_ADVICE if reset else _PREDICT_ADVICE


def categorical_mask(categorical: Any, names: list[Any] | None, is_text: Mask) -> Mask:
    """Return a mask of the columns that `categorical` selects."""
    if categorical is None:
        return np.zeros_like(is_text)
    if is_from_dtype(categorical):
        return is_text
    selected = np.asarray(categorical)
    if selected.dtype == bool:
        if selected.shape != is_text.shape:
            raise ValueError(
                f"categorical_features is a mask of shape {selected.shape}, but X has "
                f"{len(is_text)} columns"
            )
        return selected
    mask = np.zeros_like(is_text)
    for column in selected.ravel().tolist():
        mask[_column_index(column, names, len(is_text))] = True
    return mask


def _column_index(column: Any, names: list[Any] | None, n_columns: int) -> int:
    """Return the index of a column that categorical_features selects by name or index."""
    if isinstance(column, str):
        if names is None or column not in names:
            known = "no names" if names is None else f"{names[:20]}"
            raise ValueError(
                f"categorical_features names {column!r}, but the columns of X are: {known}"
            )
        return names.index(column)
    if not isinstance(column, int) or not 0 <= column < n_columns:
        raise ValueError(
            f"categorical_features names column {column!r}, but X has {n_columns} columns, counted "
            "from 0"
        )
    return column
