"""Read tables whose rows are held elsewhere: columns by their types, labels here, numbers there."""

from typing import Any

import numpy as np

from sglb.frame.arrays import read_array_columns
from sglb.frame.dataframes import as_frame, labels_by_type, read_columns
from sglb.frame.features import Features
from sglb.held import HeldTable
from sglb.labels import warn_of_numbers


def read_held(estimator: Any, X: HeldTable, reset: bool, categorical: Any) -> Features:
    """Return a table held elsewhere as features; `reset` is as in `read_features`."""
    n_rows = len(X)
    if reset and not n_rows:
        raise ValueError(f"{type(X).__name__} has no rows; at least 1 is needed to fit")
    frame = as_frame(X.empty)
    if frame is not None and not len(frame):
        mask = read_columns(estimator, frame, n_rows, reset, categorical)
    elif isinstance(X.empty, np.ndarray) and not len(X.empty):
        mask = read_array_columns(estimator, X.empty, reset, categorical)
    else:
        raise TypeError(f"{type(X).__name__}.empty must be an array or a dataframe without rows")
    labels = {column: X.held_labels(column) for column in np.flatnonzero(mask).tolist()}
    if reset and frame is not None:
        warn_of_numbers(labels_by_type(frame, labels, categorical))
    numbers = X.held_numbers(np.flatnonzero(~mask).tolist())
    return Features(numbers, tuple(labels.values()), mask)
