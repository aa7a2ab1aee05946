"""Read arrays and nested lists: numbers as they are, objects and text column by column."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sglb.frame.features import Features
from sglb.frame.selection import categorical_mask, is_from_dtype, text_advice
from sglb.frame.values import as_readable, shape_checks
from sglb.labels import label_numbers, label_objects, reject_numbers, warn_of_numbers

DATE_ADVICE = (
    "dates and times are not supported: use numbers instead, for example the days since a date, "
    "the year, the month or the day of the week"
)


def read_array(estimator: Any, X: Any, reset: bool, categorical: Any) -> Features:
    """Return an array or nested lists as features."""
    X = keep_objects(X)
    _reject_dates(X)
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS"):
        values = as_readable(validate_data(estimator, X, reset=reset, **shape_checks(reset)))
        mask = categorical_mask(categorical, None, np.zeros(values.shape[1], dtype=bool))
        if not mask.any():
            return Features(values, (), mask)
        numbers = tuple(label_numbers(values[:, column]) for column in np.flatnonzero(mask))
        return Features(values[:, ~mask], numbers, mask)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    is_text = np.array([holds_text(column) for column in X.T], dtype=bool)
    mask = categorical_mask(categorical, None, is_text)
    for column in np.flatnonzero(is_text & ~mask):
        raise ValueError(f"column {column} holds text, not numbers; {text_advice(reset)}")
    checked = check_array(
        np.empty((len(X), 0)) if mask.all() else X[:, ~mask],
        input_name="X",
        estimator=estimator,
        ensure_min_features=0 if mask.any() else 1,
        **shape_checks(reset),
    )
    labels = {
        column: label_objects(X[:, column], column) for column in np.flatnonzero(mask).tolist()
    }
    if reset and is_from_dtype(categorical):
        reject_numbers(labels, each=X.dtype.kind != "O")
        warn_of_numbers(labels)
    return Features(checked, tuple(labels.values()), mask)


def read_array_columns(
    estimator: Any, empty: NDArray[Any], reset: bool, categorical: Any
) -> NDArray[np.bool_]:
    """Learn or compare the number of columns; return which are categorical.

    `empty` is an array of numbers without rows, in place of one that is held elsewhere.
    """
    _reject_dates(empty)
    if empty.dtype.kind not in "biuf":
        raise ValueError(
            f"an array of type {empty.dtype} that is held elsewhere cannot be read; use numbers, or"
            " a dataframe"
        )
    validate_data(estimator, empty, reset=reset, skip_check_array=True)
    return categorical_mask(categorical, None, np.zeros(empty.shape[1], dtype=bool))


def _reject_dates(X: Any) -> None:
    """Reject an array of dates, because its numbers depend on its unit."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError(f"X is of type {X.dtype}; {DATE_ADVICE}")


def keep_objects(X: Any, n_axes: int = 2) -> Any:
    """Return nested lists that hold text as an array of objects: NumPy would make all of it text.

    Ragged lists are returned as they are: scikit-learn rejects them.
    """
    if not isinstance(X, list | tuple):
        return X
    try:
        array = np.asarray(X)
        if array.dtype.kind in "USO" and array.ndim == n_axes:
            return np.array(X, dtype=object)
    except ValueError:
        pass
    return X


def holds_text(column: NDArray[Any]) -> bool:
    """Whether a column of an array holds text."""
    if column.dtype.kind in "US":
        return True
    return any(isinstance(value, str | bytes) for value in column.tolist())
