"""Table and target in, recipe and rows of codes out: what a chain starts from."""

from sglb.prepare.encoded import EncodedRows, encode_rows
from sglb.prepare.preparation import Preparation, Problem, Request, pose, prepare, prepare_more
from sglb.prepare.rows import LabelledRows, warn_of_repeats

__all__ = [
    "EncodedRows",
    "LabelledRows",
    "Preparation",
    "Problem",
    "Request",
    "encode_rows",
    "pose",
    "prepare",
    "prepare_more",
    "warn_of_repeats",
]
