"""Read and write table files, CSV or Parquet by their extension, as Arrow tables.

Stands before `frame`, which turns any table into numbers: here a file becomes a table, and its
columns become target, weights and features.
"""

from sglb.tables.arrow import ArrowColumn, ArrowTable
from sglb.tables.columns import column_values, select, weight_values
from sglb.tables.dates import add_parts, is_date, looks_like_dates, sources_of, split_dates
from sglb.tables.dialect import Dialect
from sglb.tables.errors import TableError
from sglb.tables.numbers import find_non_number
from sglb.tables.reading import TableFile, read_table, text_columns
from sglb.tables.sources import STANDARD
from sglb.tables.writing import WRITERS, check_output, check_table_output, write_table

__all__ = [
    "STANDARD",
    "WRITERS",
    "ArrowColumn",
    "ArrowTable",
    "Dialect",
    "TableError",
    "TableFile",
    "add_parts",
    "check_output",
    "check_table_output",
    "column_values",
    "find_non_number",
    "is_date",
    "looks_like_dates",
    "read_table",
    "select",
    "sources_of",
    "split_dates",
    "text_columns",
    "weight_values",
    "write_table",
]
