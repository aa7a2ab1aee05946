"""Any table -> numbers and labels the next rooms can read.

The first room on the data's way and the only one that knows what a dataframe is. A table becomes a
numeric array and, column by column, labels of the categorical columns. Arrays of numbers pass
through untouched: the kernels read float32, float64, integers and booleans of any stride. All else
is rejected, and the message names the first column or row at fault. NaN in X is a missing value.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sglb import _core
from sglb.columns import Columns
from sglb.labels import (
    LabelColumn,
    of_array,
    of_objects,
    of_series,
    reject_numbers,
    warn_of_numbers,
)
from sglb.layouts import KnownLayout

Array = NDArray[Any]
Mask = NDArray[np.bool_]

NAME_IT = (
    "name it in categorical_features, leave that at 'from_dtype', or encode the column as numbers"
)
AS_IN_FIT = "it held numbers in fit: convert it to numbers"
DATE_ADVICE = (
    "dates and times are not supported: use numbers instead, for example the days since a date, "
    "the year, the month or the day of the week"
)

NAMES = "feature_names_in_"  # of an estimator whose columns have names
READY_DTYPES = frozenset(np.dtype(kind) for kind in ("?", *"bhilBHIL", "f", "d"))


@dataclass(frozen=True)
class Features:
    """A table as read: its numeric columns side by side, its categorical columns one by one."""

    values: Array | Columns  # (n_rows, n_numeric)
    labels: tuple[LabelColumn, ...]
    is_categorical: Mask  # (n_columns,)

    def __len__(self) -> int:
        return len(self.values)

    def matrix(self) -> Array:
        """Return the numeric columns side by side."""
        return self.values[:] if isinstance(self.values, Columns) else self.values

    def take(self, rows: Any) -> "Features":
        """Return some of the rows."""
        labels = tuple(column.take(rows) for column in self.labels)
        return Features(self.values[rows], labels, self.is_categorical)


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
    places, a mask over the columns, or None. With `reset` (in fit) the estimator learns number and
    names of the features and X needs a row; otherwise both must be the same as in fit. `layout`
    is what a fitted model knows of the frames that it has read so far.
    """
    if not reset and categorical is None and _is_ready(estimator, X):
        _reject_infinity(X, str, n_threads)
        return Features(np.asarray(X), (), np.zeros(X.shape[1], dtype=bool))
    parts = None if layout is None else layout.read(X)
    if parts is not None:
        features = Features(*parts)
    elif (frame := _as_frame(X)) is None:
        features = _read_array(estimator, X, reset, categorical)
    else:
        features = _read_frame(estimator, frame, reset, categorical, n_threads)
        if layout is not None and frame.to_native() is X and hasattr(estimator, NAMES):
            _learn_layout(layout, X, frame, features.is_categorical)
    if isinstance(features.values, Columns):  # are in order, see _numbers()
        return features
    values = _readable(features.values)
    _reject_infinity(values, lambda place: _name_of(place, estimator, features), n_threads)
    return Features(values, features.labels, features.is_categorical)


def _name_of(number: int, estimator: Any, features: Features) -> str:
    """Return what a numeric column is called in messages: its name, or its place without names."""
    place = int(np.flatnonzero(~features.is_categorical)[number])
    names = getattr(estimator, NAMES, None)
    return str(place) if names is None else repr(names[place])


def _learn_layout(layout: KnownLayout, X: Any, frame: Any, is_categorical: Mask) -> None:
    """Remember a frame that was in order for its column types, whatever values it holds."""
    import narwhals as nw

    for dtype, as_labels in zip(frame.schema.values(), is_categorical, strict=True):
        is_plain = dtype.is_integer() or dtype.is_float() or dtype == nw.Boolean
        if not is_plain and not (as_labels and dtype in (nw.String, nw.Categorical, nw.Enum)):
            return
    layout.learn(X, list(frame.columns), is_categorical)


def _checks(reset: bool) -> dict[str, Any]:
    return {
        "dtype": "numeric",
        "ensure_all_finite": False,
        "ensure_min_samples": 1 if reset else 0,
    }


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


