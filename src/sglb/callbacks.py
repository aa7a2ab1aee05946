"""Guests of the loop: they look at the chain after each step and may ask it to stop.

`boosting.boost` calls start once, step after every step, finish once, each with a `Moment`. A step
that returns `Stop(reason)` ends the chain. Without callbacks the loop does nothing for them.
"""

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sglb.ensemble import Ensemble
from sglb.losses import Loss
from sglb.metrics import Metric
from sglb.structure import Structure
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stop:
    """A callback's wish that the chain ends here."""

    reason: str


@dataclass(slots=True)
class Moment:
    """The chain after `step` steps. Arrays are the loop's own: look, do not write.

    `structure` and `values` (2^depth, n_outputs) are the newest tree, `shrink` the factor that the
    older ones were multiplied with; `raw` (n_outputs, n_rows) are the scores of the training rows.
    At the start there is no tree yet and `structure` and `values` are None.
    """

    step: int
    ensemble: Ensemble
    structure: Structure | None
    values: Floats | None
    shrink: float
    raw: Floats
    loss: Loss
    training_set: TrainingSet


class Callback(Protocol):
    """Anything with these three methods; `BaseCallback` has them all empty."""

    def start(self, moment: Moment) -> None:
        """Hear that the chain is about to take its first step."""
        ...

    def step(self, moment: Moment) -> Stop | None:
        """Look at the chain after a step; return Stop to end it."""
        ...

    def finish(self, moment: Moment) -> None:
        """Hear that the chain has ended."""
        ...


class BaseCallback:
    """A callback that does nothing: derive from it and override what you need."""

    def start(self, moment: Moment) -> None:
        """Do nothing."""

    def step(self, moment: Moment) -> Stop | None:
        """Do nothing."""
        return None

    def finish(self, moment: Moment) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class EvaluationSet:
    """Rows that are scored but not learned from: codes (n_features, n_rows), y and weight."""

    name: str
    columns: NDArray[np.uint8]
    y: Floats
    weight: Floats | None


def user_shape(raw: Floats) -> Floats:
    """Turn raw scores (n_outputs, n_rows) into (n_rows,), or (n_rows, n_outputs) if several."""
    return raw[0] if len(raw) == 1 else raw.T


class History(BaseCallback):
    """Keeps the raw scores of evaluation sets up to date and records their metrics.

    `result[set][metric]` is a list whose entry k - 1 belongs to the chain after k steps.
    """

    def __init__(
        self, sets: Sequence[EvaluationSet], metrics: Sequence[Metric], n_threads: int = 1
    ) -> None:
        self.sets = tuple(sets)
        self.metrics = tuple(metrics)
        self.n_threads = n_threads
        self.result: dict[str, dict[str, list[float]]] = {
            one.name: {metric.name: [] for metric in self.metrics} for one in self.sets
        }
        self._raws: list[Floats] = []

    def start(self, moment: Moment) -> None:
        """Score the sets by the chain as it is, usually its offset alone."""
        self._raws = [moment.ensemble.replay(one.columns, self.n_threads) for one in self.sets]

    def step(self, moment: Moment) -> Stop | None:
        """Take the newest step on the scores of each set too, and record the metrics."""
        for one, raw in zip(self.sets, self._raws, strict=True):
            moment.ensemble.advance(one.columns, raw, moment.step - 1, self.n_threads)
            for metric in self.metrics:
                value = metric(one.y, user_shape(raw), moment.loss, one.weight)
                self.result[one.name][metric.name].append(value)
        return None

    @property
    def watched(self) -> tuple[str, Metric]:
        """The set and metric that decide which iterate is best: first metric, last set."""
        return self.sets[-1].name, self.metrics[0]

    def best(self) -> tuple[int, float]:
        """Number of steps of the best iterate by what is watched, and its score."""
        name, metric = self.watched
        values = self.result[name][metric.name]
        best = 0
        for k, value in enumerate(values):
            if metric.better(value, than=values[best]):
                best = k
        return best + 1, values[best]


