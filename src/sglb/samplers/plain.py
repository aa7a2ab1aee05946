"""Gradient boosting: the paper's Algorithm 1 without sampling, raw <- raw + tree(-eps g)."""

from dataclasses import dataclass
from functools import cached_property

from sglb.samplers.base import Move, Named, Rate
from sglb.schedules import last_of


@dataclass(frozen=True)
class Plain(Named):
    """Deterministic gradient boosting (GB)."""

    learning_rate: Rate

    @cached_property
    def _move(self) -> Move:
        """No noise, no shrink, all rows."""
        return Move(last_of(self.learning_rate))
