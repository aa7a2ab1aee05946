"""The driver of several chains that differ in their noise: side by side, the first in sight.

The caller's callbacks watch the first chain, in the caller's thread. Where they may end it, no
other chain takes a step that the first has not taken: all chains end at the same step, whatever the
number of threads.
"""

import math
from collections.abc import Sequence
from functools import partial
from threading import Condition

from sglb.boosting import boost, look_on
from sglb.callbacks import BaseCallback, Callback, StepInfo, Stop
from sglb.chain import Chain
from sglb.threads import side_by_side
from sglb.trace import Trace


class Cancelled(Exception):  # noqa: N818  # users see the error of the other chain instead
    """Ends a chain because another one has failed."""


class Pace:
    """How far chains may go: no further than the first chain, if `led`, and up to a common end."""

    def __init__(self, *, led: bool) -> None:
        self._changed = Condition()
        self._reached: float = 1 if led else math.inf  # the first step is always taken
        self._end: float = math.inf
        self._cancelled = False

    def advance_to(self, step: float) -> None:
        """Let the chains take steps up to this one; raise Cancelled if one of them has failed."""
        with self._changed:
            self._check()
            if step > self._reached:
                self._reached = step
                self._changed.notify_all()

    def end_at(self, step: int) -> None:
        """End all chains after this step."""
        with self._changed:
            self._end = step
            self._changed.notify_all()

    def allows(self, step: int) -> bool:
        """Wait until it is known whether chains take this step, and return it."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._cancelled or step <= self._reached or self._end < math.inf
            )
            self._check()
            return step <= self._end

    def cancel(self) -> None:
        """End all chains at once."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()

    def _check(self) -> None:
        if self._cancelled:
            raise Cancelled


class Lead(BaseCallback):
    """The callbacks of the first chain whose stop ends all chains."""

    def __init__(self, callbacks: Sequence[Callback], pace: Pace) -> None:
        self.callbacks = callbacks
        self.pace = pace

    def start(self, info: StepInfo) -> None:
        """Start the callbacks."""
        for callback in self.callbacks:
            callback.start(info)

    def step(self, info: StepInfo) -> Stop | None:
        """Show the step to the callbacks, then let the other chains follow."""
        stop = look_on(self.callbacks, info)
        if stop is not None:
            self.pace.end_at(max(info.step, info.n_inherited))
        self.pace.advance_to(info.step)
        return stop

    def finish(self, info: StepInfo) -> None:
        """Let the other chains go on alone."""
        for callback in self.callbacks:
            callback.finish(info)
        self.pace.advance_to(math.inf)


class Follow(BaseCallback):
    """Keeps another chain behind the first one."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace

    def step(self, info: StepInfo) -> Stop | None:
        """Wait for the first chain."""
        if info.step == info.n_steps or self.pace.allows(info.step + 1):
            return None
        return Stop("a callback ended the chains")


def boost_all(
    chains: Sequence[Chain],
    n_steps: int,
    callbacks_by_chain: Sequence[Sequence[Callback]],
    leading: Sequence[Callback],
    n_threads: int,
) -> list[Trace]:
    """Take up to `n_steps` steps with each chain, `n_threads` chains at a time; return the traces.

    `callbacks_by_chain[c]` watch chain c and end it alone; `leading` watch chain 0 and end
    all. An error of one chain, or Ctrl-C, ends all.
    """
    pace = Pace(led=bool(leading))
    last: list[Callback] = [Lead(leading, pace), *(Follow(pace) for _ in chains[1:])]
    tasks = [
        partial(boost, chain, n_steps, [*callbacks, end])
        for chain, callbacks, end in zip(chains, callbacks_by_chain, last, strict=True)
    ]
    return side_by_side(tasks, n_threads, pace.cancel)
