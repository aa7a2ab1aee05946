"""Read targets and weights as vectors with one value per row.

Numbers become float64, labels keep their type. Anything else is rejected with a message that names
the first bad row.
"""

from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sglb.frame.arrays import DATE_ADVICE, keep_objects
from sglb.weights import equal_weights

Array = NDArray[Any]
Floats = NDArray[np.float64]

DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


def _read_vector(estimator: Any, y: Any, n_rows: int) -> Array:
    """Return a target as a vector of n_rows values of any type."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None")
    y = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    vector: Array = column_or_1d(y, warn=True)
    if len(vector) != n_rows:
        raise ValueError(f"X has {n_rows} rows but y has {len(vector)}")
    return vector


def _reject_rows(bad: NDArray[np.bool_], name: str, values: Array, expected: str) -> None:
    """Reject a vector with bad rows; the message names the first of them."""
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"{name} must be {expected}; row {row} is {values[row]}")


def read_numbers(estimator: Any, y: Any, n_rows: int) -> Floats:
    """Return a regression target as float64."""
    numbers = _as_numbers(_read_vector(estimator, keep_objects(y, 1), n_rows), "y")
    _reject_rows(~np.isfinite(numbers), "y", numbers, "finite")
    return numbers


def _as_numbers(vector: Array, name: str) -> Floats:
    """Return a vector as float64, in the layout that the kernels read.

    NumPy would convert text to the number it spells and dates to their distance from 1970.
    """
    if vector.dtype.kind in "mM":
        raise ValueError(f"{name} is of type {vector.dtype}; {DATE_ADVICE}")
    if vector.dtype.kind in "OUS":
        for row, value in enumerate(vector.tolist()):
            if not is_number(value):
                advice = f"; {DATE_ADVICE}" if isinstance(value, DATES) else ""
                raise ValueError(f"{name} must be numbers; row {row} is {value!r}{advice}")
    # Fields of packed records are copied.
    return np.require(vector, dtype=np.float64, requirements=["C", "A"])


def is_number(value: Any) -> bool:
    """Whether a value is a number; text and dates are not, although NumPy converts both."""
    if isinstance(value, (str, bytes, *DATES)):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def read_labels(estimator: Any, y: Any, n_rows: int) -> Array:
    """Return a classification target as labels of any type."""
    vector = _read_vector(estimator, y, n_rows)
    if vector.dtype.kind == "f":
        _reject_rows(~np.isfinite(vector), "y", vector, "finite")
    if vector.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in vector], dtype=bool)
        _reject_rows(missing, "y", vector, "a label in every row")
    if vector.dtype.kind not in "biu":  # whole numbers are always labels, however many
        try:
            check_classification_targets(vector)
        except TypeError as error:
            raise TypeError(f"y mixes labels of types that cannot be sorted: {error}") from error
    return vector


def read_weight(weight: Any, values: Any, name: str = "sample_weight") -> Floats:
    """Return the weights of the rows of X as float64: finite, not negative, not all zero.

    Without stated weights every row weighs 1.
    """
    if weight is None:
        return equal_weights(len(values))
    vector = check_array(
        keep_objects(weight, 1),
        ensure_2d=False,
        dtype=None,
        ensure_all_finite=False,
        input_name=name,
    )
    if vector.shape != (len(values),):
        raise ValueError(
            f"{name} must have shape ({len(values)},), one number per row of X, not {vector.shape}"
        )
    numbers = _as_numbers(vector, name)
    _reject_rows(~np.isfinite(numbers), name, numbers, "finite")
    _reject_rows(numbers < 0.0, name, numbers, "at least 0")
    if len(numbers) and not numbers.any():
        raise ValueError(f"{name} is zero in every row; at least one must be positive")
    return numbers
