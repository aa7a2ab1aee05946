"""Interrupted training: what a fit writes down while it runs, and how the next one goes on.

A step is a function of the trees so far, the data, the recipe, the seed and its number. So a
checkpoint holds recipe, trees and a fingerprint of the data, but no state: the fit that resumes
prepares its rows again and repeats the steps, which takes a fraction of the time that they took.
"""

from sglb.checkpoints.checkpoint import Checkpoint, take_checkpoint
from sglb.checkpoints.fingerprint import Fingerprint, describe, describe_data, describe_parameters
from sglb.checkpoints.journal import Journal, open_journal

__all__ = [
    "Checkpoint",
    "Fingerprint",
    "Journal",
    "describe",
    "describe_data",
    "describe_parameters",
    "open_journal",
    "take_checkpoint",
]
