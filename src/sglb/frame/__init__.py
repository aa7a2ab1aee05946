"""Read any table as numbers and labels.

The first room on the data's way and the only one that knows what a dataframe is. A table becomes a
numeric array and, column by column, labels of the categorical columns. Arrays of numbers pass
through untouched: the kernels read float32, float64, integers and booleans of any stride. Anything
else is rejected with a message that names the first offending column or row. NaN in X is a missing
value.
"""

from sglb.frame.dataframes import as_frame, read_label_column, read_matrix, read_number_columns
from sglb.frame.features import Features
from sglb.frame.groups import read_groups, read_query_weight
from sglb.frame.reading import read_features
from sglb.frame.rows import Table
from sglb.frame.values import READY_DTYPES, as_readable, reject_infinity
from sglb.frame.vectors import is_number, read_labels, read_numbers, read_weight

__all__ = [
    "READY_DTYPES",
    "Features",
    "Table",
    "as_frame",
    "as_readable",
    "is_number",
    "read_features",
    "read_groups",
    "read_label_column",
    "read_labels",
    "read_matrix",
    "read_number_columns",
    "read_numbers",
    "read_query_weight",
    "read_weight",
    "reject_infinity",
]
