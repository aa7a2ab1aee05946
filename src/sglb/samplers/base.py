"""What a sampler is: the physics of one step of the chain.

A sampler turns the number of a step into a `Move`; the loop in `boosting.py` carries it out:

    raw <- shrink * raw - learning_rate * mean over leaf of (gradient + noise * normal)
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a chain.

    `noise` is the standard deviation sigma of the Gaussian noise on the gradient of a row of
    weight one, `shrink` the factor rho that the model is multiplied with, `subsample` the
    probability with which a row's gradient enters its unbiased estimate.
    """

    learning_rate: float
    noise: float = 0.0
    shrink: float = 1.0
    subsample: float = 1.0


class Sampler(Protocol):
    """Anything that says how the chain moves at a step."""

    def move(self, step: int) -> Move:
        """Return the move of step 0, 1, 2, ..."""
        ...
