"""Rows of one table as the pieces of several servers."""

from itertools import pairwise

import numpy as np

from sglb.cluster import Piece
from sglb.cluster.dealt import check_whole_queries


def deal(data, cuts):
    """Cut rows of a copy before each of some numbers, the first of them 0; return the pieces."""
    n_rows = data.n_rows // data.n_copies
    pieces = {}
    for number, (first, last) in enumerate(pairwise([*cuts, n_rows])):
        inside = np.zeros(n_rows, dtype=np.bool_)
        inside[first:last] = True
        pieces[number] = Piece(data.take(np.tile(inside, data.n_copies)), first)
    check_whole_queries([piece.data.target.groups for piece in pieces.values()], "piece")
    return pieces
