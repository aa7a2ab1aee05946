"""`sglb train`: train a model on a table and write it to a file."""

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

from sglb import Checkpoint, SGLBClassifier, SGLBRegressor, TimeLimit
from sglb.cli.reports import console, print_notes
from sglb.cli.roles import (
    check_numbers,
    column_notes,
    reject_dates,
    roles_of,
    roles_table,
    why_text,
)
from sglb.cli.wording import flag, naming_options
from sglb.losses import LOSSES
from sglb.tables import (
    STANDARD,
    ArrowTable,
    Dialect,
    TableError,
    TableFile,
    add_parts,
    check_output,
    column_values,
    select,
    sources_of,
    split_dates,
    text_columns,
    weight_values,
)

# More different whole numbers than this are a quantity, not classes.
MOST_CLASSES = 20
# Of more different labels than that, up to this share of text are errors in a column of numbers.
MOST_ERRORS = 0.1


@dataclass(frozen=True)
class TrainOptions:
    """What to train on: the table's file and the role of each column."""

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
        """Reject options that contradict each other, before any work."""
        if self.valid is not None and self.valid_fraction is not None:
            raise ValueError("--valid and --valid-fraction exclude each other")
        if self.table == self.valid == STANDARD:
            raise ValueError("the table and --valid cannot both be standard input")
        no_evaluation = self.valid is None and self.valid_fraction is None
        if "early_stopping_rounds" in parameters and no_evaluation:
            raise ValueError("--early-stopping-rounds needs --valid or --valid-fraction")
        if self.eval_metric and no_evaluation:
            raise ValueError("--eval-metric needs --valid or --valid-fraction")


@dataclass(frozen=True)
class RunOptions:
    """How long to train, and what to begin with."""

    checkpoint: Path | None = None
    resume: bool = False
    time_limit: float | None = None
    init_model: Path | None = None

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.resume and self.checkpoint is None:
            raise ValueError("--resume needs --checkpoint, the file to go on from")

    def arguments(self) -> dict[str, Any]:
        """Return what fit is to be called with."""
        callbacks: list[Any] = []
        if self.checkpoint is not None:
            callbacks.append(Checkpoint(self.checkpoint))
        if self.time_limit is not None:
            callbacks.append(TimeLimit(self.time_limit))
        resume_from = self.checkpoint if self.resume else None
        return {
            "callbacks": callbacks,
            "resume_from": resume_from,
            "init_model": self.init_model,
        }


@dataclass(frozen=True)
class TrainingTable:
    """Features, label and weight of rows."""

    X: ArrowTable
    y: NDArray[Any]
    weight: NDArray[np.float64] | None

    def take(self, rows: NDArray[np.intp]) -> "TrainingTable":
        """Return the selected rows."""
        weight = None if self.weight is None else self.weight[rows]
        return TrainingTable(self.X.take(rows), self.y[rows], weight)


def read_training(
    file: TableFile, options: TrainOptions
) -> tuple[TrainingTable, ArrowTable, dict[str, list[str]]]:
    """Read the training rows; return them, the whole table and the parts of its dates."""
    table = file.read_names(options.categorical, dates=options.dates)
    y, weight = _read_target(file, table, options)
    for name in options.drop:
        if name not in table.column_names:
            raise TableError(f"no column {name!r} to drop")
    not_features = {options.target, options.weight, *options.drop}
    features = table.select([name for name in table.column_names if name not in not_features])
    parts: dict[str, list[str]] = {}
    if options.dates:
        features, parts = split_dates(features)
    reject_dates(features)
    for name in options.categorical:
        if name not in features.column_names:
            raise TableError(f"no feature column {name!r} to treat as categorical")
    if not features.num_columns:
        raise TableError(f"{file.name}: no feature columns are left")
    return TrainingTable(features, y, weight), table, parts


def read_alike(file: TableFile, options: TrainOptions, like: ArrowTable) -> TrainingTable:
    """Read other rows with the columns, text and parts of dates of `like`."""
    names = like.column_names
    table = file.read(text_columns(like), dates=bool(sources_of(names, file.header)))
    y, weight = _read_target(file, table, options)
    features = select(add_parts(table, names), names, file.advice)
    check_numbers(
        file, features, [name for name in names if name not in _categorical(options, like)]
    )
    return TrainingTable(features, y, weight)


