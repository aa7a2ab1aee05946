"""Read the groups of rows, the queries of a ranking: ids of rows, or sizes of queries."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.frame.arrays import keep_objects
from sglb.frame.vectors import read_weight

Array = NDArray[Any]
Integers = NDArray[np.int64]

ADVICE = "pass an id for each row, or the sizes of the queries in the order of the rows"


def read_groups(group: Any, n_rows: int, name: str = "group") -> Integers:
    """Return the number of the group of each row.

    `group` holds an id for each row, of any type and in any order. Values of another number than
    rows are the sizes of groups that lie one after the other. Groups are numbered by their ids in
    rising order, so that no number depends on the order of the rows; sizes by their place.
    """
    values = _as_vector(group, name)
    if len(values) != n_rows:
        return _from_sizes(values, n_rows, name)
    missing = _missing(values)
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(
            f"{name} must have an id in every row; row {row} is {values[row]}. Give a row"
            " that belongs to no other a separate id, or leave it out"
        )
    try:
        _, numbers = np.unique(values, return_inverse=True)
    except TypeError:  # ids of types that cannot be compared
        return _by_appearance(values)
    return numbers.reshape(-1).astype(np.int64)


def read_query_weight(weight: Any, groups: Integers, name: str = "sample_weight") -> Any:
    """Return weights of rows: as stated, or those of queries given to each of their rows.

    Weights of queries are as many as there are queries, in the order in which these first appear.
    """
    if weight is None or np.ndim(weight) != 1 or len(weight) == len(groups):
        return weight
    numbers, first, query = np.unique(groups, return_index=True, return_inverse=True)
    if len(weight) != len(numbers):
        raise ValueError(
            f"{name} has {len(weight)} values; pass one for each of {len(groups)} rows or of"
            f" {len(numbers)} queries"
        )
    appearance = np.empty(len(numbers), dtype=np.intp)
    appearance[np.argsort(first)] = np.arange(len(numbers))
    of_queries = read_weight(weight, numbers, name)
    return of_queries[appearance[query.reshape(-1)]]


def _as_vector(group: Any, name: str) -> Array:
    if group is None:
        raise ValueError(
            f"a ranking needs to know which rows are ranked together, and {name} is None; {ADVICE}."
            " A table that is a single ranking has the same id in all rows. scikit-learn's tools"
            " pass ids that were requested: set_fit_request(group='groups'), set_score_request"
        )
    values = _tuples(group) if _holds_tuples(group) else np.asarray(keep_objects(group, 1))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must be a vector, not an array of shape {values.shape}; {ADVICE}")
    return values


def _holds_tuples(group: Any) -> bool:
    """Whether a list has tuples as ids, such as (user, day), of which NumPy would make a table."""
    return isinstance(group, list | tuple) and any(isinstance(value, tuple) for value in group)


def _tuples(group: Any) -> Array:
    values = np.empty(len(group), dtype=object)
    values[:] = group
    return values


def _missing(values: Array) -> NDArray[np.bool_]:
    """Return which ids are no ids: None, NaN, NaT and infinity."""
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "f":
        return ~np.isfinite(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([_is_missing(value) for value in values.tolist()], dtype=bool)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas may be missing
        return True
    return isinstance(value, float | np.floating) and not np.isfinite(value)


def _from_sizes(sizes: Array, n_rows: int, name: str) -> Integers:
    whole = sizes.dtype.kind in "iuf" and bool(np.isfinite(sizes).all())  # text files hold floats
    whole = whole and bool(((sizes >= 0) & (sizes == np.rint(sizes))).all())
    total = int(sizes.sum()) if whole else 0
    if not whole or total != n_rows:
        sum_text = f", and their sum is {total}" if whole else ""
        raise ValueError(f"{name} has {len(sizes)} values{sum_text}; X has {n_rows} rows: {ADVICE}")
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes.astype(np.int64))


def _by_appearance(values: Array) -> Integers:
    """Return the number of each id, in the order in which ids first appear."""
    numbers: dict[tuple[type, Any], int] = {}
    keys = ((type(value), value) for value in values.tolist())
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