class EarlyStopping(BaseCallback):
    """Stops when the first metric on the last evaluation set has not improved for some rounds."""

    def __init__(self, history: History, rounds: int) -> None:
        self.history = history
        self.rounds = rounds
        self._best = (0, float("nan"))

    def start(self, moment: Moment) -> None:
        """Forget an earlier chain."""
        self._best = (moment.step, float("nan"))

    def step(self, moment: Moment) -> Stop | None:
        """Compare the newest score with the best one so far."""
        name, metric = self.history.watched
        value = self.history.result[name][metric.name][-1]
        if metric.better(value, than=self._best[1]):
            self._best = (moment.step, value)
        if moment.step - self._best[0] < self.rounds:
            return None
        if np.isnan(self._best[1]):
            raise ValueError(
                f"{metric.name} on {name} was NaN at each of {self.rounds} steps, so that early"
                " stopping has nothing to go by; choose another eval_metric or evaluation set"
            )
        return Stop(
            f"{metric.name} on {name} has not improved for {self.rounds} steps; "
            f"best {self._best[1]:.6g} after {self._best[0]} steps"
        )


class Progress(BaseCallback):
    """Shows steps, mean training loss, watched metric and time left on stderr.

    A progress bar if `rich` is installed, else one plain line a second at most.
    """

    def __init__(self, n_steps: int, history: History | None = None) -> None:
        self.n_steps = n_steps
        self.history = history
        self._started = self._shown = 0.0
        self._bar: Any = None

    def start(self, moment: Moment) -> None:
        """Open the bar."""
        self._started = self._shown = time.monotonic()
        self._bar = _open_bar(self.n_steps)

    def step(self, moment: Moment) -> Stop | None:
        """Show the chain, ten times a second on a bar and once a second in lines."""
        now = time.monotonic()
        if now - self._shown >= (1.0 if self._bar is None else 0.1):
            self._shown = now
            self._show(moment)
        return None

    def finish(self, moment: Moment) -> None:
        """Show the last step and close the bar."""
        self._show(moment)
        self.close()

    def close(self) -> None:
        """Give the terminal back, also when the chain broke off."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self, moment: Moment) -> None:
        words = self._scores(moment)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=moment.step, scores=words)
            return
        spent = time.monotonic() - self._started
        left = spent * (self.n_steps - moment.step) / max(moment.step, 1)
        line = f"sglb: step {moment.step}/{self.n_steps}  {words}  {left:.0f} s left"
        print(line, file=sys.stderr)

    def _scores(self, moment: Moment) -> str:
        rows = moment.training_set
        loss = moment.loss.loss(rows.y, user_shape(moment.raw))
        words = f"loss {np.average(loss, weights=rows.weight):.5f}"
        if self.history is not None and self.history.sets:
            name, metric = self.history.watched
            values = self.history.result[name][metric.name]
            words += f"  {name} {metric.name} {values[-1]:.5f}" if values else ""
        return words


def _open_bar(n_steps: int) -> Any:
    """Return a running rich progress bar, or None if rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as TimeLeft
    except ImportError:
        return None
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[scores]}"), TimeLeft())
    bar = Progress(*columns, console=Console(stderr=True))
    bar.add_task("steps", total=n_steps, scores="")
    bar.start()
    return bar


def check_callbacks(callbacks: Iterable[Callback]) -> list[Callback]:
    """Return callbacks as a list; refuse what cannot be called after a step, before any work."""
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks must be a list of callbacks, not {callbacks!r}")
    listed = list(callbacks)
    for callback in listed:
        if not all(callable(getattr(callback, name, None)) for name in ("start", "step", "finish")):
            raise TypeError(
                f"{callback!r} is not a callback: it needs start, step and finish; derive it from "
                "sglb.BaseCallback to have them"
            )
    return listed
