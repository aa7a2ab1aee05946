"""One row of numbers -> a matrix of one row that the core reads, in under a microsecond."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.frame import READY_DTYPES, is_number

Array = NDArray[Any]


def row_reader(n_columns: int) -> Callable[[Any], Array]:
    """Return a function from a vector or a sequence of n_columns numbers to values (1, n_columns).

    None is a missing value.
    """

    def read(row: Any) -> Array:
        values = np.asarray(row)
        if values.shape != (n_columns,):
            raise ValueError(
                f"a row must be {n_columns} numbers, one for each feature; it has shape "
                f"{values.shape}"
            )
        if values.dtype not in READY_DTYPES or not values.flags.aligned:
            values = _as_floats(values)
        return values[None]

    return read


def _as_floats(values: Array) -> Array:
    """Return a vector of objects or of unusual numbers as float64."""
    cells = values.tolist() if values.dtype.kind in "OUSmMc" else []
    for feature, cell in enumerate(cells):
        if not (cell is None or is_number(cell)):
            raise ValueError(f"a row must be numbers; feature {feature} is {cell!r}")
    return values.astype(np.float64)
