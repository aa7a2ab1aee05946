"""Categorical columns -> numeric features, fixed before the chain starts.

Stands beside `bins`, between `frame` and `training_set`. A column of few levels becomes one column
of level numbers, split by equality. A column of many levels, and a combination of columns, becomes
the mean of the target by level,

    (s + m) / (n + 1),   s and n the sum of targets and the number of rows of the level, m the mean,

taken for a training row over the rows before it in a random order, so that no row sees its own
target, and for any other row over all training rows.
"""

from sglb.categories.combinations import choose_combinations
from sglb.categories.encoder import Encoder, Part, statistic_targets
from sglb.categories.encoding import Encoding

__all__ = [
    "Encoder",
    "Encoding",
    "Part",
    "choose_combinations",
    "statistic_targets",
]
