"""Parts of what a step needs of all rows, and how they are put together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb import _core, sums
from sglb.slopes import SlopeBounds
from sglb.structure import Sample

Floats = NDArray[np.float64]


class Words(NamedTuple):
    """Rows of a sample: their codes, and their noisy gradients as integers.

    The integers are right for a sample of `lowest` to `highest` rows.
    """

    codes: NDArray[np.uint8]  # (n_rows, n_columns)
    words: NDArray[np.int64]  # (n_outputs, n_rows)
    packing: Floats
    lowest: int
    highest: int


class Drawn(NamedTuple):
    """How many rows of a piece count as drawn, and the rows, unless they wait for squares."""

    n_counted: int
    words: Words | None


def draw_part(sample: Sample, pilot: Floats) -> Drawn:
    """Draw a piece's part of a sample, and pack it for as many rows in all as are planned."""
    n_counted = sample.draw_part(pilot)
    squares = sample.squares(0, sample.planned_rows)
    if len(squares):  # only those of all rows tell which outputs are packed
        return Drawn(n_counted, None)
    return Drawn(n_counted, pack_part(sample, squares).words)


def pack_part(sample: Sample, squares: NDArray[np.int64]) -> Drawn:
    """Pack the rows of a piece, drawn and counted before."""
    sample.pack(squares)
    n_rows, n_columns, n_outputs = sample.part_shape
    codes = np.empty((n_rows, n_columns), dtype=np.uint8)
    words = np.empty((n_outputs, n_rows), dtype=np.int64)
    packing = sample.write(codes, words)
    return Drawn(n_rows, Words(codes, words, packing, *sample.packed_for))


def largest(bounds: Sequence[SlopeBounds]) -> SlopeBounds:
    """Return bounds of all slopes that each of these bounds a part of."""
    gradients, hessians = zip(*bounds, strict=True)
    return max(gradients), max(hessians)


def merged(parts: Sequence[sums.ExactSum]) -> sums.ExactSum:
    """Return the sum of sums."""
    total = sums.ExactSum()
    for part in parts:
        total.merge(part)
    return total


def total(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    """Return the sum of arrays of one length; those of places without rows are empty."""
    arrays = [part for part in parts if len(part)]
    return np.sum(arrays, axis=0, dtype=dtype) if arrays else np.zeros(0, dtype)


def added(parts: Sequence[_core.LeafSums | None]) -> _core.LeafSums | None:
    """Return the sum of sums over leaves, in the first of them; None without any."""
    total = None
    for part in parts:
        if total is None:
            total = part
        elif part is not None:
            total.add(part)
    return total


def by_piece(answers: Sequence[Sequence[tuple[int, Any]]]) -> list[Any]:
    """Return what servers say of their pieces, in the order of the pieces."""
    pairs = [pair for answer in answers for pair in answer]
    return [each for _, each in sorted(pairs, key=lambda pair: pair[0])]
