"""Noise is a function, not a stream: number `index` of (seed, step, role, output)."""

import numpy as np

from sglb import _core

Role = _core.Role

NOISE_VERSION = 1  # how (seed, step, role, output, index) becomes a normal


def chain_seed(seed: int, chain: int = 0) -> int:
    """Return the seed of another chain beside the first."""
    words = np.empty((1, 4), dtype=np.uint32)
    _core.words(seed, 0, Role.CHAIN, 0, chain, words)
    return int(words[0, 0]) << 32 | int(words[0, 1])
