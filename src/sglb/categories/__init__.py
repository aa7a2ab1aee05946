"""Turn categorical columns into numeric features before the chain starts.

Stands beside `bins`, between `frame` and `training_set`. A column of few levels becomes one column
of level numbers, split by equality. A column of many levels, and a combination of columns, becomes
the mean of the target by level,

    (s + m) / (n + 1),   s and n the sum of targets and the number of rows of the level, m the mean,

over the rows before it in a random order for a training row, so that no row sees its own target,
and over all training rows for any other row.
"""

from sglb.categories.combinations import choose_combinations
from sglb.categories.encoder import Encoder, Part, row_orders
from sglb.categories.encoding import Encoding
from sglb.categories.training_codes import training_codes

__all__ = [
    "Encoder",
    "Encoding",
    "Part",
    "choose_combinations",
    "row_orders",
    "training_codes",
]
