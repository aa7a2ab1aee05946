"""The rows that `sglb train` reads: features, target and weights, of a table in memory."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from sglb.cli.reports import console, print_notes
from sglb.cli.roles import (
    check_numbers,
    column_notes,
    reject_dates,
    roles_of,
    roles_table,
    why_text,
)
from sglb.tables import (
    STANDARD,
    ArrowTable,
    Dialect,
    TableError,
    TableFile,
    add_parts,
    column_values,
    select,
    sources_of,
    split_dates,
    text_columns,
    weight_values,
)


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
    out_of_core: bool = False
    page_folder: Path | None = None

    def check(self, parameters: dict[str, Any]) -> None:
        """Reject options that contradict each other, before any work."""
        if self.valid is not None and self.valid_fraction is not None:
            raise ValueError("--valid and --valid-fraction exclude each other")
        if self.table == self.valid == STANDARD:
            raise ValueError("the table and --valid cannot both be standard input")
        if self.page_folder is not None and not self.out_of_core:
            raise ValueError("--page-folder goes with --out-of-core")
        if self.out_of_core and self.valid_fraction is not None:
            raise ValueError(
                "--valid-fraction takes rows out of a table in memory: with --out-of-core, write"
                " the evaluation rows to files of their own and state --valid"
            )
        if self.out_of_core and self.dates:
            raise ValueError(
                "--dates turns dates of a table in memory into numbers: with --out-of-core, write"
                " year, month, day, ... to columns of their own"
            )
        no_evaluation = self.valid is None and self.valid_fraction is None
        if "early_stopping_rounds" in parameters and no_evaluation:
            raise ValueError("--early-stopping-rounds needs --valid or --valid-fraction")
        if self.eval_metric and no_evaluation:
            raise ValueError("--eval-metric needs --valid or --valid-fraction")


@dataclass(frozen=True)
class TrainingRows:
    """Features, label and weight of rows."""

    X: Any  # an Arrow table, or a held one
    y: NDArray[Any]
    weight: NDArray[np.float64] | None

    def take(self, rows: NDArray[np.intp]) -> "TrainingRows":
        """Return the selected rows."""
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(self.X.take(rows), self.y[rows], weight)


def read_training(
    file: TableFile, options: TrainOptions
) -> tuple[TrainingRows, ArrowTable, dict[str, list[str]]]:
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
    return TrainingRows(features, y, weight), table, parts


def read_alike(file: TableFile, options: TrainOptions, like: ArrowTable) -> TrainingRows:
    """Read other rows with the columns, text and parts of dates of `like`."""
    names = like.column_names
    table = file.read(text_columns(like), dates=bool(sources_of(names, file.header)))
    y, weight = _read_target(file, table, options)
    features = select(add_parts(table, names), names, file.advice)
    check_numbers(
        file, features, [name for name in names if name not in _categorical(options, like)]
    )
    return TrainingRows(features, y, weight)


def _read_target(
    file: TableFile, table: ArrowTable, options: TrainOptions
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Return target and weight of a table."""
    y = column_values(table, options.target, "target", file.advice)
    weight = None if options.weight is None else weight_values(table, options.weight)
    if not y.size:
        raise TableError(f"{file.name}: has no rows")
    return y, weight


class TrainingSource(Protocol):
    """Where training rows come from; `rows` are those read."""

    rows: TrainingRows

    @property
    def title(self) -> str:
        """Name, size and format of the table."""
        ...

    def show_columns(self, quiet: bool) -> None:
        """Print how each column is used, and notes on columns that look odd."""
        ...

    def why_text(self) -> str:
        """Return why a target of numbers is text and the remedy, "" if that is not known."""
        ...

    def categorical(self) -> list[str]:
        """Return the categorical columns: text, categories and those that the options name."""
        ...

    def evaluation(self, task: str, seed: int) -> TrainingRows | None:
        """Return the rows to evaluate on, if there are any; they are no longer among `rows`."""
        ...


class TableInMemory:
    """A table file that is read whole."""

    def __init__(self, options: TrainOptions) -> None:
        self._options = options
        self._file = TableFile(options.table, options.dialect)
        self.rows, self._table, self._parts = read_training(self._file, options)

    @property
    def title(self) -> str:
        """Name, size and format of the table."""
        unusual = f" ({self._file.unusual_format})" if self._file.unusual_format else ""
        return f"{size_text(self._file.name, self.rows.y.size, self.rows.X.num_columns)}{unusual}"

    def show_columns(self, quiet: bool) -> None:
        """Print how each column is used, and notes on columns that look odd."""
        options = self._options
        roles = roles_of(
            self._table,
            target=options.target,
            weight=options.weight,
            drop=options.drop,
            categorical=options.categorical,
            dates=self._parts,
        )
        if not quiet:
            console(wrap=True).print(roles_table(roles))
        print_notes(self._file, column_notes(self._file, self._table, roles))

    def why_text(self) -> str:
        """Return why a target of numbers is text, and the remedy; "" if that is not known."""
        return why_text(self._table.column(self._options.target), self._file.dialect.decimal)

    def categorical(self) -> list[str]:
        """Return the categorical columns: text, dictionaries and those that the options name."""
        return _categorical(self._options, self.rows.X)

    def evaluation(self, task: str, seed: int) -> TrainingRows | None:
        """Return the rows to evaluate on, if there are any; they are no longer among `rows`."""
        options = self._options
        if options.valid is not None:
            file = TableFile(options.valid, options.dialect)
            held_out = read_alike(file, options, self.rows.X)
            print_notes(file)
            return held_out
        if options.valid_fraction is None:
            return None
        self.rows, held_out = split(self.rows, options.valid_fraction, task, seed)
        return held_out


def size_text(name: str, n_rows: int, n_features: int) -> str:
    """Return the name of a table and its size in words."""
    features = "feature" if n_features == 1 else "features"
    return f"{name}: {n_rows:,} rows, {n_features:,} {features}"


def split(
    rows: TrainingRows, fraction: float, task: str, seed: int
) -> tuple[TrainingRows, TrainingRows]:
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
