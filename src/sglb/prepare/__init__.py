"""Table and target in, rows of codes out: what a chain starts from."""

from sglb.prepare.encoded import EncodedRows, encode_rows
from sglb.prepare.rows import TrainingRows, warn_of_repeats

__all__ = ["EncodedRows", "TrainingRows", "encode_rows", "warn_of_repeats"]