def _read_target(
    file: TableFile, table: ArrowTable, options: TrainOptions
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Return target and weight of a table."""
    y = column_values(table, options.target, "target", file.advice)
    weight = None if options.weight is None else weight_values(table, options.weight)
    if not y.size:
        raise TableError(f"{file.name}: has no rows")
    return y, weight


def guess_task(y: NDArray[Any], loss: str | None = None) -> tuple[str, str]:
    """Return the task of a loss or, without a loss, of a target, and why."""
    if loss in LOSSES:
        if LOSSES[loss].task == "ranking":
            raise ValueError(f"--loss {loss} is for rankings; use sglb.SGLBRanker in Python")
        task = "regression" if LOSSES[loss].task == "regression" else "classification"
        return task, f"--loss {loss}"
    if y.dtype.kind == "U":
        _reject_mixed_target(y)
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


def _reject_mixed_target(y: NDArray[Any]) -> None:
    """Reject a target of many different values that are nearly all numbers."""
    labels, first = np.unique(y, return_index=True)
    if labels.size <= MOST_CLASSES:
        return
    errors = [row for label, row in zip(labels, first, strict=True) if not _is_number(str(label))]
    if errors and len(errors) <= MOST_ERRORS * labels.size:
        row = min(errors)
        raise TableError(
            f"the target is numbers except for {len(errors)} of {labels.size:,} different values,"
            f" the first {str(y[row])!r} in row {row}; correct or leave out these rows, or state"
            " --task classification"
        )


def split(
    rows: TrainingTable, fraction: float, task: str, seed: int
) -> tuple[TrainingTable, TrainingTable]:
    """Split off a share of the rows for evaluation, the same of each class."""
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"--valid-fraction must lie between 0 and 1, got {fraction}")
    kept, held_out = train_test_split(
        np.arange(rows.y.size),
        test_size=fraction,
        random_state=seed,
        stratify=rows.y if task == "classification" else None,
    )
    return rows.take(np.sort(kept)), rows.take(np.sort(held_out))


def _categorical(options: TrainOptions, X: ArrowTable) -> list[str]:
    """Return the categorical columns: text, dictionaries and those that the options name."""
    categorical = {*options.categorical, *text_columns(X)}
    categorical |= {field.name for field in X.schema if pa.types.is_dictionary(field.type)}
    return [name for name in X.column_names if name in categorical]


def make_model(task: str, parameters: dict[str, Any]) -> Any:
    """Return the estimator of a task; reject parameters that it does not have."""
    estimator = SGLBClassifier if task == "classification" else SGLBRegressor
    for name in parameters:
        if name not in inspect.signature(estimator).parameters:
            raise ValueError(f"{flag(name)} has no effect in a {task} task; see --task")
    return estimator(**parameters)


def show_columns(
    file: TableFile,
    table: ArrowTable,
    options: TrainOptions,
    parts: dict[str, list[str]],
    quiet: bool,
) -> None:
    """Print how each column is used, and notes on columns that look odd."""
    roles = roles_of(
        table,
        target=options.target,
        weight=options.weight,
        drop=options.drop,
        categorical=options.categorical,
        dates=parts,
    )
    if not quiet:
        console(wrap=True).print(roles_table(roles))
    print_notes(file, column_notes(file, table, roles))


def train(
    options: TrainOptions,
    parameters: dict[str, Any],
    destination: Path,
    run: RunOptions,
    *,
    verbose: bool,
) -> None:
    """Train a model by the options and write it to `destination`."""
    if destination == STANDARD:
        raise ValueError("--model needs the name of a file: a model is not written to a terminal")
    check_output(destination, options.table, options.valid, run.checkpoint, run.init_model)
    options.check(parameters)
    run.check()
    out = console()
    file = TableFile(options.table, options.dialect)
    rows, table, parts = read_training(file, options)
    loss = parameters.get("loss")
    task, reason = (
        guess_task(rows.y, loss) if options.task == "auto" else (options.task, "as asked")
    )
    unusual = f" ({file.unusual_format})" if file.unusual_format else ""
    n_rows, n_features = rows.y.size, rows.X.num_columns
    features = "feature" if n_features == 1 else "features"
    out.print(f"{file.name}: {n_rows:,} rows, {n_features:,} {features}{unusual}")
    show_columns(file, table, options, parts, quiet=not verbose)
    out.print(f"task: {task} ({reason})")
    if task == "regression" and rows.y.dtype.kind == "U":
        why = why_text(table.column(options.target), file.dialect.decimal)
        words = f": it {why}" if why else ""
        raise ValueError(
            f"regression needs numbers, target column {options.target!r} holds text{words}"
        )
    held_out = None
    if options.valid is not None:
        valid_file = TableFile(options.valid, options.dialect)
        held_out = read_alike(valid_file, options, rows.X)
        print_notes(valid_file)
    elif options.valid_fraction is not None:
        rows, held_out = split(rows, options.valid_fraction, task, parameters["random_state"])
    if options.categorical:
        parameters = parameters | {"categorical_features": _categorical(options, rows.X)}
    started = time.perf_counter()
    with naming_options():
        model = make_model(task, parameters)
        fit(model, rows, held_out, options.eval_metric, run.arguments())
    seconds = time.perf_counter() - started
    model.save(destination)
    chains = f" in {len(model.traces_):,} chains" if len(model.traces_) > 1 else ""
    n_trees = sum(len(trace) for trace in model.traces_)
    out.print(f"trained {n_trees:,} trees{chains} in {seconds:.1f} s")
    if held_out is not None:
        metric = options.eval_metric[0] if options.eval_metric else "loss"
        out.print(
            f"best after {model.best_iteration_:,} trees: {metric} {model.best_score_:.6g}"
            f" on {held_out.y.size:,} evaluation rows"
        )
    size = destination.stat().st_size
    out.print(f"saved {destination} ({size / 1e3:,.0f} kB)")


def fit(
    model: Any,
    rows: TrainingTable,
    held_out: TrainingTable | None,
    metrics: Sequence[str],
    run: dict[str, Any],
) -> Any:
    """Fit an estimator to rows and evaluate it on held-out rows."""
    if held_out is None:
        return model.fit(rows.X, rows.y, sample_weight=rows.weight, **run)
    evaluation = (
        (held_out.X, held_out.y)
        if held_out.weight is None
        else (held_out.X, held_out.y, held_out.weight)
    )
    return model.fit(
        rows.X,
        rows.y,
        sample_weight=rows.weight,
        eval_set=[evaluation],
        eval_metric=list(metrics) or None,
        **run,
    )
