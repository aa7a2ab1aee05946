"""When progress is shown; `displays` shows it.

With `every`, after this many steps each. Without it, at the interval of the display, which is
longer where the training loss of many rows takes long to compute.
"""

import time

from sglb.callbacks.base import BaseCallback, StepInfo, Stop
from sglb.callbacks.displays import Display, Lines, Report, open_display

# Largest share of the time that reports may take; most of it is the training loss.
SHARE = 0.02


class Progress(BaseCallback):
    """Shows steps, training loss, watched metric and time left, and why a chain ended early.

    A bar in a terminal (if rich is installed) and in a notebook, else a line on stderr every few
    seconds; with `every` a line each time this many steps are done. The first and the last step are
    always shown.
    """

    def __init__(self, every: int | None = None) -> None:
        self.every = every
        self._display: Display | None = None
        self._first = 0  # steps of the chain before this run
        self._started = 0.0
        self._next = 0.0  # time of the next report

    def start(self, info: StepInfo) -> None:
        """Open the display."""
        self.close()
        self._display = Lines() if self.every is not None else open_display(info.n_steps)
        self._first = info.step
        self._started = time.monotonic()

    def step(self, info: StepInfo) -> Stop | None:
        """Show the chain when a report is due, but not while it repeats an earlier run."""
        if info.step <= info.n_replayed:
            self._first, self._started = info.step, time.monotonic()
            return None
        if info.step == self._first + 1:
            due = True
        elif self.every is not None:
            due = info.step % self.every == 0
        else:
            due = time.monotonic() >= self._next
        if due:
            self._show(info)
        return None

    def finish(self, info: StepInfo) -> None:
        """Show the last step and the reason of an early end, and close the display."""
        self._show(info, None if info.stop is None else info.stop.reason)
        self.close()

    def close(self) -> None:
        """Release the terminal, also after an error."""
        if self._display is not None:
            self._display.close()
            self._display = None

    def _show(self, info: StepInfo, reason: str | None = None) -> None:
        assert self._display is not None  # start has opened it
        now = time.monotonic()
        elapsed = now - self._started
        remaining = elapsed * (info.n_steps - info.step) / max(info.step - self._first, 1)
        report = Report(info.step, info.n_steps, _scores(info), elapsed, remaining, reason)
        self._display.show(report)
        shown = time.monotonic()
        self._next = shown + max(self._display.interval, (shown - now) / SHARE)


def _scores(info: StepInfo) -> str:
    """Return training loss and watched score as text."""
    scores = f"loss {info.training_loss:#.5g}"
    if info.evaluation is not None and info.watched_score is not None:
        name, metric = info.evaluation.watched
        scores += f"  {name} {metric.name} {info.watched_score:#.5g}"
    return scores
