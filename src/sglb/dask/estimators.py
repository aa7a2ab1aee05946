"""Estimators whose rows are on the workers of a cluster."""

from pathlib import Path
from typing import Any, Self

import dask
import dask.array
import numpy as np
from dask.distributed import Client, default_client

from sglb import SGLBClassifier as Classifier
from sglb import SGLBRanker as Ranker
from sglb import SGLBRegressor as Regressor
from sglb.cluster import ClusterTable
from sglb.dask.collections import in_memory, is_collection, partitions_of, read_folder
from sglb.dask.comm import DaskComm

# Seconds after which a worker that does not answer is taken to be lost.
TIMEOUT = 120.0
# Workers that may be lost before a fit gives up.
MAX_FAILURES = 3


class OnCluster:
    """`fit` and predictions on collections of Dask; all else is that of the ordinary estimator."""

    def fit(
        self,
        X: Any,
        y: Any,
        *arguments: Any,
        client: Client | None = None,
        timeout: float = TIMEOUT,
        max_failures: int = MAX_FAILURES,
        **options: Any,
    ) -> Self:
        """Train on X, an array or a dataframe of Dask, or a folder of Parquet files with y in it.

        Partitions stay on the workers that hold them, and are coded there. y, weights, groups and
        categorical columns come to the client, 4 to 8 bytes a row of each, and evaluation sets as
        they are. Of a folder, y and the other columns that belong to rows (`sample_weight`,
        `group`) are names of its columns; the rest is X. Arguments and options are those of the
        ordinary estimator. `client` is the cluster, the current one if none is given. A worker that
        does not answer for `timeout` seconds is given up, and its partitions are read again
        elsewhere; at most `max_failures` may be lost.
        """
        if isinstance(X, str | Path):
            X, y, arguments, options = _columns_of(read_folder(X), y, arguments, options)
        partitions = partitions_of(X)
        with DaskComm(
            default_client() if client is None else client,
            partitions.delayed,
            timeout=timeout,
            max_failures=max_failures,
        ) as comm:
            y, *others = (in_memory(each, comm.bring) for each in (y, *arguments))
            options = {name: in_memory(value, comm.bring) for name, value in options.items()}
            table = ClusterTable(comm, comm.numbers, partitions.empty)
            super().fit(table, y, *others, **options)  # type: ignore[misc]
        return self

    def predict(self, X: Any, *arguments: Any, **options: Any) -> Any:
        """Predict as the ordinary estimator; of a collection of Dask an array, when asked for.

        X may also be a folder of Parquet files with the columns of the model, and others.
        """
        return self._by_partition("predict", X, arguments, options)

    def predict_raw(self, X: Any, *arguments: Any, **options: Any) -> Any:
        """Return raw scores; of a collection of Dask an array, computed when it is asked for."""
        return self._by_partition("predict_raw", X, arguments, options)

    def score(self, X: Any, y: Any, *arguments: Any, **options: Any) -> Any:
        """Return the score of the ordinary estimator; X and y are brought to the client."""
        X, y, *others = (in_memory(each, compute) for each in (X, y, *arguments))
        options = {name: in_memory(value, compute) for name, value in options.items()}
        return super().score(X, y, *others, **options)  # type: ignore[misc]

    def _by_partition(
        self, method: str, X: Any, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Return what a method says of each partition, one below the other."""
        if isinstance(X, str | Path):
            X = self._features_of(read_folder(X))
        if not is_collection(X):
            return getattr(super(), method)(X, *arguments, **options)
        delayed, empty = partitions_of(X)
        without_rows = getattr(super(), method)(empty, *arguments, **options)
        if not isinstance(without_rows, np.ndarray):
            raise ValueError(
                f"{method} with these arguments gives several arrays, of a collection of Dask it"
                " gives one; call it on each partition, brought by .compute()"
            )
        ordinary = dask.delayed(_Bound(self._ordinary(), method, arguments, options), pure=False)
        chunks = X.chunks[0] if isinstance(X, dask.array.Array) else [np.nan] * len(delayed)
        blocks = [
            dask.array.from_delayed(
                ordinary(part),
                shape=(n_rows, *without_rows.shape[1:]),
                dtype=without_rows.dtype,
            )
            for part, n_rows in zip(delayed, chunks, strict=True)
        ]
        return dask.array.concatenate(blocks)

    def _features_of(self, frame: Any) -> Any:
        """Return the columns that the model was trained on."""
        names = list(getattr(self, "feature_names_in_", frame.columns))
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise ValueError(f"the folder has no columns {missing}, which the model was trained on")
        return frame[names]

    def _ordinary(self) -> Any:
        """Return the same model as an estimator that needs no cluster."""
        kind = next(base for base in type(self).__mro__ if base.__module__.startswith(HOME))
        return kind(**self.get_params(deep=False))._adopt(self._fitted())  # type: ignore[attr-defined]


HOME = "sglb.estimators"


def compute(collection: Any) -> Any:
    """Return a collection in memory."""
    return collection.compute()


class _Bound:
    """A method of an estimator, with its arguments."""

    def __init__(
        self, estimator: Any, method: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self.estimator, self.method = estimator, method
        self.arguments, self.options = arguments, options

    def __call__(self, X: Any) -> Any:
        return getattr(self.estimator, self.method)(X, *self.arguments, **self.options)


def _columns_of(
    frame: Any, y: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, Any, tuple[Any, ...], dict[str, Any]]:
    """Return a frame without the columns that are named, and these in place of their names."""
    names = [y, *(each for each in (*arguments, *options.values()) if isinstance(each, str))]
    names = [name for name in names if name in frame.columns]
    if y not in names:
        raise ValueError(
            f"y must be the name of a column of the folder, got {y!r}; it has"
            f" {', '.join(map(repr, frame.columns))}"
        )

    def column_of(value: Any) -> Any:
        return frame[value] if isinstance(value, str) and value in names else value

    named = {name: column_of(value) for name, value in options.items()}
    rest = [name for name in frame.columns if name not in names]
    return frame[rest], frame[y], tuple(map(column_of, arguments)), named


class SGLBRegressor(OnCluster, Regressor):
    """`sglb.SGLBRegressor` on a cluster."""


class SGLBClassifier(OnCluster, Classifier):
    """`sglb.SGLBClassifier` on a cluster."""

    def predict_proba(self, X: Any, *arguments: Any, **options: Any) -> Any:
        """Return probabilities; of a collection of Dask an array, when it is asked for."""
        return self._by_partition("predict_proba", X, arguments, options)

    def decision_function(self, X: Any, *arguments: Any, **options: Any) -> Any:
        """Return raw scores as scikit-learn has them; of a collection of Dask an array."""
        return self._by_partition("decision_function", X, arguments, options)


class SGLBRanker(OnCluster, Ranker):
    """`sglb.SGLBRanker` on a cluster; all rows of a query must be in one partition."""
