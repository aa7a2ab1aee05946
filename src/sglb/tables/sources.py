"""The bytes of a table: a file, compressed or not, or standard input (`-`)."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sglb.tables.errors import TableError

STANDARD = Path("-")

# The first bytes of files that are not text, and what to do about them.
FOREIGN = {
    b"PAR1": "holds Parquet data: give it a name that ends in .parquet",
    b"PK\x03\x04": "is a ZIP or Excel file: save the sheet as CSV first",
    b"\xd0\xcf\x11\xe0": "is an Excel file: save the sheet as CSV first",
    b"\x1f\x8b": "is compressed with gzip: give it a name that ends in .csv.gz",
    b"ARROW1": "is an Arrow file: save the table as Parquet or CSV first",
}


@dataclass(frozen=True)
class Format:
    """The format that a file's extension stands for."""

    kind: str  # "text" or "parquet"
    separator: str = ","
    gzip: bool = False


FORMATS = {
    ".csv": Format("text"),
    ".tsv": Format("text", "\t"),
    ".csv.gz": Format("text", gzip=True),
    ".tsv.gz": Format("text", "\t", gzip=True),
    ".parquet": Format("parquet"),
}


def extension_of(path: Path, known: Sequence[str]) -> str:
    """Return which of the known extensions a file has."""
    for extension in known:
        if path.name.lower().endswith(extension):
            return extension
    raise TableError(
        f"{path}: cannot tell the format; the name must end in {' or '.join(known)}, or be - for"
        " standard input or output"
    )


class TableSource:
    """The bytes of a table, which can be opened any number of times."""

    def __init__(self, path: Path) -> None:
        self._bytes: bytes | None = None
        if path == STANDARD:
            self.name = "standard input"
            self._bytes = sys.stdin.buffer.read()
            self.format = _format_of(self._bytes)
            return
        self.name = str(path)
        if path.is_dir():
            raise TableError(
                f"{path}: is a folder, not a table; `sglb train --out-of-core` reads folders of"
                " Parquet files"
            )
        self.format = FORMATS[extension_of(path, list(FORMATS))]
        if not path.exists():
            raise TableError(f"{path}: no such file")
        self._path = path

    def open(self) -> Any:
        """Return a new stream of the bytes, decompressed."""
        raw = pa.OSFile(str(self._path)) if self._bytes is None else pa.BufferReader(self._bytes)
        return pa.CompressedInputStream(raw, "gzip") if self.format.gzip else raw

    def head(self, size: int) -> bytes:
        """Return the first bytes of a text file; reject files that are clearly not text."""
        with self.open() as stream:
            parts = [stream.read(size)]
            while parts[-1] and sum(map(len, parts)) < size:
                parts.append(stream.read(size))
        first = b"".join(parts)[:size]
        for start, advice in FOREIGN.items():
            if first.startswith(start):
                raise TableError(f"{self.name}: {advice}")
        return first


def _format_of(first: bytes) -> Format:
    """Return the format of a table without a file name, by its first bytes."""
    if first.startswith(b"PAR1"):
        return Format("parquet")
    return Format("text", gzip=first.startswith(b"\x1f\x8b"))
