"""The interface of a callback, and what it sees of the chain.

`boosting.boost` calls `start` once, `step` after every step and `finish` once, each with a
`StepInfo`. A `step` that returns `Stop(reason)` ends the chain.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sglb.losses import Loss
from sglb.metrics import Metric
from sglb.rows import Rows
from sglb.samplers import Move
from sglb.structure import Structure
from sglb.trace import Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stop:
    """Ends the chain when a callback's `step` returns it; progress displays show the reason."""

    reason: str


@dataclass(frozen=True)
class Evaluation:
    """The evaluation sets, by name, and the metrics that score them after each step."""

    sets: tuple[str, ...]
    metrics: tuple[Metric, ...]

    @property
    def watched(self) -> tuple[str, Metric]:
        """The set and metric that decide which state is best: last set, first metric."""
        return self.sets[-1], self.metrics[0]


@dataclass(slots=True)
class StepInfo:
    """The chain after `step` of `n_steps` planned steps, as callbacks see it.

    `scores[set][metric]` are the scores of this step, empty without evaluation sets and before the
    first step. `evaluation` names the sets and metrics, `parameters` are those of the chain with
    "auto" resolved, `stop` is the reason of an early end, once a callback has returned one. The
    first `n_replayed` steps are not computed but repeated: those of the checkpoint that is resumed,
    or of the model that is continued. The model has the first `n_inherited` of them, which the
    chain keeps: a stop among them ends it after the last.

    `structure` and `values` (2^depth, n_outputs) are the newest tree, `move` is the step that added
    it; these three are None at the start, before the first tree. `raw` (n_outputs, n_rows) are the
    scores of the training rows. Arrays belong to the loop and change with the next step: copy what
    you keep, and do not write.
    """

    step: int
    n_steps: int
    trace: Trace
    structure: Structure | None
    values: Floats | None
    move: Move | None
    rows: Rows
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    stop: Stop | None = None
    n_replayed: int = 0
    n_inherited: int = 0
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
        """The score by which states are compared: first metric, last set. None without sets."""
        if self.evaluation is None or not self.scores:
            return None
        name, metric = self.evaluation.watched
        return self.scores[name][metric.name]


class Callback(Protocol):
    """An object with these three methods, which `BaseCallback` has.

    An estimator also calls `close`, if the object has it, when the chain has ended, also by an
    error.
    """

    def start(self, info: StepInfo, /) -> None:
        """Run before the first step."""
        ...

    def step(self, info: StepInfo, /) -> Stop | None:
        """Run after each step; return Stop to end the chain."""
        ...

    def finish(self, info: StepInfo, /) -> None:
        """Run after the last step, unless an error ended the chain."""
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
    """Passes the parameters of the chain to the callbacks after it."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = parameters

    def start(self, info: StepInfo) -> None:
        """Set the parameters."""
        info.parameters = self.parameters

    def step(self, info: StepInfo) -> Stop | None:
        """Set the parameters."""
        info.parameters = self.parameters
        return None


def _is_callback(candidate: object) -> bool:
    methods = (getattr(candidate, name, None) for name in ("start", "step", "finish"))
    return not isinstance(candidate, type) and all(map(callable, methods))


def check_callbacks(callbacks: Iterable[Callback] | Callback | None) -> list[Callback]:
    """Return callbacks (a list, a single one or None) as a list; reject other objects."""
    if callbacks is None:
        return []
    if _is_callback(callbacks):
        return [callbacks]  # type: ignore[list-item]  # it has the methods
    listed = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for candidate in listed:
        if isinstance(candidate, type):
            raise TypeError(
                f"callbacks must be objects, and {candidate.__name__} is a class; "
                f"pass {candidate.__name__}(...)"
            )
        if not _is_callback(candidate):
            raise TypeError(
                f"callbacks: {candidate!r} is not a callback; it needs the methods start, step and "
                "finish, which a class derived from sglb.BaseCallback has"
            )
    return listed


def overrides_step(callback: Callback) -> bool:
    """Whether a callback has a `step` other than that of `BaseCallback`, which does nothing."""
    return getattr(callback.step, "__func__", None) is not BaseCallback.step


def check_stop(callback: Callback, result: object) -> Stop:
    """Return the result of a callback's `step` if it is a Stop, else raise TypeError."""
    if isinstance(result, Stop):
        return result
    raise TypeError(
        f"step of {callback!r} returned {result!r}; return None to go on or sglb.Stop(reason) to "
        "end the chain"
    )
