"""A Parquet table for `fit`, larger than memory if need be."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sglb.bins import Bins
from sglb.frame import read_label_column, read_matrix
from sglb.held import HeldNumbers, HeldTable
from sglb.labels import LabelColumn
from sglb.pages import PagedCodes, PageFile
from sglb.parquet.files import ParquetFiles

Mask = NDArray[np.bool_]


class ParquetTable(HeldTable):
    """Parquet files as the features of a fit, which reads them without holding them in memory.

        table = ParquetTable("folder/")
        model.fit(table.drop("y"), table["y"], eval_set=(valid.drop("y"), valid["y"]))

    `path` is a file, a folder, whose files are taken in the order of their names (part.2 before
    part.10), or a list of files. `columns` are the features, if not stated all but an
    index of pandas. Codes of one byte a value are kept in `folder` during the fit, by default that
    of temporary files; it should be on a disk. Files must not change until then, which is checked.
    """

    def __init__(
        self,
        path: str | Path | Sequence[str | Path],
        columns: Sequence[str] | None = None,
        *,
        folder: str | Path | None = None,
    ) -> None:
        self._files = ParquetFiles(path)
        self._folder = Path(tempfile.gettempdir() if folder is None else folder)
        if columns is None:
            columns = [name for name in self._files.schema.names if name not in self._files.index]
        self.columns = self._known(columns)

    def _known(self, names: Sequence[str]) -> list[str]:
        known = self._files.schema.names
        for name in names:
            if name not in known:
                raise ValueError(f"there is no column {name!r}; the columns are {known[:20]}")
        return list(names)

    def _with(self, columns: list[str]) -> "ParquetTable":
        table = ParquetTable.__new__(ParquetTable)
        table._files, table._folder, table.columns = self._files, self._folder, columns
        return table

    @property
    def text_columns(self) -> list[str]:
        """The columns of text or of categories, which are categorical by their types."""
        kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
        types = {name: self._files.schema.field(name).type for name in self.columns}
        return [name for name, dtype in types.items() if any(is_kind(dtype) for is_kind in kinds)]

    def drop(self, *names: str) -> "ParquetTable":
        """Return the table without some columns."""
        left_out = self._known(names)
        return self._with([name for name in self.columns if name not in left_out])

    def __getitem__(self, names: str | list[str]) -> Any:
        """Return a column of all rows as an array, or the table with a list of columns."""
        if not isinstance(names, str):
            return self._with(self._known(names))
        self._known([names])
        column = self._files.column(names)
        if pa.types.is_dictionary(column.type):
            whole = column.unify_dictionaries().combine_chunks()
            labels = np.array([*whole.dictionary.to_pylist(), None], dtype=object)
            return labels[whole.indices.fill_null(len(labels) - 1).to_numpy()]
        return column.to_numpy()

    def __len__(self) -> int:
        n_rows: int = self._files.n_rows
        return n_rows

    @property
    def empty(self) -> Any:
        """An Arrow table without rows."""
        schema = self._files.schema
        return pa.schema([schema.field(name) for name in self.columns]).empty_table()

    def held_labels(self, column: int) -> LabelColumn:
        """Return the labels of a categorical column."""
        return read_label_column(self._files.column(self.columns[column]))

    def held_numbers(self, columns: list[int]) -> "ParquetNumbers":
        """Return numeric columns."""
        names = [self.columns[column] for column in columns]
        return ParquetNumbers(self._files, names, self._folder)


class ParquetNumbers(HeldNumbers):
    """Numeric columns of Parquet files, or the rows of them that a mask keeps."""

    def __init__(
        self, files: ParquetFiles, names: list[str], folder: Path, kept: Mask | None = None
    ) -> None:
        self._files, self._names, self._folder, self._kept = files, names, folder, kept
        self._n_rows = files.n_rows if kept is None else int(np.count_nonzero(kept))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._n_rows, len(self._names)

    def __len__(self) -> int:
        return self._n_rows

    def take(self, kept: Mask) -> "ParquetNumbers":
        """Return the rows of a mask."""
        if self._kept is not None:
            both = self._kept.copy()
            both[self._kept] = kept
            kept = both
        return ParquetNumbers(self._files, self._names, self._folder, kept)

    def sample(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the values of rows, whose numbers never fall."""
        parts = [read_matrix(self._files.schema.empty_table().select(self._names), 0, 1)]
        for numbers, first, table in self._tables():
            begin, end = np.searchsorted(rows, [numbers.start, numbers.stop])
            if begin < end:
                chosen = table.take(pa.array(rows[begin:end] - numbers.start))
                parts.append(read_matrix(chosen, first, 1))
        return np.concatenate(parts)

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield the rows, some at a time."""
        for numbers, first, table in self._tables():
            yield numbers, read_matrix(table, first, 1)

    def encode(self, bins: Bins, n_threads: int) -> PagedCodes:
        """Write the codes of all rows into pages."""
        file = PageFile(self._folder, self._n_rows)
        file.reserve(len(self._names))
        for numbers, first, table in self._tables() if self._names else ():
            codes = bins.encode(read_matrix(table, first, n_threads), n_threads)
            for feature, row in enumerate(codes):
                file.write(feature, numbers.start, row)
        return PagedCodes(file)

    def _tables(self) -> Iterator[tuple[slice, int, Any]]:
        """Yield the numbers of rows, the number of the first in the files, and their values."""
        done = 0
        for first, table in self._files.blocks(self._names):
            if self._kept is not None:
                table = table.filter(pa.array(self._kept[first : first + len(table)]))
            yield slice(done, done + len(table)), first, table
            done += len(table)
