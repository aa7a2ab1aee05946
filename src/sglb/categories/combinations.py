"""Which columns to combine: those whose joint levels explain what single columns leave over.

The gain of a combination is the share of the residuals' squares that the mean of its levels
explains when a row is left out of its own mean, shrunk by five rows:

    sum over levels of (S^2 - sum g^2) / (n - 1 + 5)  /  sum g^2
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sglb import _core

Floats = NDArray[np.float64]
Members = tuple[int, ...]

# Found on 13 binary tables of 6,000 to 50,000 rows, where combinations are worth 2.7 % of the test
# log loss on average, and 13.7 % on the one made of identifiers alone.
LEAST_GAIN = 0.004
MOST_PAIRS = 16
EXTENDED_PAIRS = 10
MOST_TRIPLES = 8
RIDGE = 5.0

# A gain must also stand out from what chance would give, in standard deviations: on a table of
# 6,600 rows chance alone has one of .3 %, and hundreds of candidates are measured. Against no such
# bound the test log loss of that table changed by -1.4 % (standard error 1.1, four splits that had
# no part in the choice), that of three larger ones by less than .2 %.
LEAST_ERRORS = 5.0

# Columns that are combined, the most telling ones: 780 pairs at most.
MOST_COLUMNS = 40

# Product of level counts that one key of 64 bits can hold with room to spare.
MOST_KEYS = float(1 << 61)


def member_rows(combinations: Sequence[Members]) -> NDArray[np.int32]:
    """Return combinations as the kernels read them: a row each, unused places -1 at the end."""
    rows = np.full((len(combinations), 3), -1, dtype=np.int32)
    for row, members in zip(rows, combinations, strict=True):
        row[: len(members)] = members
    return rows


def choose_combinations(
    levels: NDArray[np.int32],
    n_levels: NDArray[np.int64],
    residuals: Floats,
    weight: Floats | None,
    *,
    many: int,
    unit: float = 1.0,
    n_threads: int = 1,
) -> list[Members]:
    """Return pairs and triples of columns by their gain on residuals (n_outputs, n_rows).

    A pair has a member of more than `many` levels: trees combine the others by themselves. `unit`
    is the weight of an ordinary row.
    """

    # Gains have no unit; fourth powers of residuals must not leave the range of floats.
    residuals = residuals / (np.abs(residuals).max(initial=0.0) or 1.0)

    def measure(members: NDArray[np.int32]) -> tuple[Floats, Floats]:
        gains, errors = np.empty((2, len(members)))
        _core.combination_gains(
            levels, n_levels, members, residuals, weight, RIDGE * unit, gains, errors, n_threads
        )
        return gains, errors

    def ranked(candidates: Sequence[Members], most: int) -> list[Members]:
        fitting = [
            one for one in candidates if np.prod(n_levels[list(one)], dtype=float) < MOST_KEYS
        ]
        gains, errors = measure(member_rows(fitting))
        least = np.maximum(LEAST_GAIN, LEAST_ERRORS * errors)
        best = np.argsort(-gains, kind="stable")
        return [fitting[place] for place in best if gains[place] > least[place]][:most]

    columns = [int(column) for column in np.flatnonzero(n_levels > 1)]
    if len(columns) > MOST_COLUMNS:
        single, _ = measure(member_rows([(column,) for column in columns]))
        best = np.argsort(-single, kind="stable")[:MOST_COLUMNS]
        columns = sorted(columns[place] for place in best)
    pairs = [pair for pair in combinations(columns, 2) if max(n_levels[list(pair)]) > many]
    chosen = ranked(pairs, MOST_PAIRS)
    triples = {
        tuple(sorted((*pair, column)))
        for pair in chosen[:EXTENDED_PAIRS]
        for column in columns
        if column not in pair
    }
    return chosen + ranked(sorted(triples), MOST_TRIPLES)
