"""Raw scores as losses and callbacks of users have them."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def user_shape(raw: Floats) -> Floats:
    """Turn raw scores (n_outputs, n_rows) into (n_rows,), or (n_rows, n_outputs) if several."""
    return raw[0] if len(raw) == 1 else raw.T
