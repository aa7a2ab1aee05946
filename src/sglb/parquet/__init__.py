"""Parquet tables that need not fit into memory.

    table = sglb.ParquetTable("folder/")
    model = sglb.SGLBRegressor().fit(table.drop("y"), table["y"])

The files are read twice: the rows on which thresholds are chosen, then the codes of all rows, which
go into pages on disk.
"""

try:
    import pyarrow  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError('ParquetTable needs pyarrow: pip install "sglb[parquet]"') from error

from sglb.parquet.table import ParquetTable

__all__ = ["ParquetTable"]
