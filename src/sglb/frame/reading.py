"""Read any table as features, without the checks whose result is known."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.frame.arrays import read_array
from sglb.frame.dataframes import NAMES, as_frame, read_frame
from sglb.frame.features import Features
from sglb.frame.held_tables import read_held
from sglb.frame.values import READY_DTYPES, as_readable, reject_infinity
from sglb.held import HeldTable
from sglb.layouts import KnownLayout


def read_features(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    categorical: Any = None,
    n_threads: int = 1,
    layout: KnownLayout | None = None,
) -> Features:
    """Return X as numbers and labels.

    `categorical` says which columns are categorical: "from_dtype" (text and categories), names,
    indices, a mask over the columns, or None. With `reset` (in fit) the estimator learns number and
    names of the features and X needs a row; otherwise both must be the same as in fit. `layout`
    is what a fitted model remembers of the last frame it read.
    """
    if not reset and categorical is None and _is_ready(estimator, X):
        reject_infinity(X, str, n_threads)
        return Features(np.asarray(X), (), np.zeros(X.shape[1], dtype=bool))
    if isinstance(X, HeldTable):
        return read_held(estimator, X, reset, categorical)
    small = None if layout is None else layout.read(X)
    if small is not None:
        features = Features(*small)
    elif (frame := as_frame(X)) is None:
        features = read_array(estimator, X, reset, categorical)
    else:
        features = read_frame(estimator, frame, reset, categorical, n_threads)
        if layout is not None and frame.to_native() is X and hasattr(estimator, NAMES):
            _learn_layout(layout, X, frame, features.is_categorical)
    if not isinstance(features.values, np.ndarray):  # read_frame has checked them
        return features
    values = as_readable(features.values)
    reject_infinity(values, lambda column: _column_name(column, estimator, features), n_threads)
    return Features(values, features.labels, features.is_categorical)


def _is_ready(estimator: Any, X: Any) -> bool:
    """Whether X is an array that every check of scikit-learn would return as it is.

    Those checks take longer than the prediction of a row.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in READY_DTYPES
        and X.flags.aligned
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, NAMES)  # else scikit-learn warns of names missing
    )


def _column_name(numeric_column: int, estimator: Any, features: Features) -> str:
    """Return what messages call a numeric column: its name, or its index in X without names."""
    index = int(np.flatnonzero(~features.is_categorical)[numeric_column])
    names = getattr(estimator, NAMES, None)
    return str(index) if names is None else repr(names[index])


def _learn_layout(
    layout: KnownLayout, X: Any, frame: Any, is_categorical: NDArray[np.bool_]
) -> None:
    """Remember a frame whose column types alone, whatever the values, make it valid."""
    import narwhals as nw

    for dtype, as_labels in zip(frame.schema.values(), is_categorical, strict=True):
        is_number = dtype.is_integer() or dtype.is_float() or dtype == nw.Boolean
        if not is_number and not (as_labels and dtype in (nw.String, nw.Categorical, nw.Enum)):
            return
    layout.learn(X, list(frame.columns), is_categorical)
