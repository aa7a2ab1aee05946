"""Parquet files as one table, read some rows at a time; that a file changes is an error."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sglb.errors import ChangedTable

# Values looked at together: 32 MB of float32, once more as a matrix. Arrow holds a row group.
BLOCK_VALUES = 1 << 23

State = tuple[int, int, int]


class ParquetFiles:
    """Files with the same columns, one after the other."""

    def __init__(self, path: str | Path | Sequence[str | Path]) -> None:
        self.paths = list_files(path)
        self._states: list[State] = []
        self._footers: list[Any] = []
        for number, each in enumerate(self.paths):
            self._states.append(_state(each))
            with _open(each) as file:
                schema = file.schema_arrow.remove_metadata()
                if not number:
                    self.schema = schema
                    self.index = _index_of(file.schema_arrow)
                self._check_schema(each, schema)
                self._footers.append(file.metadata)
        repeated = {name for name in self.schema.names if self.schema.names.count(name) > 1}
        if repeated:
            raise ValueError(
                f"column names must be unique; these occur more than once: {sorted(repeated)}"
            )
        self.n_rows = sum(footer.num_rows for footer in self._footers)

    def _check_schema(self, path: Path, schema: Any) -> None:
        first = self.schema
        if schema.names != first.names:
            odd = sorted(set(schema.names) ^ set(first.names)) or "their order"
            raise ValueError(f"{path} has other columns than {self.paths[0]}: {odd}")
        for name in schema.names:
            if schema.field(name).type != first.field(name).type:
                raise ValueError(
                    f"column {name!r} is {schema.field(name).type} in {path} and"
                    f" {first.field(name).type} in {self.paths[0]}; write both with one type"
                )

    def blocks(self, names: list[str]) -> Iterator[tuple[int, Any]]:
        """Yield the number of a row and an Arrow table of these columns from there on."""
        size = max(1, BLOCK_VALUES // max(1, len(names)))
        first = 0
        for number, path in enumerate(self.paths):
            with self._unchanged(number) as file:
                for group in range(file.num_row_groups):  # of several at a time Arrow keeps all
                    for batch in file.iter_batches(size, row_groups=[group], columns=names):
                        yield first, pa.Table.from_batches([batch]).select(names)
                        first += len(batch)
            self._check_state(number, path)

    def column(self, name: str) -> Any:
        """Return a whole column; text comes as categories, which take less memory."""
        dtype = self.schema.field(name).type
        is_text = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
        chunks = []
        for number, path in enumerate(self.paths):
            with self._unchanged(number, [name] if is_text else None) as file:
                chunks += file.read(columns=[name]).column(0).chunks
            self._check_state(number, path)
        return pa.chunked_array(chunks) if chunks else pa.chunked_array([], dtype)

    def _unchanged(self, number: int, categories: list[str] | None = None) -> Any:
        """Open a file whose footer, statistics of its row groups included, is what it was."""
        path = self.paths[number]
        self._check_state(number, path)
        file = _open(path, categories)
        if not file.metadata.equals(self._footers[number]):
            file.close()
            raise _changed(path)
        return file

    def _check_state(self, number: int, path: Path) -> None:
        if _state(path) != self._states[number]:
            raise _changed(path)


def list_files(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files of a folder by name, a file or several as stated.

    Numbers in names count as numbers, as Dask has them: part.2 comes before part.10.
    """
    if not isinstance(path, str | Path):
        files = [Path(each) for each in path]
        if not files:
            raise ValueError("ParquetTable needs a file or a folder; the list is empty")
        return files
    path = Path(path)
    if not path.is_dir():
        return [path]
    visible = (file for file in path.glob("*.parquet") if not file.name.startswith(("_", ".")))
    files = sorted(visible, key=_natural)
    if not files:
        raise ValueError(
            f"{path}: holds no file whose name ends in .parquet; folders in it are not looked"
            " into: list their files"
        )
    return files


def _natural(path: Path) -> list[tuple[int, str]]:
    """Return what paths are ordered by: text, and the numbers in it."""
    parts = re.split(r"([0-9]+)", path.name)
    return [(int(part), part) if part.isdecimal() else (-1, part) for part in parts]


def _index_of(schema: Any) -> list[str]:
    """Return the columns that pandas has written as the index of a frame."""
    described: dict[str, Any] = schema.pandas_metadata or {}
    return [name for name in described.get("index_columns", ()) if isinstance(name, str)]


def _open(path: Path, categories: list[str] | None = None) -> Any:
    """Open a file; what is wrong with it is an error that names it."""
    try:
        return pq.ParquetFile(path, read_dictionary=categories)
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except pa.ArrowException as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error})") from error


def _state(path: Path) -> State:
    """Return what changes when a file is written."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _changed(path: Path) -> ChangedTable:
    return ChangedTable(
        f"{path} has changed since the table was opened: thresholds and codes would be of different"
        " rows; open the table again when nobody writes to it"
    )
