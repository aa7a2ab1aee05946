"""Load data by name: the paper's synthetic problem and real tables. None is shipped.

Stands at the very beginning of the data's way. The synthetic problem is

    x ~ N(0, I_3),   y = 1{N(sin(x1 x2 x3), 1) > 0}:

both classes are equally likely given any one feature or any two, so a sum of stumps learns nothing
by a convex loss, while the 0-1 loss has several local optima of different depth.

A real table is `<name>.parquet` in the folder named by SGLB_DATA (or `../shared/data`), with the
label in the column `target`; otherwise it is fetched from OpenML if its number is known.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

TableTask = Literal["binary", "multiclass", "regression", "ranking"]

TARGET, WEIGHT, GROUP = "target", "weight", "group"
# Columns of a stored table that assign rows to splits; they are never features.
SPLITS = ("split", "catboost_split", "row_id")
RANKING = (*("lightgbm_lambdarank", "mq2008", "mslr_web_164q", "ohsumed", "yandex_relevance"),)


@dataclass(frozen=True)
class OpenMLTable:
    """The number of a table on OpenML, and the roles of columns that OpenML does not state."""

    number: int
    task: TableTask
    target: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()


OPENML = {
    "adult": OpenMLTable(1590, "binary"),
    "amazon": OpenMLTable(4135, "binary"),
    "click_40k": OpenMLTable(1220, "binary"),
    "covertype": OpenMLTable(1596, "multiclass"),
    "credit_default": OpenMLTable(42477, "binary"),
    "diamonds": OpenMLTable(42225, "regression"),
    "electricity": OpenMLTable(151, "binary"),
    "fremtpl2_freq": OpenMLTable(41214, "regression", "ClaimNb", "Exposure", ("IDpol",)),
    "higgs_98k": OpenMLTable(23512, "binary"),
    "internet": OpenMLTable(981, "binary"),
    "kdd09_appetency": OpenMLTable(1111, "binary"),
    "kdd09_churn": OpenMLTable(1112, "binary"),
    "kdd09_upselling": OpenMLTable(1114, "binary"),
    "kick": OpenMLTable(41162, "binary"),
}


@dataclass(frozen=True)
class Dataset:
    """A table ready for an estimator: features `X` (an Arrow table) and label `y`."""

    name: str
    X: Any
    y: NDArray[Any]
    task: TableTask
    weight: NDArray[np.float64] | None = None
    group: NDArray[Any] | None = None


def synthetic(
    n_rows: int, seed: int | Sequence[int] = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw the paper's synthetic problem: features (n_rows, 3) and labels 0 or 1."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n_rows, 3))
    noisy = np.sin(x.prod(axis=1)) + generator.standard_normal(n_rows)
    return x, (noisy > 0).astype(np.int64)


def data_folder() -> Path | None:
    """Return the folder with stored tables: SGLB_DATA, else ../shared/data if it exists."""
    stated = os.environ.get("SGLB_DATA")
    if stated:
        if not Path(stated).is_dir():
            raise FileNotFoundError(f"SGLB_DATA names a folder that does not exist: {stated}")
        return Path(stated)
    beside = Path("..", "shared", "data")
    return beside if beside.is_dir() else None


def stored_tables() -> list[str]:
    """Return the names of the tables in the data folder."""
    folder = data_folder()
    return sorted(path.stem for path in folder.glob("*.parquet")) if folder else []


def available_tables() -> list[str]:
    """Return the names that `load_table` accepts: stored tables and those on OpenML."""
    return sorted({*stored_tables(), *OPENML})


def load_table(name: str) -> Dataset:
    """Load a real table by name, from the data folder or else from OpenML."""
    folder = data_folder()
    if folder is not None and (folder / f"{name}.parquet").is_file():
        return _load_stored(name, folder / f"{name}.parquet")
    if name in OPENML:
        return _fetch(name, OPENML[name])
    where = "no data folder exists" if folder is None else f"no {name}.parquet in {folder}"
    raise ValueError(
        f"unknown table {name!r}: {where} (SGLB_DATA may name a folder of Parquet files with a"
        " column 'target'), and its number on OpenML is unknown; known:"
        f" {', '.join(available_tables())}"
    )


def _load_stored(name: str, path: Path) -> Dataset:
    from sglb.tables import column_values, read_table, weight_values

    table = read_table(path)
    y = column_values(table, TARGET, "target")
    columns = set(table.column_names)
    weight = weight_values(table, WEIGHT) if WEIGHT in columns else None
    group = column_values(table, GROUP, "group") if GROUP in columns else None
    not_features = columns & {TARGET, WEIGHT, GROUP, *SPLITS}
    return Dataset(
        name=name,
        X=table.drop_columns(sorted(not_features)),
        y=y,
        task="ranking" if name in RANKING else _task_of(y),
        weight=weight,
        group=group,
    )


def _task_of(y: NDArray[Any]) -> TableTask:
    """Return the task of a stored target: regression for floats, otherwise classification."""
    if y.dtype.kind == "f":
        return "regression"
    return "binary" if np.unique(y).size <= 2 else "multiclass"


def _fetch(name: str, source: OpenMLTable) -> Dataset:
    import pyarrow as pa
    from sklearn.datasets import fetch_openml

    from sglb.tables import column_values, weight_values

    try:
        bunch = fetch_openml(data_id=source.number, as_frame=True, parser="auto")
    except OSError as error:
        raise OSError(
            f"table {name!r} is not in the data folder, and OpenML (number {source.number}) cannot"
            f" be reached: {error}"
        ) from error
    table = pa.Table.from_pandas(bunch.frame, preserve_index=False)
    target = source.target or bunch.target.name
    y = column_values(table, target, "target")
    weight = None if source.weight is None else weight_values(table, source.weight)
    not_features = {target, *source.drop} | ({source.weight} if source.weight else set())
    return Dataset(
        name=name,
        X=table.drop_columns(sorted(not_features)),
        y=y.astype(np.float64) if source.task == "regression" else y,
        task=source.task,
        weight=weight,
    )
