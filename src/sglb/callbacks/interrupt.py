"""Ctrl-C as an end of the chain: the model of the steps taken is kept."""

import signal
import threading
from types import FrameType
from typing import Any

from sglb.callbacks.base import BaseCallback, StepInfo, Stop


class KeepOnInterrupt(BaseCallback):
    """Makes Ctrl-C end the chain after the step it is in: fit returns with the model so far.

    `interrupted` says whether that happened. A second Ctrl-C, or one after the last step, raises
    KeyboardInterrupt as ever. Signals reach the main thread alone, so fit must run there.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._previous: Any = None

    def start(self, info: StepInfo) -> None:
        """Take over Ctrl-C; where it is ignored, as in a shell's background job, leave it so."""
        if threading.current_thread() is not threading.main_thread():
            raise ValueError(
                "KeepOnInterrupt needs the main thread, which alone receives Ctrl-C; call fit there"
                " or leave the callback out"
            )
        self.close()  # of a fit before, where nobody has closed it
        self.interrupted = False
        previous = signal.getsignal(signal.SIGINT)
        if callable(previous):
            self._previous = previous
            signal.signal(signal.SIGINT, self._interrupt)

    def step(self, info: StepInfo) -> Stop | None:
        """End the chain if Ctrl-C has been pressed."""
        return Stop("interrupted") if self.interrupted else None

    def finish(self, info: StepInfo) -> None:
        """Give Ctrl-C back."""
        self.close()

    def close(self) -> None:
        """Give Ctrl-C back, also after an error."""
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self.interrupted:
            self.interrupted = True
            return
        previous = self._previous
        self.close()
        previous(number, frame)
