"""Table files in and out: CSV and Parquet, by the file's ending, as Arrow tables.

Stands before `frame`, which turns any table into numbers: here a file becomes a table and its
columns become a target, weights and features.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sglb.files import check_destination, whole_file

Table = Any  # a pyarrow.Table; pyarrow ships no types


class TableError(ValueError):
    """A table file, or a column of it, is not what was asked for."""


def _read_csv(path: Path, text: Sequence[str], delimiter: str = ",") -> Table:
    return pa.csv.read_csv(
        path,
        parse_options=pa.csv.ParseOptions(delimiter=delimiter),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()),
            # An empty field is missing in a column of text, too, as it is in other files.
            strings_can_be_null=True,
        ),
    )


def _read_tsv(path: Path, text: Sequence[str]) -> Table:
    return _read_csv(path, text, "\t")


def _read_parquet(path: Path, text: Sequence[str]) -> Table:
    return pa.parquet.read_table(path)


def _write_tsv(table: Table, path: Path) -> None:
    pa.csv.write_csv(table, path, write_options=pa.csv.WriteOptions(delimiter="\t"))


READERS: dict[str, Callable[[Path, Sequence[str]], Table]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".csv.gz": _read_csv,
    ".parquet": _read_parquet,
}
WRITERS: dict[str, Callable[[Table, Path], None]] = {
    ".csv": pa.csv.write_csv,
    ".tsv": _write_tsv,
    ".parquet": pa.parquet.write_table,
}


def _ending(path: Path, known: Sequence[str]) -> str:
    """Return the ending of a file's name that says its format."""
    for ending in known:
        if path.name.lower().endswith(ending):
            return ending
    raise TableError(f"{path}: cannot tell the format; the name must end in {' or '.join(known)}")


def read_table(path: Path, text: Sequence[str] = ()) -> Table:
    """Read a table; columns without any value become floats, all missing.

    The columns `text` of a CSV file are text even if all of it looks like numbers.
    """
    ending = _ending(path, list(READERS))
    if not path.exists():
        raise TableError(f"{path}: no such file")
    if path.is_dir():
        raise TableError(f"{path}: is a folder, not a table")
    try:
        table = READERS[ending](path, text)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path}: cannot be read as {ending[1:]}: {_first_line(error)}") from error
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise TableError(f"{path}: column {twice[0]!r} is there more than once")
    for place, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.float64()))
    return table


def _first_line(error: BaseException) -> str:
    """Return an error's message as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def check_table_destination(path: Path) -> None:
    """Refuse a table file that could not be written, before the work that would be lost."""
    _ending(path, list(WRITERS))
    check_destination(path)


def refuse_input(path: Path, *inputs: Path | None) -> None:
    """Refuse to write over a file that is read."""
    for one in inputs:
        if one is not None and path.resolve() == one.resolve():
            raise TableError(f"{path}: is read and would be written over; choose another name")


def write_table(table: Table, path: Path) -> None:
    """Write a table in the format of the file's ending."""
    writer = WRITERS[_ending(path, list(WRITERS))]
    with whole_file(path) as draft:
        writer(table, draft)


def column_values(table: Table, name: str, role: str) -> NDArray[Any]:
    """Return a column without missing values as an array of text, booleans or numbers."""
    if name not in table.column_names:
        known = ", ".join(repr(column) for column in table.column_names[:20])
        more = ", ..." if table.num_columns > 20 else ""
        raise TableError(f"no {role} column {name!r}; the table has {known}{more}")
    column = table.column(name)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if column.null_count:
        row = pc.index(pc.is_null(column), pa.scalar(True)).as_py()
        raise TableError(f"{role} column {name!r} has a missing value in row {row}")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.asarray(column.to_pylist(), dtype=np.str_)
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TableError(f"{role} column {name!r} has the type {kind}: text or numbers are needed")
    return np.asarray(column.to_numpy())


def weight_values(table: Table, name: str) -> NDArray[np.float64]:
    """Return a column of weights."""
    values = column_values(table, name, "weight")
    if values.dtype.kind == "U":
        raise TableError(f"weight column {name!r} holds text, not numbers")
    return values.astype(np.float64)


def read_names(path: Path, names: Sequence[str]) -> Table:
    """Read a table some of whose numbers are names: where one has a leading zero all are text."""
    table = read_table(path)
    numbers = [name for name in names if name in table.column_names]
    numbers = [name for name in numbers if name not in text_columns(table)]
    as_text = read_table(path, numbers) if numbers else table
    for name in numbers:
        cells = as_text.column(name)
        if not pa.types.is_string(cells.type):
            continue  # not a CSV file
        if pc.any(pc.match_substring_regex(cells, "^[+-]?0[0-9]")).as_py():
            table = table.set_column(table.column_names.index(name), name, cells)
    return table


def text_columns(table: Table) -> list[str]:
    """Return the columns that hold text."""
    kinds = (pa.types.is_string, pa.types.is_large_string)
    return [field.name for field in table.schema if any(is_kind(field.type) for is_kind in kinds)]


def select(table: Table, names: Sequence[str]) -> Table:
    """Return the named columns in this order."""
    for name in names:
        if name not in table.column_names:
            raise TableError(f"the table has no column {name!r}, which the model needs")
    return table.select(list(names))