def _as_frame(X: Any) -> Any:
    """Return X as a narwhals frame in memory, or None if it is not a dataframe."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
        if isinstance(frame, nw.Series):
            return None
        if frame is X and hasattr(X, "__arrow_c_stream__"):
            frame = nw.from_arrow(X, backend="pyarrow")
    except nw.exceptions.DuplicateError as error:
        names = getattr(X, "column_names", None)  # an Arrow table; other frames have .columns
        counts = Counter(list(X.columns) if names is None else names)
        twice = [name for name, count in counts.items() if count > 1]
        raise ValueError(
            f"column names must be unique; these occur more than once: {twice}"
        ) from error
    if isinstance(frame, nw.LazyFrame):
        return frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def _read_array(estimator: Any, X: Any, reset: bool, categorical: Any) -> Features:
    """Read an array or nested lists: numbers as they are, objects and text column by column."""
    X = keep_objects(X)
    _reject_dates(X)
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS"):
        values = _readable(validate_data(estimator, X, reset=reset, **_checks(reset)))
        mask = _chosen(categorical, None, np.zeros(values.shape[1], dtype=bool))
        if not mask.any():
            return Features(values, (), mask)
        numbers = tuple(of_array(values[:, place]) for place in np.flatnonzero(mask))
        return Features(values[:, ~mask], numbers, mask)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    is_text = np.array([_holds_text(X[:, place]) for place in range(X.shape[1])], dtype=bool)
    mask = _chosen(categorical, None, is_text)
    for place in np.flatnonzero(is_text & ~mask):
        raise ValueError(f"column {place} holds text, not numbers; {_text_advice(reset)}")
    checked = check_array(
        np.empty((len(X), 0)) if mask.all() else X[:, ~mask],
        input_name="X",
        estimator=estimator,
        ensure_min_features=0 if mask.any() else 1,
        **_checks(reset),
    )
    labels = {place: of_objects(X[:, place], place) for place in np.flatnonzero(mask).tolist()}
    if reset and _is_from_dtype(categorical):
        reject_numbers(labels, each=X.dtype.kind != "O")
        warn_of_numbers(labels)
    return Features(checked, tuple(labels.values()), mask)


def _is_from_dtype(categorical: Any) -> bool:
    return isinstance(categorical, str) and categorical == "from_dtype"


def _text_advice(reset: bool) -> str:
    """Return what to do about text where numbers are expected."""
    return NAME_IT if reset else AS_IN_FIT


def _reject_dates(X: Any) -> None:
    """Reject an array of dates, because its numbers depend on its unit."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError(f"X is of type {X.dtype}; {DATE_ADVICE}")


def keep_objects(X: Any, n_axes: int = 2) -> Any:
    """Return nested lists that hold text as an array of objects: NumPy would make all of it text.

    What is not a rectangle is left to scikit-learn's words.
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


def _holds_text(column: Array) -> bool:
    """Whether a column of an array holds text."""
    if column.dtype.kind in "US":
        return True
    return any(isinstance(value, str | bytes) for value in column.tolist())


def _read_frame(
    estimator: Any, frame: Any, reset: bool, categorical: Any, n_threads: int
) -> Features:
    """Read a frame: columns of text and categories as labels, the others as numbers."""
    names, columns = list(frame.columns), list(frame.iter_columns())
    is_text = np.array([_is_text(column) for column in columns], dtype=bool)
    _check_names(estimator, frame.to_native(), names, reset=reset)
    mask = _chosen(categorical, names, is_text)
    for place in np.flatnonzero(is_text & ~mask):
        column = columns[place]
        if column.null_count() < len(column):  # without any value it is as good as numbers
            raise ValueError(
                f"column {names[place]!r} is of type {column.dtype}, not a number; "
                f"{_text_advice(reset)}"
            )
    numeric = [column for column, skip in zip(columns, mask, strict=True) if not skip]
    check_array(  # all that is left to check is the shape
        np.broadcast_to(np.float32(0.0), (len(frame), len(numeric))),
        input_name="X",
        estimator=estimator,
        ensure_min_features=0 if mask.any() else 1,
        **_checks(reset),
    )
    values = _numbers(frame, numeric, n_threads)
    labels = {place: _labels(columns[place]) for place in np.flatnonzero(mask).tolist()}
    if reset and _is_from_dtype(categorical):
        warn_of_numbers({names[p]: labels[p] for p in labels if not _is_category(columns[p])})
    return Features(values, tuple(labels.values()), mask)


def _is_category(series: Any) -> bool:
    """Whether a column is of a type that says that its values are categories."""
    import narwhals as nw

    return series.dtype in (nw.Categorical, nw.Enum)


def _is_text(series: Any) -> bool:
    """Whether a column is text or categories; reject a column that is neither text nor numbers."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return False
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return True
    if dtype == nw.Object:
        return _holds_text(series.to_numpy())
    if dtype.is_temporal():
        raise ValueError(f"column {series.name!r} is of type {dtype}; {DATE_ADVICE}")
    if series.null_count() == len(series):
        return False
    raise ValueError(
        f"column {series.name!r} is of type {dtype}, which is neither a number nor text"
    )


