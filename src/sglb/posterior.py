"""Draws from a chain: which of its states to read.

A stored chain holds every state it went through (`Ensemble.at`), so several states of one chain
serve as an ensemble of models at the price of one traversal: a virtual ensemble.
"""

import numpy as np
from numpy.typing import NDArray


def virtual_states(n_steps: int, n_states: int) -> NDArray[np.int64]:
    """Numbers of at most `n_states` distinct states, evenly from the second half of the chain.

    The first half is left to burn-in; the final state is always among them.
    """
    first = n_steps // 2 + 1 if n_steps > 1 else n_steps
    return np.unique(np.linspace(n_steps, first, n_states).round().astype(np.int64))
