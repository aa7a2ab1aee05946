"""What a callback is, and what it sees of the chain.

`boosting.boost` calls start once, step after every step, finish once, each with a `StepInfo`. A
step that returns `Stop(reason)` ends the chain. Without callbacks the loop does nothing for them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sglb.ensemble import Ensemble
from sglb.losses import Loss
from sglb.metrics import Metric
from sglb.samplers import Move
from sglb.shard import Rows
from sglb.structure import Structure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stop:
    """Returned by a callback's step, ends the chain; progress shows the reason."""

    reason: str


@dataclass(frozen=True)
class Evaluation:
    """What is scored after each step: the names of the evaluation sets, and the metrics."""

    sets: tuple[str, ...]
    metrics: tuple[Metric, ...]

    @property
    def watched(self) -> tuple[str, Metric]:
        """The set and metric that decide which iterate is best: last set, first metric."""
        return self.sets[-1], self.metrics[0]


@dataclass(slots=True)
class StepInfo:
    """The chain after `step` of `n_steps` planned steps, as callbacks see it.

    `scores[set][metric]` are the scores of this step; they are empty without evaluation sets and
    before the first step. `evaluation` says what is scored, `parameters` what the chain runs with
    ("auto" resolved), `stop` why the chain ends early, once a callback has asked for it.

    `structure` and `values` (2^depth, n_outputs) are the newest tree, `move` is how the chain came
    by it; `raw` (n_outputs, n_rows) are the scores of the training rows. At the start there is no
    tree yet: these three are None. Arrays are the loop's own and change with the next step: read
    them, copy what you keep, do not write.
    """

    step: int
    n_steps: int
    ensemble: Ensemble
    structure: Structure | None
    values: Floats | None
    move: Move | None
    rows: Rows
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    stop: Stop | None = None
    _training_loss: float | None = field(default=None, init=False, repr=False)

    @property
    def training_loss(self) -> float:
        """Weighted mean loss of the training rows, computed when it is first read in a step."""
        if self._training_loss is None:
            self._training_loss = self.rows.energy().value() / self.rows.totals.total_weight
        return self._training_loss

    @property
    def loss(self) -> Loss:
        """The loss of the chain."""
        return self.rows.loss

    @property
    def raw(self) -> Floats:
        """Raw scores of the training rows, (n_outputs, n_rows)."""
        return self.rows.raw

    @property
    def watched_score(self) -> float | None:
        """The score by which iterates are compared: first metric, last set. None without sets."""
        if self.evaluation is None or not self.scores:
            return None
        name, metric = self.evaluation.watched
        return self.scores[name][metric.name]


class Callback(Protocol):
    """Anything with these three methods; `BaseCallback` has them all, and they do nothing.

    An estimator also calls `close`, if there is one, when the chain has ended in any way.
    """

    def start(self, info: StepInfo, /) -> None:
        """Hear that the chain is about to take its first step."""
        ...

    def step(self, info: StepInfo, /) -> Stop | None:
        """Look at the chain after a step; return Stop to end it."""
        ...

    def finish(self, info: StepInfo, /) -> None:
        """Hear that the chain has ended, not called if an error ended it."""
        ...


class BaseCallback:
    """A callback that does nothing: derive from it and override what you need."""

    def start(self, info: StepInfo) -> None:
        """Do nothing before the first step."""

    def step(self, info: StepInfo) -> Stop | None:
        """Do nothing after a step."""
        return None

    def finish(self, info: StepInfo) -> None:
        """Do nothing when the chain has ended."""


class Parameters(BaseCallback):
    """Tells the callbacks after it which parameters the chain runs with."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = parameters

    def start(self, info: StepInfo) -> None:
        """Hand the parameters over."""
        info.parameters = self.parameters

    def step(self, info: StepInfo) -> Stop | None:
        """Hand the parameters over."""
        info.parameters = self.parameters
        return None


def _is_callback(candidate: object) -> bool:
    methods = (getattr(candidate, name, None) for name in ("start", "step", "finish"))
    return not isinstance(candidate, type) and all(map(callable, methods))


def check_callbacks(callbacks: Iterable[Callback] | Callback | None) -> list[Callback]:
    """Return callbacks, several, one or None, as a list; reject before any work what is not one."""
    if callbacks is None:
        return []
    if _is_callback(callbacks):
        return [callbacks]  # type: ignore[list-item]  # it has the methods
    listed = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for candidate in listed:
        if isinstance(candidate, type):
            raise TypeError(
                f"callbacks must hold objects, and {candidate.__name__} is a class; "
                f"give {candidate.__name__}(...)"
            )
        if not _is_callback(candidate):
            raise TypeError(
                f"callbacks: {candidate!r} is not a callback; it needs start, step and finish: "
                "derive it from sglb.BaseCallback to have them"
            )
    return listed


def watches_steps(callback: Callback) -> bool:
    """Whether a callback does anything after a step: the step of `BaseCallback` does not."""
    return getattr(callback.step, "__func__", None) is not BaseCallback.step


def check_answer(callback: Callback, answer: object) -> Stop:
    """Return a callback's answer to a step if it is a Stop; reject what means nothing."""
    if isinstance(answer, Stop):
        return answer
    raise TypeError(
        f"step of {callback!r} returned {answer!r}; return None to go on or sglb.Stop(reason) to "
        "end the chain"
    )