def _labels(series: Any) -> LabelColumn:
    """Label a column; nulls among numbers are set apart first, lest whole numbers become floats."""
    import narwhals as nw

    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        known = series.dtype != nw.String or not series.implementation.is_polars()
        return of_series(series if known else series.cast(nw.Categorical))
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    values = series.fill_null(False if series.dtype == nw.Boolean else 0).to_numpy()
    column = of_objects(values, series.name) if values.dtype.kind == "O" else of_array(values)
    return LabelColumn(np.where(missing, np.int32(-1), column.index), column.labels)


def _chosen(categorical: Any, names: list[Any] | None, is_text: Mask) -> Mask:
    """Return which columns `categorical` stands for."""
    if categorical is None:
        return np.zeros_like(is_text)
    if _is_from_dtype(categorical):
        return is_text
    given = np.asarray(categorical)
    if given.dtype == bool:
        if given.shape != is_text.shape:
            raise ValueError(
                f"categorical_features is a mask of shape {given.shape}, but X has {len(is_text)} "
                "columns"
            )
        return given
    mask = np.zeros_like(is_text)
    for one in given.ravel().tolist():
        mask[_place_of(one, names, len(is_text))] = True
    return mask


def _place_of(one: Any, names: list[Any] | None, n_columns: int) -> int:
    """Return the place of a column that categorical_features names."""
    if isinstance(one, str):
        if names is None or one not in names:
            has = "no names" if names is None else f"{names[:20]}"
            raise ValueError(f"categorical_features names {one!r}, but the columns of X are: {has}")
        return names.index(one)
    if not isinstance(one, int) or not 0 <= one < n_columns:
        raise ValueError(
            f"categorical_features names column {one!r}, but X has {n_columns} columns, counted "
            "from 0"
        )
    return one


def _numbers(frame: Any, series: list[Any], n_threads: int) -> Array | Columns:
    """Return columns of a frame in the narrowest type that holds them all, without infinity."""
    if frame.implementation.is_pandas() and len(series) == len(frame.columns):
        held = set(frame.to_native().dtypes)
        if len(held) == 1 and _is_plain(held.pop()):  # one block of memory, no copy
            block: Array = frame.to_numpy()
            return block
    dtypes = [np.dtype(np.float64)] if not series else []
    for one in series:
        column = _column(one)
        _reject_infinity(_readable(column[:, None]), partial(_series_name, one), n_threads)
        dtypes.append(column.dtype)
    readers = [partial(_column, one) for one in series]
    return Columns(len(frame), readers, _readable_dtype(np.result_type(*dtypes)))


def _series_name(series: Any, _: int) -> str:
    return repr(series.name)


def _is_plain(dtype: Any) -> bool:
    """Whether numbers are held as NumPy holds them, without nulls."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _column(series: Any) -> Array:
    """Return one column; nulls become NaN. The type is the same whatever library holds it."""
    import narwhals as nw

    values: Array = series.to_numpy()
    if values.dtype.kind not in "biuf":  # decimals, booleans with nulls, objects
        try:
            floats = series.cast(nw.Float64).to_numpy()
            values = np.asarray(floats, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"column {series.name!r} holds a value that is not a number: {error}"
            ) from error
    small = series.dtype in (nw.Boolean, nw.Int8, nw.Int16, nw.UInt8, nw.UInt16)
    return values.astype(np.float32) if small and values.dtype.kind == "f" else values


def _check_names(estimator: Any, X: Any, names: list[Any], *, reset: bool) -> None:
    """Learn or compare feature names by scikit-learn's rule; say which column is out of place."""
    expected = list(getattr(estimator, NAMES, ()))
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except ValueError as error:
        if sorted(map(str, names)) != sorted(map(str, expected)):
            raise
        pairs = enumerate(zip(names, expected, strict=True))
        place, (name, was) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
        raise ValueError(f"{error}Column {place} is {name!r}; in fit it was {was!r}.") from None


def _readable(values: Array) -> Array:
    """Return the array in a type of the kernels: native float32/float64, integers, booleans.

    A field of packed records does not lie where its type must lie, and its rows are no whole number
    of values apart: it is copied.
    """
    return values.astype(_readable_dtype(values.dtype), copy=not values.flags.aligned)


def _readable_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the kernels that holds what `dtype` holds."""
    dtype = dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype not in (np.float32, np.float64):
        return np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return dtype


def _reject_infinity(values: Array, name_of: Callable[[int], str], n_threads: int) -> None:
    """Reject infinite values, naming the first one's column (as `name_of` calls it) and row."""
    if values.dtype.kind != "f":
        return
    place = _core.first_infinity(values, n_threads)
    if place >= 0:
        row, column = divmod(place, values.shape[1])
        raise ValueError(f"X contains infinity in column {name_of(column)}, row {row}")
