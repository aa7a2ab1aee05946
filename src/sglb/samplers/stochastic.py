"""Stochastic gradient boosting: Algorithm 1 with the gradient estimated from a sample of rows.

Each row is kept with probability `subsample` and its gradient divided by it, so the estimate is
unbiased: E[g_i 1{kept} / rate] = g_i.
"""

from dataclasses import dataclass

from sglb.caching import cached_property
from sglb.samplers.base import Move, StorableSampler
from sglb.samplers.preset import Preset
from sglb.schedules import Scheduled, last_of


@dataclass(frozen=True)
class Stochastic(StorableSampler):
    """Gradient boosting on Bernoulli samples of the rows (SGB)."""

    learning_rate: Scheduled
    subsample: float = 0.5

    @cached_property
    def _move(self) -> Move:
        """No noise, no shrink, a fresh sample of rows."""
        return Move(last_of(self.learning_rate), subsample=self.subsample)


PRESET = Preset(Stochastic.of, frozenset({"subsample"}), Stochastic)
