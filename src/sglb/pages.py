"""Codes in pages on disk that are mapped into memory: as many rows as the disk has room for.

The file has no name in its folder, so that nobody reads it half-written, and its space is free
again when the codes are no longer used, however the program ends. Every page has a checksum from
when it was written, which is compared once when the file is mapped. The memory that a map takes is
the system's cache of the file: it gives way where other memory is needed.
"""

import mmap
import os
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb.bundles import Bundles, Groups, Pairs, meetings
from sglb.code_layout import CodeCounts, CodeLayout
from sglb.errors import PageError
from sglb.held import HeldCodes
from sglb.target import Target
from sglb.training_set import TrainingSet

Bytes = NDArray[np.uint8]

# Codes that are turned or counted at a time.
BLOCK_CODES = 1 << 26


class Page(NamedTuple):
    """Bytes of the file that were written together."""

    start: int
    size: int
    checksum: int


class PageFile:
    """A matrix of bytes on disk, written piece by piece and then mapped. More rows may follow."""

    def __init__(self, folder: Path, n_columns: int) -> None:
        self.folder, self.n_columns = folder, n_columns
        self.n_rows = 0
        self._unchecked: list[Page] = []
        with _disk_errors(self.folder), tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            self._file = os.dup(file.fileno())  # still open when the name is gone
        weakref.finalize(self, os.close, self._file)

    def reserve(self, n_rows: int) -> None:
        """Make room for more rows, lest the disk be full in the middle of them."""
        size = n_rows * self.n_columns
        if size:
            with _disk_errors(self.folder):
                os.posix_fallocate(self._file, self.n_rows * self.n_columns, size)
        self.n_rows += n_rows

    def write(self, row: int, column: int, values: Bytes) -> None:
        """Write a vector from a place in a row on, or several whole rows."""
        start, data = row * self.n_columns + column, np.ascontiguousarray(values)
        view, written = data.reshape(-1).data, 0
        with _disk_errors(self.folder):
            while written < len(view):
                written += os.pwrite(self._file, view[written:], start + written)
        self._unchecked.append(Page(start, len(view), zlib.crc32(view)))

    def map(self) -> Bytes:
        """Return the matrix, (n_rows, n_columns); raise PageError where a page is damaged."""
        shape = self.n_rows, self.n_columns
        size = self.n_rows * self.n_columns
        if not size:
            return np.empty(shape, dtype=np.uint8)
        with _disk_errors(self.folder):
            mapped = mmap.mmap(self._file, size, access=mmap.ACCESS_READ)
        for page in self._unchecked:
            if zlib.crc32(memoryview(mapped)[page.start : page.start + page.size]) != page.checksum:
                raise PageError(
                    f"codes written to {self.folder} are not what is read back from there, at byte"
                    f" {page.start:,}: the disk or the memory is faulty; use another folder"
                )
        self._unchecked.clear()
        return np.frombuffer(mapped, dtype=np.uint8).reshape(shape)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the system into those that say which folder they are about."""
    try:
        yield
    except OSError as error:
        raise PageError(
            f"codes cannot be kept in {folder}: {error.strerror or error}; state another folder, on"
            " a disk with a byte of room for each value of the table"
        ) from error


class PagedCodes(HeldCodes):
    """Codes by columns in a file of pages, (n_features, n_copies * n_rows)."""

    def __init__(self, file: PageFile) -> None:
        self._file = file
        self._columns = file.map()

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of features and of rows, copies included."""
        return self._file.n_rows, self._file.n_columns

    def sample(self, rows: NDArray[np.intp]) -> Bytes:
        """Return the codes of some rows."""
        return self._columns[:, rows]

    def gather(self) -> Bytes:
        """Return all codes, as a map of memory."""
        return self._columns

    def extended(self, n_copies: int, columns: Bytes) -> "PagedCodes":
        """Return the codes with further features; those there are stay where they are if they can.

        The codes themselves can then no longer be used.
        """
        file = self._file
        if n_copies > 1:
            file = PageFile(file.folder, n_copies * file.n_columns)
            file.reserve(len(self._columns))
            for feature, codes in enumerate(self._columns):
                file.write(feature, 0, np.tile(codes, n_copies))
        first = file.n_rows
        file.reserve(len(columns))
        for feature, codes in enumerate(columns, first):
            file.write(feature, 0, codes)
        return PagedCodes(file)

    def training_set(
        self,
        n_codes: NDArray[np.int32],
        is_level: NDArray[np.bool_],
        target: Target,
        n_copies: int,
        n_threads: int,
    ) -> TrainingSet:
        """Lay out the codes for a chain: codes by row are left out, where none are bundled."""
        counts = None
        for _, block in self._blocks():
            of_block = CodeCounts.of(block, n_codes)
            counts = of_block if counts is None else counts.plus(of_block)
        assert counts is not None  # an empty table is one empty block
        layout = CodeLayout.decide(
            n_codes,
            counts,
            lambda two, known: Bundles.find_in_parts(
                two, known.n_twos, known.n_rows, self._meetings
            ),
            is_level=is_level,
        )
        rows = np.empty((0, layout.stride), dtype=np.uint8)
        if layout.bundles is not None:
            file = PageFile(self._file.folder, layout.stride)
            file.reserve(self.shape[1])
            for begin, block in self._blocks():
                file.write(begin, 0, layout.rows(np.ascontiguousarray(block), n_threads))
            rows = file.map()
        return TrainingSet.laid_out(self._columns, rows, layout, target, n_copies=n_copies)

    def _meetings(self, groups: Groups, on: Bytes, *, first_rows: bool) -> Pairs:
        blocks = self._blocks()
        return np.concatenate(
            [meetings(block, groups, on, first_rows=first_rows) for _, block in blocks]
        )

    def _blocks(self) -> Iterator[tuple[int, Bytes]]:
        """Yield the number of a row and codes from there on."""
        n_features, n_rows = self.shape
        step = max(1, BLOCK_CODES // max(1, n_features))
        for begin in range(0, max(1, n_rows), step):
            yield begin, self._columns[:, begin : begin + step]
