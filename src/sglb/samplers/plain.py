"""Gradient boosting: the paper's Algorithm 1 without sampling, raw <- raw + tree(-eps g)."""

from dataclasses import dataclass

from sglb.caching import cached_property
from sglb.samplers.base import Move, StorableSampler
from sglb.samplers.preset import Preset
from sglb.schedules import Scheduled, last_of


@dataclass(frozen=True)
class Plain(StorableSampler):
    """Deterministic gradient boosting (GB)."""

    learning_rate: Scheduled

    @cached_property
    def _move(self) -> Move:
        """No noise, no shrink, all rows."""
        return Move(last_of(self.learning_rate))


PRESET = Preset(Plain.of, frozenset(), Plain)
