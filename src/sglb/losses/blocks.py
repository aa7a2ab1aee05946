"""Which rows a user's loss is asked for at a time: blocks of many, or a sample."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
from numpy.typing import NDArray

Rows = slice | NDArray[np.intp]

# Rows of a block. NumPy's intermediate results of a million rows are new memory each time, which
# costs more than the arithmetic; those of a block stay in a cache.
BLOCK_ROWS = 1 << 17
# A mean over this many rows has a standard error of a 128th of the spread.
ENOUGH_ROWS = 1 << 14


def blocks_of(n_rows: int, *, whole: bool) -> list[slice]:
    """Return the rows that a user's methods see together."""
    size = max(n_rows, 1) if whole else BLOCK_ROWS
    return [slice(at, min(at + size, n_rows)) for at in range(0, n_rows, size)]


def compute_each(
    compute: Callable[[slice], tuple[float, ...]], blocks: list[slice], n_threads: int
) -> list[tuple[float, ...]]:
    """Compute all blocks, several at a time: NumPy lets other threads work while it does.

    Blocks are the same for any number of threads, and so are their bits.
    """
    n_threads = min(n_threads, len(blocks))
    if n_threads <= 1:
        return [compute(rows) for rows in blocks]

    def share(thread: int) -> list[tuple[float, ...]]:
        return [compute(rows) for rows in blocks[thread::n_threads]]

    with ThreadPoolExecutor(n_threads - 1) as pool:
        # What the caller set, such as np.errstate, holds in the threads too.
        others = [pool.submit(copy_context().run, share, t) for t in range(1, n_threads)]
        return share(0) + [block for other in others for block in other.result()]


def sample_rows(n_rows: int) -> Rows:
    """Return rows that are enough to estimate a mean of: all of few, some drawn at random of many.

    One row of each of equal stretches, at random, since rows may alternate between groups.
    """
    if n_rows <= ENOUGH_ROWS:
        return slice(None)
    place = np.arange(ENOUGH_ROWS) + np.random.default_rng(0).random(ENOUGH_ROWS)
    return (place * (n_rows / ENOUGH_ROWS)).astype(np.intp)
