"""Gradient boosting: the paper's Algorithm 1 without sampling, raw <- raw + tree(-eps g)."""

from dataclasses import dataclass
from functools import cached_property

from sglb.samplers.base import Move, Named


@dataclass(frozen=True)
class Plain(Named):
    """Deterministic gradient boosting (GB)."""

    learning_rate: float

    def move(self, step: int) -> Move:
        """Every step is the same: no noise, no shrink, all rows."""
        return self._move

    @cached_property
    def _move(self) -> Move:
        return Move(self.learning_rate)
