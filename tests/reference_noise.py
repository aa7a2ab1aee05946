"""Plain NumPy twins of the generator of noise and of what draws from it."""

import numpy as np

from sglb import _core
from sglb.noise import Role

STRUCTURE, LEAF, SUBSAMPLE, ROWS, SCORE, PERMUTATION, CHAIN, TEST, THRESHOLDS, OUTPUTS = (
    int(role)
    for role in (
        Role.STRUCTURE, Role.LEAF, Role.SUBSAMPLE, Role.ROWS, Role.SCORE, Role.PERMUTATION,
        Role.CHAIN, Role.TEST, Role.THRESHOLDS, Role.OUTPUTS,
    )
)  # fmt: skip

# Counter, key and words of the authors' implementation (Random123, kat_vectors, philox4x32 10).
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip


def philox(counter, key, bits=32):
    """Philox4x32-10 (Salmon et al., 2011): four words from a counter of four and a key of two.

    With bits=64 it is Philox4x64-10, the generator NumPy has.
    """
    multipliers, weyl = {
        32: ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
        64: (
            (0xD2E7470EE14C6C93, 0xCA5A826395121157),
            (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
        ),
    }[bits]
    mask = (1 << bits) - 1
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = multipliers[0] * c0, multipliers[1] * c2
        c0, c1, c2, c3 = b >> bits ^ c1 ^ k0, b & mask, a >> bits ^ c3 ^ k1, a & mask
        k0, k1 = k0 + weyl[0] & mask, k1 + weyl[1] & mask
    return c0, c1, c2, c3


def words(seed, step, role, output, first, n):
    """(n, 4) uint32: words of the counters first, first + 1, ... of one stream."""
    low = 0xFFFFFFFF
    key = seed & low, seed >> 32
    out = np.empty((n, 4), dtype=np.uint32)
    for i in range(n):
        index = first + i
        out[i] = philox((index & low, index >> 32, step, role | output << 8), key)
    return out


def unit(word):
    """32 bits to [0, 1)."""
    return word.astype(np.float64) / 2.0**32


def normals(seed, step, role, output, first, n):
    """Box-Muller: sqrt(-2 ln u) times cos(2 pi v) or, for odd numbers, sin(2 pi v); u never 0.

    Numbers 2 i and 2 i + 1 share the words of counter i.
    """
    index = np.arange(first, first + n, dtype=np.uint64)
    first_pair = first // 2
    w = words(seed, step, role, output, first_pair, (first + n + 1) // 2 - first_pair)
    w = w[(index // 2 - np.uint64(first_pair)).astype(np.intp)]
    radius = np.sqrt(-2.0 * np.log(unit(w[:, 0]) + 2.0**-33))
    angle = 2 * np.pi * unit(w[:, 1])
    return radius * np.where(index % 2 == 0, np.cos(angle), np.sin(angle))


def rounding_offsets(seed, step, output, n):
    """Uniform numbers that rows 0 .. n-1 are rounded by: word 2 or 3 of their normal's counter."""
    w = words(seed, step, STRUCTURE, output, 0, (n + 1) // 2)
    return (w[:, 2:].reshape(-1)[:n] >> 8) / 2.0**24


def core_normals(seed, step, role, output, n):
    """The kernel's own normals 0 .. n-1, for twins whose result hangs on the last bit."""
    out = np.empty(n)
    _core.testing.normals(seed, step, role, output, 0, out, 1)
    return out


def structure_normals(seed, step, output, n):
    """The kernel's noise of rows 0 .. n-1 in the search of a structure, in single precision."""
    return single_normals(seed, step, STRUCTURE, output, n).astype(np.float64)


def single_normals(seed, step, role, output, n):
    """The kernel's normals 0 .. n-1 in single precision."""
    out = np.empty(n, dtype=np.float32)
    _core.testing.normals_single(seed, step, role, output, 0, out)
    return out


def stretch_points(n_rows, points):
    """The row at a point, a word, of each of len(points) equal stretches of 0..n_rows, in 32.32
    fixed point.
    """
    length = (n_rows << 32) // len(points) if len(points) else 0
    whole, part = length >> 32, length & 0xFFFFFFFF
    rows = [
        (k * length + whole * u + (part * u >> 32)) >> 32 for k, u in enumerate(points.tolist())
    ]
    return np.array(rows, dtype=np.uint32)


def subsample(gradient, rate, seed, step):
    """gradient (K, N): each row kept with probability `rate` and divided by it."""
    kept = unit(words(seed, step, SUBSAMPLE, 0, 0, gradient.shape[1])[:, 0]) < rate
    return gradient * np.where(kept, 1.0 / rate, 0.0)
