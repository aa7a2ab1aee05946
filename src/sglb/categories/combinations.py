"""Choose which columns to combine: those whose joint levels explain what single columns do not.

The gain of a combination is the share of the residuals' squares that the mean of its levels
explains when a row is left out of its own mean, shrunk by five rows:

    sum over levels of (S^2 - sum g^2) / (n - 1 + 5)  /  sum g^2
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.weights import kernel_weight

Floats = NDArray[np.float64]
Members = tuple[int, ...]

# Chosen on 13 binary tables of 6,000 to 50,000 rows, where combinations lower the test log loss by
# 2.7 % on average, and by 13.7 % on the table that consists of identifiers alone.
LEAST_GAIN = 0.004
MOST_PAIRS = 16
EXTENDED_PAIRS = 10
MOST_TRIPLES = 8
RIDGE = 5.0

# A gain must also be this many standard deviations above chance: on a table of 6,600 rows chance
# alone gives 0.3 %, and hundreds of candidates are measured. Compared with no such bound, the test
# log loss of that table changed by -1.4 % (standard error 1.1, four splits that had no part in the
# choice), that of three larger tables by less than 0.2 %.
LEAST_ERRORS = 5.0

# At most this many columns, those of the largest gains, are combined: 780 pairs.
MOST_COLUMNS = 40

# The product of the level counts of a combination is below this, which the kernels demand too
# (combinations.h); stored models are held to it.
MOST_KEYS = float(1 << 61)


def member_rows(combinations: Sequence[Members]) -> NDArray[np.int32]:
    """Return combinations as the kernels read them: a row each, padded with -1."""
    rows = np.full((len(combinations), 3), -1, dtype=np.int32)
    for row, members in zip(rows, combinations, strict=True):
        row[: len(members)] = members
    return rows


def choose_combinations(
    levels: NDArray[np.int32],
    n_levels: NDArray[np.int64],
    residuals: Floats,
    weight: Floats,
    *,
    many: int,
    unit: float = 1.0,
    n_threads: int = 1,
) -> list[Members]:
    """Return pairs and triples of columns by their gain on residuals (n_outputs, n_rows).

    A pair has a member with more than `many` levels, because trees combine other columns by
    themselves. `unit` is the weight of an ordinary row.
    """
    # Gains have no unit; scaled residuals keep their fourth powers in the range of floats.
    residuals = residuals / (np.abs(residuals).max(initial=0.0) or 1.0)
    level_columns = _core.Levels(levels, n_levels)
    targets = _core.LevelTargets(residuals, kernel_weight(weight))

    def measure(members: NDArray[np.int32]) -> tuple[Floats, Floats]:
        gains, errors = np.empty((2, len(members)))
        _core.combination_gains(
            level_columns, members, targets, RIDGE * unit, gains, errors, n_threads
        )
        return gains, errors

    def ranked(candidates: Sequence[Members], most: int) -> list[Members]:
        fitting = [
            members
            for members in candidates
            if np.prod(n_levels[list(members)], dtype=float) < MOST_KEYS
        ]
        gains, errors = measure(member_rows(fitting))
        least = np.maximum(LEAST_GAIN, LEAST_ERRORS * errors)
        best = np.argsort(-gains, kind="stable")
        return [fitting[j] for j in best if gains[j] > least[j]][:most]

    columns = [int(column) for column in np.flatnonzero(n_levels > 1)]
    if len(columns) > MOST_COLUMNS:
        single, _ = measure(member_rows([(column,) for column in columns]))
        best = np.argsort(-single, kind="stable")[:MOST_COLUMNS]
        columns = sorted(columns[j] for j in best)
    pairs = [pair for pair in combinations(columns, 2) if max(n_levels[list(pair)]) > many]
    chosen = ranked(pairs, MOST_PAIRS)
    triples = {
        tuple(sorted((*pair, column)))
        for pair in chosen[:EXTENDED_PAIRS]
        for column in columns
        if column not in pair
    }
    return chosen + ranked(sorted(triples), MOST_TRIPLES)
