"""An Arrow table as a file, in the format of its ending, or as CSV on standard output (`-`)."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet

from sglb.files import check_destination, whole_file
from sglb.tables.errors import TableError
from sglb.tables.sources import STANDARD, ending_of

Table = Any  # a pyarrow.Table; pyarrow ships no types


def _write_tsv(table: Table, path: Path) -> None:
    pyarrow.csv.write_csv(table, path, write_options=pyarrow.csv.WriteOptions(delimiter="\t"))


WRITERS: dict[str, Callable[[Table, Path], None]] = {
    ".csv": pyarrow.csv.write_csv,
    ".tsv": _write_tsv,
    ".parquet": pyarrow.parquet.write_table,
}


def check_table_destination(path: Path) -> None:
    """Reject a table file that could not be written, before the work that would be lost."""
    if path != STANDARD:
        ending_of(path, list(WRITERS))
        check_destination(path)


def reject_input(path: Path, *inputs: Path | None) -> None:
    """Reject a file to write that is read."""
    for one in inputs:
        if one is not None and path != STANDARD and path.resolve() == one.resolve():
            raise TableError(f"{path}: is read and would be written over; choose another name")


def write_table(table: Table, path: Path) -> None:
    """Write a table in the format of the file's ending."""
    if path == STANDARD:
        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    writer = WRITERS[ending_of(path, list(WRITERS))]
    with whole_file(path) as draft:
        writer(table, draft)
