"""Encode training rows once more, by an encoding that is stored: no row sees its own target.

    code of (s + unit * mean) / (n + unit),   s and n over the rows of the level before the row in
                                              the order of the seed

The rows of training in the order of training have the codes that their first copy had there.
"""

import numpy as np
from numpy.typing import NDArray

from sglb import _core
from sglb.bins import Bins
from sglb.categories.encoder import row_orders, statistic_targets
from sglb.categories.encoding import Encoding
from sglb.frame import Features
from sglb.target import Target


def training_codes(
    encoding: Encoding,
    bins: Bins,
    features: Features,
    target: Target,
    *,
    seed: int,
    n_threads: int,
) -> NDArray[np.uint8]:
    """Return the codes of training rows, (n_features, n_rows).

    A level that the encoding does not know has the mean, as in prediction.
    """
    columns = encoding.codes(features, bins, n_threads)
    if not encoding.tables:
        return columns
    if not columns.flags.writeable:  # a map of codes on disk
        columns = columns.copy()
    levels = encoding.find_levels(features)
    values = statistic_targets(target)
    targets = _core.LevelTargets(values, target.kernel_weight)
    orders = row_orders(seed, 1, len(features))
    begin = encoding.n_numeric + len(encoding.level_columns)
    for table in encoding.tables:
        means, n_levels = table.statistics[:, -1], table.statistics.shape[1] - 1
        entries = table.find(levels, encoding.n_levels, n_threads)
        is_known = entries >= 0
        rows = np.where(is_known, entries, n_levels).astype(np.int32)[None]
        numbers = slice(begin, begin + len(means))
        codes = np.empty((len(means), len(features)), dtype=np.uint8)
        _core.ordered_codes(
            _core.Levels(rows, np.array([n_levels + 1])),
            targets,
            orders,
            _core.Prior(np.ascontiguousarray(means), target.weight_unit),
            np.ascontiguousarray(bins.thresholds[numbers]),
            bins.n_thresholds[numbers],
            codes,
            n_threads,
        )
        columns[numbers] = np.where(is_known, codes, columns[numbers])
        begin += table.n_features
    return columns
