"""Rows of a chain in other places: pieces of a table, held by servers that answer questions."""

from sglb.cluster.comm import Comm, Moved, SerialComm
from sglb.cluster.dealt import DealtRows, deal
from sglb.cluster.processes import LocalProcesses, LostServerError
from sglb.cluster.server import Piece, Server

__all__ = [
    "Comm",
    "DealtRows",
    "LocalProcesses",
    "LostServerError",
    "Moved",
    "Piece",
    "SerialComm",
    "Server",
    "deal",
]
