"""`sglb train`: a table and its target column -> a model file."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from sglb.cli.reports import console
from sglb.estimators import SGLBClassifier, SGLBRegressor
from sglb.files import check_destination
from sglb.tables import (
    Table,
    TableError,
    TableFile,
    column_values,
    read_table,
    refuse_input,
    select,
    text_columns,
    weight_values,
)

# More different whole numbers than this are taken for a quantity, not for classes.
MOST_CLASSES = 20


@dataclass(frozen=True)
class Order:
    """What to train on: the table's file and the part each of its columns plays."""

    table: Path
    target: str
    weight: str | None
    drop: tuple[str, ...]
    categorical: tuple[str, ...]
    task: str
    valid: Path | None
    valid_fraction: float | None


@dataclass(frozen=True)
class Rows:
    """Features, label and weight of some rows."""

    X: Table
    y: NDArray[Any]
    weight: NDArray[np.float64] | None

    def take(self, rows: NDArray[np.intp]) -> "Rows":
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.X.take(rows), self.y[rows], weight)


def read_rows(path: Path, order: Order, like: Table | None = None) -> Rows:
    """Read a table and set its target and weight apart; columns and text are those of `like`."""
    table = (
        TableFile(path).read_names(order.categorical)
        if like is None
        else read_table(path, text_columns(like))
    )
    features = None if like is None else like.column_names
    y = column_values(table, order.target, "target")
    weight = None if order.weight is None else weight_values(table, order.weight)
    if not y.size:
        raise TableError(f"{path}: has no rows")
    if features is None:
        for name in order.drop:
            if name not in table.column_names:
                raise TableError(f"no column {name!r} to drop")
        aside = {order.target, order.weight, *order.drop}
        features = [name for name in table.column_names if name not in aside]
        if not features:
            raise TableError(f"{path}: no columns are left to learn from")
    return Rows(select(table, features), y, weight)


def guess_task(y: NDArray[Any]) -> tuple[str, str]:
    """Return the task a target column looks like, and why."""
    if y.dtype.kind in "Ub":
        return "classification", "text labels" if y.dtype.kind == "U" else "true/false labels"
    values = np.unique(y)
    if y.dtype.kind in "iu" and values.size <= MOST_CLASSES:
        return "classification", f"{values.size} different whole numbers"
    if np.isin(values, (0.0, 1.0)).all():
        return "classification", "labels 0 and 1"
    return "regression", "many different numbers"


def split(rows: Rows, fraction: float, task: str, seed: int) -> tuple[Rows, Rows]:
    """Keep a share of the rows for evaluation, of each class alike."""
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"--valid-fraction must lie between 0 and 1, got {fraction}")
    kept, held = train_test_split(
        np.arange(rows.y.size),
        test_size=fraction,
        random_state=seed,
        stratify=rows.y if task == "classification" else None,
    )
    return rows.take(np.sort(kept)), rows.take(np.sort(held))


def _categorical(order: Order, X: Table) -> list[str]:
    """Return the columns that are categorical: text and what the order names."""
    for name in order.categorical:
        if name not in X.column_names:
            raise TableError(f"no feature column {name!r} to take as categorical")
    named = {*order.categorical, *text_columns(X)}
    named |= {field.name for field in X.schema if pa.types.is_dictionary(field.type)}
    return [name for name in X.column_names if name in named]


def train(
    order: Order,
    parameters: dict[str, Any],
    destination: Path,
    *,
    seed: int,
    n_jobs: int | None,
    verbose: bool,
) -> None:
    """Train a model as ordered and write it to `destination`."""
    check_destination(destination)
    refuse_input(destination, order.table, order.valid)
    if order.valid is not None and order.valid_fraction is not None:
        raise ValueError("--valid and --valid-fraction exclude one another")
    unwatched = order.valid is None and order.valid_fraction is None
    if "early_stopping_rounds" in parameters and unwatched:
        raise ValueError("--early-stopping-rounds needs --valid or --valid-fraction")
    out = console()
    rows = read_rows(order.table, order)
    task, reason = guess_task(rows.y) if order.task == "auto" else (order.task, "as asked")
    out.print(f"{order.table}: {rows.y.size:,} rows, {rows.X.num_columns:,} features")
    out.print(f"task: {task} ({reason})")
    if task == "regression" and rows.y.dtype.kind == "U":
        raise ValueError(f"target column {order.target!r} holds text: regression needs numbers")
    held = None
    if order.valid is not None:
        held = read_rows(order.valid, order, rows.X)
    elif order.valid_fraction is not None:
        rows, held = split(rows, order.valid_fraction, task, seed)
    if order.categorical:
        parameters = parameters | {"categorical_features": _categorical(order, rows.X)}
    kind = SGLBClassifier if task == "classification" else SGLBRegressor
    model = kind(random_state=seed, n_jobs=n_jobs, verbose=int(verbose), **parameters)
    started = time.perf_counter()
    evaluation = None
    if held is not None:
        evaluation = [(held.X, held.y) if held.weight is None else (held.X, held.y, held.weight)]
    model.fit(rows.X, rows.y, sample_weight=rows.weight, eval_set=evaluation)
    seconds = time.perf_counter() - started
    model.save(destination)
    out.print(f"trained {model.n_iter_:,} trees in {seconds:.1f} s")
    if held is not None:
        out.print(
            f"best after {model.best_iteration_:,} trees: loss {model.best_score_:.6g}"
            f" on {held.y.size:,} evaluation rows"
        )
    size = destination.stat().st_size
    out.print(f"saved {destination} ({size / 1e3:,.0f} kB)")
