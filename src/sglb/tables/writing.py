"""Write an Arrow table to a file, by its extension, or as CSV to standard output (`-`)."""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

from sglb.files import check_destination, whole_file
from sglb.tables.arrow import ArrowTable
from sglb.tables.errors import TableError
from sglb.tables.sources import STANDARD, extension_of


def _write_tsv(table: ArrowTable, path: Path) -> None:
    pyarrow.csv.write_csv(table, path, write_options=pyarrow.csv.WriteOptions(delimiter="\t"))


WRITERS: dict[str, Callable[[ArrowTable, Path], None]] = {
    ".csv": pyarrow.csv.write_csv,
    ".tsv": _write_tsv,
    ".parquet": pyarrow.parquet.write_table,
}


def check_table_output(path: Path, *inputs: Path | None) -> None:
    """Reject a table file that cannot be written, before the work that would be lost."""
    if path != STANDARD:
        extension_of(path, list(WRITERS))
        check_output(path, *inputs)


def check_output(path: Path, *inputs: Path | None) -> None:
    """Reject a file that cannot be written or that is an input, before work that would be lost."""
    check_destination(path)
    for source in inputs:
        if source is not None and path.resolve() == source.resolve():
            raise TableError(f"{path}: is an input and would be overwritten; choose another name")


def write_table(table: ArrowTable, path: Path) -> None:
    """Write a table in the format of the file's extension."""
    if path == STANDARD:
        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    writer = WRITERS[extension_of(path, list(WRITERS))]
    with whole_file(path) as draft:
        writer(table, draft)
