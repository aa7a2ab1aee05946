"""`sglb train`: a table and its target column -> a model file."""

import inspect
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from sglb.cli.reports import console, say_notes
from sglb.cli.roles import (
    check_numbers,
    column_notes,
    reject_dates,
    roles_of,
    roles_table,
    why_text,
)
from sglb.cli.wording import flag, speaking_of_options
from sglb.estimators import SGLBClassifier, SGLBRegressor
from sglb.files import check_destination
from sglb.losses import LOSSES
from sglb.tables import (
    STANDARD,
    Dialect,
    Table,
    TableError,
    TableFile,
    column_values,
    reject_input,
    select,
    text_columns,
    weight_values,
)
from sglb.tables.dates import add_parts, sources_of, split_dates

# More different whole numbers than this are taken for a quantity, not for classes.
MOST_CLASSES = 20
# Of so many different labels a smaller share of text is a slip in a column of numbers.
SPOILT = 0.1


@dataclass(frozen=True)
class Order:
    """What to train on: the table's file and the part each of its columns plays."""

    table: Path
    target: str
    weight: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    task: str = "auto"
    valid: Path | None = None
    valid_fraction: float | None = None
    eval_metric: tuple[str, ...] = ()
    dates: bool = False
    dialect: Dialect = field(default_factory=Dialect)

    def check(self, parameters: dict[str, Any]) -> None:
        """Reject what contradicts itself, before any work."""
        if self.valid is not None and self.valid_fraction is not None:
            raise ValueError("--valid and --valid-fraction exclude one another")
        if self.table == self.valid == STANDARD:
            raise ValueError("--valid cannot be standard input, too")
        unwatched = self.valid is None and self.valid_fraction is None
        if "early_stopping_rounds" in parameters and unwatched:
            raise ValueError("--early-stopping-rounds needs --valid or --valid-fraction")
        if self.eval_metric and unwatched:
            raise ValueError("--eval-metric needs --valid or --valid-fraction")


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


def read_training(file: TableFile, order: Order) -> tuple[Rows, Table, dict[str, list[str]]]:
    """Read the rows to learn from; return the table and the parts of its dates besides."""
    table = file.read_names(order.categorical, dates=order.dates)
    y, weight = _set_apart(file, table, order)
    for name in order.drop:
        if name not in table.column_names:
            raise TableError(f"no column {name!r} to drop")
    aside = {order.target, order.weight, *order.drop}
    features = table.select([name for name in table.column_names if name not in aside])
    parts: dict[str, list[str]] = {}
    if order.dates:
        features, parts = split_dates(features)
    reject_dates(features)
    for name in order.categorical:
        if name not in features.column_names:
            raise TableError(f"no feature column {name!r} to take as categorical")
    if not features.num_columns:
        raise TableError(f"{file.name}: no columns are left to learn from")
    return Rows(features, y, weight), table, parts


def read_alike(file: TableFile, order: Order, like: Table) -> Rows:
    """Read other rows of a table: columns, text and parts of dates are those of `like`."""
    names = like.column_names
    table = file.read(text_columns(like), dates=bool(sources_of(names, file.header)))
    y, weight = _set_apart(file, table, order)
    features = select(add_parts(table, names), names, file.advice)
    check_numbers(file, features, [name for name in names if name not in _categorical(order, like)])
    return Rows(features, y, weight)


