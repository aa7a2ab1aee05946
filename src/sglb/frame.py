"""Any table -> a numeric array the core can read; any target and weights -> float64 vectors.

The first room on the data's way and the only one that knows what a dataframe is. Arrays pass
through untouched: the kernels read float32, float64, integers and booleans of any stride. What
cannot be a number is refused with the first column or row at fault named; NaN in X is a missing
value and welcome.
"""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

Array = NDArray[Any]
Floats = NDArray[np.float64]

ENCODE_ADVICE = (
    "categorical columns are not supported yet: encode them as numbers first, for example with "
    "sklearn.preprocessing.OrdinalEncoder or OneHotEncoder (dates as the difference to a day)"
)

READY_DTYPES = frozenset(np.dtype(kind) for kind in ("?", *"bhilBHIL", "f", "d"))


def read_features(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Return X as a numeric array (n_rows, n_features).

    With `reset` (in fit) the estimator learns number and names of the features and X needs a row;
    otherwise both must be the same as in fit.
    """
    if not reset and _is_ready(estimator, X):
        _refuse_infinity(X, None)
        return np.asarray(X)
    checks: dict[str, Any] = {
        "estimator": estimator,
        "dtype": "numeric",
        "ensure_all_finite": False,
        "ensure_min_samples": 1 if reset else 0,
    }
    frame = _as_frame(X)
    if frame is None:
        _refuse_text(X)
        checks.pop("estimator")
        values = validate_data(estimator, X, reset=reset, **checks)
    else:
        values = _numbers(frame)
        _check_names(estimator, X, list(frame.columns), reset=reset)
        values = check_array(values, input_name="X", **checks)
    values = _readable(values)
    _refuse_infinity(values, getattr(estimator, "feature_names_in_", None))
    return values


def _is_ready(estimator: Any, X: Any) -> bool:
    """Whether X is an array that every check of scikit-learn would return as it is.

    Those checks take longer than the prediction of a row.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in READY_DTYPES
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")  # else scikit-learn warns of names missing
    )


def _as_frame(X: Any) -> Any:
    """Return X as a narwhals frame, or None if it is not a dataframe."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = getattr(X, "column_names", None)  # an Arrow table; other frames have .columns
        counts = Counter(list(X.columns) if names is None else names)
        twice = [name for name, count in counts.items() if count > 1]
        raise ValueError(f"column names must be unique; more than once: {twice}") from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("X is a lazy table; read it into memory first (for example X.collect())")
    return frame if isinstance(frame, nw.DataFrame) else None


def _numbers(frame: Any) -> Array:
    """Return the columns of a frame side by side, in the narrowest type that holds them all."""
    import narwhals as nw

    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise ValueError(f"column {name!r} is of type {dtype}, not a number; {ENCODE_ADVICE}")
    if len(set(frame.schema.values())) == 1:
        values: Array = frame.to_numpy()
        if values.dtype.kind in "biuf":
            return values
    columns = [_column(frame[name]) for name in frame.columns]
    if not columns:
        return np.empty((len(frame), 0))
    # Column by column is how frames lie in memory and how the kernels read.
    dtype = np.result_type(*(column.dtype for column in columns))
    table = np.empty((len(frame), len(columns)), dtype=dtype, order="F")
    for place, column in enumerate(columns):
        table[:, place] = column
    return table


def _column(series: Any) -> Array:
    """Return one column; nulls become NaN."""
    import narwhals as nw

    values: Array = series.to_numpy()
    if values.dtype.kind not in "biuf":  # decimals, booleans with nulls
        values = series.cast(nw.Float64).to_numpy()
    return values


def _check_names(estimator: Any, X: Any, names: list[Any], *, reset: bool) -> None:
    """Learn or compare feature names by scikit-learn's rule; say which column is out of place."""
    expected = list(getattr(estimator, "feature_names_in_", ()))
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except ValueError as error:
        if sorted(map(str, names)) != sorted(map(str, expected)):
            raise
        pairs = enumerate(zip(names, expected, strict=True))
        place, (name, was) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
        raise ValueError(f"{error}Column {place} is {name!r}; in fit it was {was!r}.") from None


def _refuse_text(X: Any) -> None:
    """Refuse text hidden in an array of objects: it would be parsed as numbers without a word."""
    if not (isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 2):
        return
    for place in range(X.shape[1]):
        if any(isinstance(value, str) for value in X[:, place]):
            raise ValueError(f"column {place} holds text, not numbers; {ENCODE_ADVICE}")


def _readable(values: Array) -> Array:
    """Return the array in a type of the kernels: native float32/float64, integers, booleans."""
    dtype = values.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype not in (np.float32, np.float64):
        dtype = np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return values.astype(dtype, copy=False)


def _refuse_infinity(values: Array, names: Any) -> None:
    """Refuse infinite values, naming the first one's column and row."""
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # the usual case, and the only cheap one for a single row
            return
    try:
        assert_all_finite(values, allow_nan=True)
    except ValueError:
        row, place = np.argwhere(np.isinf(values))[0]
        column = place if names is None else repr(names[place])
        raise ValueError(f"X contains infinity in column {column}, row {row}") from None


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


def _refuse_first(bad: NDArray[np.bool_], name: str, values: Array, wanted: str) -> None:
    """Refuse a vector, naming its first bad row."""
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"{name} must be {wanted}; row {row} is {values[row]}")


def read_numbers(estimator: Any, y: Any, n_rows: int) -> Floats:
    """Return a regression target as float64."""
    vector = _read_vector(estimator, y, n_rows)
    if vector.dtype.kind in "US" or any(isinstance(value, str) for value in vector[:1]):
        raise ValueError(f"y must be numbers; row 0 is {vector[0]!r}")
    numbers = vector.astype(np.float64)
    _refuse_first(~np.isfinite(numbers), "y", numbers, "finite")
    return numbers


def read_labels(estimator: Any, y: Any, n_rows: int) -> Array:
    """Return a classification target, labels of any type."""
    vector = _read_vector(estimator, y, n_rows)
    if vector.dtype.kind == "f":
        _refuse_first(~np.isfinite(vector), "y", vector, "finite")
    if vector.dtype.kind == "O":
        missing = np.array([value is None or value != value for value in vector], dtype=bool)
        _refuse_first(missing, "y", vector, "a label in every row")
    if vector.dtype.kind not in "biu":  # whole numbers are labels, however many they are
        check_classification_targets(vector)
    return vector


def read_weight(weight: Any, values: Array, name: str = "sample_weight") -> Floats | None:
    """Return the weights of the rows of X as float64: finite, not negative, not all zero."""
    if weight is None:
        return None
    checked: Floats = check_array(
        weight, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name=name
    )
    if checked.shape != (len(values),):
        raise ValueError(
            f"{name} must have shape ({len(values)},), one number a row of X; "
            f"it has {checked.shape}"
        )
    _refuse_first(~np.isfinite(checked), name, checked, "finite")
    _refuse_first(checked < 0.0, name, checked, "at least 0")
    if len(checked) and not checked.any():
        raise ValueError(f"{name} must not be zero in every row")
    return checked
