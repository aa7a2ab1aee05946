"""Names for the types of pyarrow, which ships no annotations."""

from typing import Any

ArrowTable = Any  # pyarrow.Table
ArrowColumn = Any  # pyarrow.ChunkedArray
