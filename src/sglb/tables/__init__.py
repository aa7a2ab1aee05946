"""Table files in and out: CSV and Parquet, by the file's ending, as Arrow tables.

Stands before `frame`, which turns any table into numbers: here a file becomes a table and its
columns become a target, weights and features.
"""

from sglb.tables.columns import column_values, select, weight_values
from sglb.tables.dialect import Dialect
from sglb.tables.errors import TableError
from sglb.tables.reading import Table, TableFile, read_table, text_columns
from sglb.tables.sources import STANDARD
from sglb.tables.writing import WRITERS, check_table_destination, reject_input, write_table

__all__ = [
    "STANDARD",
    "WRITERS",
    "Dialect",
    "Table",
    "TableError",
    "TableFile",
    "check_table_destination",
    "column_values",
    "read_table",
    "reject_input",
    "select",
    "text_columns",
    "weight_values",
    "write_table",
]