def _set_apart(
    file: TableFile, table: Table, order: Order
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Return target and weight of a table."""
    y = column_values(table, order.target, "target", file.advice)
    weight = None if order.weight is None else weight_values(table, order.weight)
    if not y.size:
        raise TableError(f"{file.name}: has no rows")
    return y, weight


def guess_task(y: NDArray[Any], loss: str | None = None) -> tuple[str, str]:
    """Return the task that a loss is for or, without one, that a target looks like, and why."""
    if loss in LOSSES:
        task = "regression" if LOSSES[loss].task == "regression" else "classification"
        return task, f"--loss {loss}"
    if y.dtype.kind == "U":
        _reject_spoilt_numbers(y)
    if y.dtype.kind in "Ub":
        return "classification", "text labels" if y.dtype.kind == "U" else "true/false labels"
    values = np.unique(y)
    if y.dtype.kind in "iu" and values.size <= MOST_CLASSES:
        return "classification", f"{values.size} different whole numbers"
    if np.isin(values, (0.0, 1.0)).all():
        return "classification", "labels 0 and 1"
    return "regression", "many different numbers"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _reject_spoilt_numbers(y: NDArray[Any]) -> None:
    """Raise TableError for many different labels of which nearly all are numbers."""
    labels, first = np.unique(y, return_index=True)
    if labels.size <= MOST_CLASSES:
        return
    others = [row for label, row in zip(labels, first, strict=True) if not _is_number(str(label))]
    if others and len(others) <= SPOILT * labels.size:
        row = min(others)
        raise TableError(
            f"the target is numbers but for {len(others)} of {labels.size:,} different values, the"
            f" first {str(y[row])!r} in row {row}; correct or leave out these rows, or state"
            " --task classification"
        )


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
    named = {*order.categorical, *text_columns(X)}
    named |= {field.name for field in X.schema if pa.types.is_dictionary(field.type)}
    return [name for name in X.column_names if name in named]


def make_model(task: str, parameters: dict[str, Any]) -> Any:
    """Return the estimator of a task; reject parameters that it does not have."""
    kind = SGLBClassifier if task == "classification" else SGLBRegressor
    for name in parameters:
        if name not in inspect.signature(kind).parameters:
            raise ValueError(f"{flag(name)} has no effect in a {task} task; --task decides")
    return kind(**parameters)


def show_columns(
    file: TableFile, table: Table, order: Order, parts: dict[str, list[str]], quiet: bool
) -> None:
    """Print what is made of each column, and what seems odd about them."""
    roles = roles_of(
        table,
        target=order.target,
        weight=order.weight,
        drop=order.drop,
        categorical=order.categorical,
        dates=parts,
    )
    if not quiet:
        console(wrap=True).print(roles_table(roles))
    say_notes(file, column_notes(file, table, roles))


def train(order: Order, parameters: dict[str, Any], destination: Path, *, verbose: bool) -> None:
    """Train a model as ordered and write it to `destination`."""
    if destination == STANDARD:
        raise ValueError("--model needs the name of a file: a model is not written to a terminal")
    check_destination(destination)
    reject_input(destination, order.table, order.valid)
    order.check(parameters)
    out = console()
    file = TableFile(order.table, order.dialect)
    rows, table, parts = read_training(file, order)
    loss = parameters.get("loss")
    task, reason = guess_task(rows.y, loss) if order.task == "auto" else (order.task, "as asked")
    spelling = f" ({file.spelling})" if file.spelling else ""
    n_rows, n_features = rows.y.size, rows.X.num_columns
    features = "feature" if n_features == 1 else "features"
    out.print(f"{file.name}: {n_rows:,} rows, {n_features:,} {features}{spelling}")
    show_columns(file, table, order, parts, quiet=not verbose)
    out.print(f"task: {task} ({reason})")
    if task == "regression" and rows.y.dtype.kind == "U":
        why = why_text(table.column(order.target), file.dialect.decimal)
        words = f": it {why}" if why else ""
        raise ValueError(
            f"regression needs numbers, target column {order.target!r} holds text{words}"
        )
    held = None
    if order.valid is not None:
        other = TableFile(order.valid, order.dialect)
        held = read_alike(other, order, rows.X)
        say_notes(other)
    elif order.valid_fraction is not None:
        rows, held = split(rows, order.valid_fraction, task, parameters["random_state"])
    if order.categorical:
        parameters = parameters | {"categorical_features": _categorical(order, rows.X)}
    started = time.perf_counter()
    with speaking_of_options():
        model = fit(make_model(task, parameters), rows, held, order.eval_metric)
    seconds = time.perf_counter() - started
    model.save(destination)
    out.print(f"trained {model.n_iter_:,} trees in {seconds:.1f} s")
    if held is not None:
        metric = order.eval_metric[0] if order.eval_metric else "loss"
        out.print(
            f"best after {model.best_iteration_:,} trees: {metric} {model.best_score_:.6g}"
            f" on {held.y.size:,} evaluation rows"
        )
    size = destination.stat().st_size
    out.print(f"saved {destination} ({size / 1e3:,.0f} kB)")


def fit(model: Any, rows: Rows, held: Rows | None, metrics: Sequence[str]) -> Any:
    """Fit an estimator to rows and evaluate it on those that were held out."""
    if held is None:
        return model.fit(rows.X, rows.y, sample_weight=rows.weight)
    evaluation = (held.X, held.y) if held.weight is None else (held.X, held.y, held.weight)
    return model.fit(
        rows.X,
        rows.y,
        sample_weight=rows.weight,
        eval_set=[evaluation],
        eval_metric=list(metrics) or None,
    )
