"""Rows on which a loss is evaluated at a time: blocks of many rows, or a sample."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
from numpy.typing import NDArray

from sglb.weights import RowSelection

Floats = NDArray[np.float64]

# Rows per block. NumPy allocates new memory for intermediate results of a million rows each time,
# which costs more than the arithmetic; those of a block stay in a cache.
BLOCK_ROWS = 1 << 17
# A mean over this many rows has a standard error of a 128th of the spread.
ENOUGH_ROWS = 1 << 14


def blocks_of(n_rows: int, *, whole: bool) -> list[slice]:
    """Return the rows that a user's methods see together: all of them if `whole`."""
    size = max(n_rows, 1) if whole else BLOCK_ROWS
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def compute_each(
    compute: Callable[[slice], tuple[float, ...]], blocks: list[slice], n_threads: int
) -> list[tuple[float, ...]]:
    """Compute all blocks in several threads, because NumPy releases the interpreter's lock.

    The blocks, and so the bits of their results, are the same for any number of threads.
    """
    n_threads = min(n_threads, len(blocks))
    if n_threads <= 1:
        return [compute(rows) for rows in blocks]

    def share(thread: int) -> list[tuple[float, ...]]:
        return [compute(rows) for rows in blocks[thread::n_threads]]

    with ThreadPoolExecutor(n_threads - 1) as pool:
        # Threads inherit the caller's context, such as np.errstate.
        futures = [pool.submit(copy_context().run, share, t) for t in range(1, n_threads)]
        return share(0) + [block for future in futures for block in future.result()]


def sample_rows(n_rows: int) -> RowSelection:
    """Return enough rows to estimate a mean: all rows up to ENOUGH_ROWS, else this many at random.

    The rows are cut into stretches of equal length, and a random row of each is taken: at regular
    distances, rows that alternate between groups would all be of one group.
    """
    if n_rows <= ENOUGH_ROWS:
        return slice(None)
    position = np.arange(ENOUGH_ROWS) + np.random.default_rng(0).random(ENOUGH_ROWS)
    return (position * (n_rows / ENOUGH_ROWS)).astype(np.intp)
