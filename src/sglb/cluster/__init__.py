"""Rows of a chain in other places: pieces of a table, held by servers that answer questions."""

from sglb.cluster.comm import Comm, SerialComm
from sglb.cluster.dealt import DealtRows
from sglb.cluster.processes import LocalProcesses, LostServerError
from sglb.cluster.raw import Piece
from sglb.cluster.server import Moved, Server, is_of_a_step
from sglb.cluster.table import ClusterTable
from sglb.training_set import TrainingSet

TrainingData = TrainingSet | DealtRows


def in_memory(data: TrainingData, n_threads: int) -> TrainingSet:
    """Return rows in this process, brought from the servers if need be."""
    return data.in_memory(n_threads) if isinstance(data, DealtRows) else data


__all__ = [
    "ClusterTable",
    "Comm",
    "DealtRows",
    "LocalProcesses",
    "LostServerError",
    "Moved",
    "Piece",
    "SerialComm",
    "Server",
    "TrainingData",
    "in_memory",
    "is_of_a_step",
]
