"""Table and target in, recipe and rows of codes out: what a chain starts from."""

from sglb.prepare.encoded import EncodedRows, encode_rows
from sglb.prepare.preparation import Prepared, Request, prepare
from sglb.prepare.rows import LabelledRows, warn_of_repeats

__all__ = [
    "EncodedRows",
    "LabelledRows",
    "Prepared",
    "Request",
    "encode_rows",
    "prepare",
    "warn_of_repeats",
]
