"""A table and a seed -> rows to learn from, to stop by, to score on."""

import numpy as np

from benchmarks.quality.protocol import TEST, VALID


def split(y, seed, *, classes, max_rows=None):
    """Three arrays of row numbers in random order; every class is cut in the same shares.

    A class too small for a share gives its rows to the training part.
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(y))
    groups = [order[y[order] == label] for label in np.unique(y)] if classes else [order]
    if max_rows is not None and max_rows < len(y):
        # At least one row of each class is kept.
        groups = [rows[: max(1, round(len(rows) * max_rows / len(y)))] for rows in groups]
    parts = [[], [], []]
    for rows in groups:
        n_test, n_valid = round(TEST * len(rows)), round(VALID * len(rows))
        cut = np.split(rows, [len(rows) - n_valid - n_test, len(rows) - n_test])
        for part, piece in zip(parts, cut, strict=True):
            part.append(piece)
    return [generator.permutation(np.concatenate(part)) for part in parts]
