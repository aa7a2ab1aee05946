"""Read dataframes of any library: text and categories as labels, other columns as numbers."""

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sglb.columns import Columns
from sglb.frame.arrays import DATE_ADVICE, holds_text
from sglb.frame.features import Features
from sglb.frame.selection import categorical_mask, is_from_dtype, text_advice
from sglb.frame.values import as_readable, readable_dtype, reject_infinity, shape_checks
from sglb.labels import (
    LabelColumn,
    label_numbers,
    label_objects,
    label_series,
    warn_of_numbers,
)

Array = NDArray[Any]

NAMES = "feature_names_in_"  # of an estimator whose columns have names


def as_frame(X: Any) -> Any:
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
        repeated = [name for name, count in counts.items() if count > 1]
        raise ValueError(
            f"column names must be unique; these occur more than once: {repeated}"
        ) from error
    if isinstance(frame, nw.LazyFrame):
        return frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def read_frame(
    estimator: Any, frame: Any, reset: bool, categorical: Any, n_threads: int
) -> Features:
    """Return a narwhals frame as features."""
    columns = list(frame.iter_columns())
    mask = read_columns(estimator, frame, len(frame), reset, categorical)
    numeric = [column for column, skip in zip(columns, mask, strict=True) if not skip]
    check_array(  # only the shape is left to check
        np.broadcast_to(np.float32(0.0), (len(frame), len(numeric))),
        input_name="X",
        estimator=estimator,
        ensure_min_features=0 if mask.any() else 1,
        **shape_checks(reset),
    )
    values = read_number_columns(frame, numeric, n_threads)
    labels = {index: _read_labels(columns[index]) for index in np.flatnonzero(mask).tolist()}
    if reset:
        warn_of_numbers(labels_by_type(frame, labels, categorical))
    return Features(values, tuple(labels.values()), mask)


def read_columns(
    estimator: Any, frame: Any, n_rows: int, reset: bool, categorical: Any
) -> NDArray[np.bool_]:
    """Learn or compare the names of a narwhals frame; return which columns are categorical.

    The frame may be without the rows of the table, of which there are `n_rows`.
    """
    names, columns = list(frame.columns), list(frame.iter_columns())
    is_text = np.array([_is_text(column) for column in columns], dtype=bool)
    _check_names(estimator, frame.to_native(), names, reset=reset)
    mask = categorical_mask(categorical, names, is_text)
    for index in np.flatnonzero(is_text & ~mask):
        column = columns[index]
        if column.null_count() < n_rows:  # a column of nulls is read as numbers
            raise ValueError(
                f"column {names[index]!r} is of type {column.dtype}, not a number; "
                f"{text_advice(reset)}"
            )
    return mask


def labels_by_type(
    frame: Any, labels: dict[int, LabelColumn], categorical: Any
) -> dict[Any, LabelColumn]:
    """Return by name the columns of text that are categories because they are text."""
    if not is_from_dtype(categorical):
        return {}
    names, columns = frame.columns, list(frame.iter_columns())
    return {names[j]: column for j, column in labels.items() if not _is_category(columns[j])}


def _check_names(estimator: Any, X: Any, names: list[Any], *, reset: bool) -> None:
    """Learn or compare feature names by scikit-learn's rule; name the first column out of order."""
    expected = list(getattr(estimator, NAMES, ()))
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except ValueError as error:
        if sorted(map(str, names)) != sorted(map(str, expected)):
            raise
        pairs = enumerate(zip(names, expected, strict=True))
        index, (name, fitted) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
        raise ValueError(f"{error}Column {index} is {name!r}; in fit it was {fitted!r}.") from None


def _is_category(series: Any) -> bool:
    """Whether a column is of a categorical type."""
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
        return holds_text(series.to_numpy())
    if dtype.is_temporal():
        raise ValueError(f"column {series.name!r} is of type {dtype}; {DATE_ADVICE}")
    if series.null_count() == len(series):
        return False
    raise ValueError(
        f"column {series.name!r} is of type {dtype}, which is neither a number nor text"
    )


def read_label_column(native: Any) -> LabelColumn:
    """Label a column of a frame of any library."""
    import narwhals as nw

    return _read_labels(nw.from_native(native, series_only=True))


def read_matrix(native: Any, first_row: int, n_threads: int) -> Array:
    """Return a frame of numbers as a matrix that kernels read, without infinity.

    It has rows of a larger table, from `first_row` on; these may be read piece by piece, in types
    that differ.
    """
    frame = as_frame(native)
    columns = [_read_column(series) for series in frame.iter_columns()]
    dtype = np.result_type(*columns) if columns else np.dtype(np.float64)
    matrix = np.empty((len(frame), len(columns)), dtype=readable_dtype(dtype), order="F")
    for column, values in enumerate(columns):
        matrix[:, column] = values
    reject_infinity(matrix, lambda column: repr(frame.columns[column]), n_threads, first_row)
    return matrix


def _read_labels(series: Any) -> LabelColumn:
    """Label a column of a narwhals frame.

    Nulls of a numeric column are masked, lest its integers become floats.
    """
    import narwhals as nw

    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        is_polars_text = series.dtype == nw.String and series.implementation.is_polars()
        return label_series(series.cast(nw.Categorical) if is_polars_text else series)
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    values = series.fill_null(False if series.dtype == nw.Boolean else 0).to_numpy()
    is_object = values.dtype.kind == "O"
    column = label_objects(values, series.name) if is_object else label_numbers(values)
    return LabelColumn(np.where(missing, np.int32(-1), column.index), column.labels)


def read_number_columns(
    frame: Any, numeric: list[Any], n_threads: int, first_row: int = 0
) -> Array | Columns:
    """Return columns of a frame in the narrowest type that holds them all, without infinity.

    `first_row` is the number of the frame's first row in a larger table.
    """
    if frame.implementation.is_pandas() and len(numeric) == len(frame.columns):
        native_dtypes = set(frame.to_native().dtypes)
        if len(native_dtypes) == 1 and _is_plain(native_dtypes.pop()):
            block: Array = frame.to_numpy()  # one block of memory, no copy
            return block
    dtypes = [np.dtype(np.float64)] if not numeric else []
    for series in numeric:
        column = _read_column(series)
        name = partial(_series_name, series)
        reject_infinity(as_readable(column[:, None]), name, n_threads, first_row)
        dtypes.append(column.dtype)
    readers = [partial(_read_column, series) for series in numeric]
    return Columns(len(frame), readers, readable_dtype(np.result_type(*dtypes)))


def _series_name(series: Any, _: int) -> str:
    return repr(series.name)


def _is_plain(dtype: Any) -> bool:
    """Whether numbers are stored as NumPy stores them, without nulls."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _read_column(series: Any) -> Array:
    """Return a numeric column, nulls as NaN, in a type that does not depend on the library."""
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
