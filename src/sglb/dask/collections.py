"""Dask's collections as partitions, and as arrays in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import dask.array
import dask.dataframe
import numpy as np


class DelayedTable(NamedTuple):
    """A table as delayed arrays or frames, in its order, and one without rows."""

    delayed: list[Any]
    empty: Any


def is_collection(value: Any) -> bool:
    """Whether a value is an array, a frame or a column of Dask."""
    return isinstance(value, dask.array.Array | dask.dataframe.DataFrame | dask.dataframe.Series)


def read_folder(path: str | Path) -> Any:
    """Return a folder of Parquet as a frame of Dask."""
    return dask.dataframe.read_parquet(str(path))


def partitions_of(X: Any) -> DelayedTable:
    """Return the partitions of a table; those of an array are cut between rows only."""
    if isinstance(X, dask.dataframe.DataFrame):
        return DelayedTable(list(X.to_delayed()), X._meta)
    if isinstance(X, dask.array.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two axes, not {X.ndim}")
        whole_rows = X.rechunk({1: -1})
        empty = np.empty((0, X.shape[1]), dtype=X.dtype)
        return DelayedTable(whole_rows.to_delayed().ravel().tolist(), empty)
    raise TypeError(
        f"X is a {type(X).__name__}, not an array or a dataframe of Dask; sglb.SGLBRegressor and"
        " the others train on tables in memory"
    )


def parts_of(collection: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return delayed parts of a collection, and what makes one array or frame of them."""
    if isinstance(collection, dask.array.Array):
        whole_rows = collection.rechunk(dict.fromkeys(range(1, collection.ndim), -1))
        return whole_rows.to_delayed().ravel().tolist(), np.concatenate
    join, details = collection.__dask_postcompute__()
    return list(collection.to_delayed()), lambda parts: join(parts, *details)


def in_memory(value: Any, bring: Callable[[Any], Any]) -> Any:
    """Return collections as arrays and frames in memory, also those in lists and tuples."""
    if isinstance(value, list | tuple):
        return type(value)(in_memory(part, bring) for part in value)
    return bring(value) if is_collection(value) else value
