"""Small problems of binary features that several measurements share, and their size."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class StudySize:
    """Length of the chains, as a multiple of the full length, and their seed."""

    length: float = 1.0
    seed: int = 0

    def steps(self, count: float) -> int:
        """Return a number of steps at this length."""
        return max(400, round(count * self.length))


# Two balanced binary features on eight rows: the greedy search has two stumps of equal probability
# when there is no signal, so that Pbar is known exactly.
SQUARE = np.array([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1]])
SQUARE_Y = np.array([1.0, -2.0, 0.5, 3.0, 0.0, -1.0, 2.0, 1.5])
GAMMA, TEMPERATURE = 0.5, 1.7

# Four correlated binary features of different balance on twelve rows.
TWELVE = np.array(
    [
        [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1],
        [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
        [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
    ]
)
TWELVE_Y = np.array([2.0, -1.0, 0.5, 1.0, 0.0, -2.0, 1.5, 0.3, -0.7, 1.1, -1.6, 0.4])

# Two minima of unequal depth for Welsch's loss of a leaf.
WELL_Y = (-1.5, -1.5, 1.5)
