"""`sglb train --out-of-core`: Parquet files that need not fit into memory."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb import ParquetTable
from sglb.cli.rows import TrainingRows, TrainOptions, size_text
from sglb.tables import TableError


class TableOnDisk:
    """A Parquet file, or a folder of them, of which target and weights alone are in memory."""

    def __init__(self, options: TrainOptions) -> None:
        self._options = options
        self.rows = self._read(options.table)
        for name in options.categorical:
            if name not in self.rows.X.columns:
                raise TableError(f"no feature column {name!r} to treat as categorical")
        if not self.rows.X.columns:
            raise TableError(f"{options.table}: no feature columns are left")

    def _read(self, path: Path) -> TrainingRows:
        options = self._options
        table = ParquetTable(path, folder=options.page_folder)
        for name in options.drop:
            if name not in table.columns:
                raise TableError(f"no column {name!r} to drop")
        roles = [options.target, *filter(None, [options.weight])]
        features = table.drop(*roles, *options.drop)
        weight = None if options.weight is None else table[options.weight]
        return TrainingRows(features, _labels(table, options.target), weight)

    @property
    def title(self) -> str:
        """Name and size of the table."""
        name, rows = str(self._options.table), self.rows
        return f"{size_text(name, rows.y.size, len(rows.X.columns))} (out of core)"

    def show_columns(self, quiet: bool) -> None:
        """Print nothing: how many levels a column has is not known before training."""

    def why_text(self) -> str:
        """Return nothing: a Parquet file states which columns are text."""
        return ""

    def categorical(self) -> list[str]:
        """Return the categorical columns: text, categories and those that the options name."""
        stated = {*self._options.categorical, *self.rows.X.text_columns}
        return [name for name in self.rows.X.columns if name in stated]

    def evaluation(self, task: str, seed: int) -> TrainingRows | None:
        """Return the rows of --valid, if it is stated."""
        if self._options.valid is None:
            return None
        held_out = self._read(self._options.valid)
        X = held_out.X[self.rows.X.columns]
        return TrainingRows(X, held_out.y, held_out.weight)


def _labels(table: Any, name: str) -> NDArray[Any]:
    """Return the target of all rows, text as an array of text."""
    if not len(table):
        raise TableError("the table has no rows")
    y: NDArray[Any] = table[name]
    if y.dtype.kind == "O":
        missing = np.equal(y, np.array(None))
    else:
        missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
    if missing.any():
        row = int(missing.argmax())
        raise TableError(f"target column {name!r} has a missing value in row {row}")
    return y.astype(str) if y.dtype.kind == "O" and isinstance(y[0], str) else y
