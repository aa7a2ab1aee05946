"""Gains of relevances and discounts of positions in a ranking, the same bits on every processor."""

import numpy as np
from numpy.typing import NDArray

from sglb.elementary import exp, log

Floats = NDArray[np.float64]


def powers_of_two(relevance: Floats) -> Floats:
    """Return 2^relevance, exact for whole relevances."""
    whole = np.floor(relevance)
    power = np.ldexp(1.0, whole.astype(np.int32))
    fraction = relevance - whole
    return power * exp(fraction * log(2.0)) if fraction.any() else power


def gains(relevance: Floats) -> Floats:
    """Return 2^relevance - 1."""
    return powers_of_two(relevance) - 1.0


def discounts(position: NDArray[np.int64]) -> Floats:
    """Return 1 / log2(position + 2) of positions 0, 1, ..."""
    return log(2.0) / log(position.astype(np.float64) + 2.0)
