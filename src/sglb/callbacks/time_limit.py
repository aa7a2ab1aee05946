"""An end by the clock."""

import math
import time
from numbers import Real

from sglb.callbacks.base import BaseCallback, StepInfo, Stop


class TimeLimit(BaseCallback):
    """Ends the chain before its steps take longer than `seconds`.

    The model is the best there is by then: with `early_stopping_rounds` the best state, else the
    last. One step is always taken, and those of a checkpoint or of a model that is continued are
    repeated, so that a limit of 0 adds none to them. Time counts from the first step: reading and
    encoding the rows come before, error bars after.
    """

    def __init__(self, seconds: float) -> None:
        is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
        if not (is_number and math.isfinite(seconds) and seconds >= 0.0):
            raise ValueError(f"seconds={seconds!r} is not allowed; use a number >= 0")
        self.seconds = float(seconds)
        self._started = self._before = 0.0

    def start(self, info: StepInfo) -> None:
        """Start the clock."""
        self._started = self._before = time.monotonic()

    def step(self, info: StepInfo) -> Stop | None:
        """Stop if a step more, as long as the newest, would end too late."""
        now = time.monotonic()
        end, self._before = now + (now - self._before), now
        if info.step < info.n_replayed or end - self._started <= self.seconds:
            return None
        return Stop(f"the time limit of {self.seconds:g} s is reached")
