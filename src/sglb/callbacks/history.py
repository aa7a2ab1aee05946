"""Scores of evaluation sets: each step is applied to their rows too."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb.callbacks.base import BaseCallback, Evaluation, Floats, StepInfo, Stop
from sglb.losses import Loss
from sglb.losses.shapes import user_shape
from sglb.metrics import Metric
from sglb.target import Target
from sglb.trace import Trace, mean_raw


@dataclass(frozen=True)
class EvaluationSet:
    """Rows that are scored but not trained on: codes (n_features, n_rows) and target."""

    name: str
    columns: NDArray[np.uint8]
    target: Target


class History(BaseCallback):
    """Records the metrics of evaluation sets, and passes the newest to the callbacks after it.

    `result[set][metric]` is a list whose entry k - 1 belongs to the chain after k steps.
    """

    def __init__(
        self, sets: Sequence[EvaluationSet], metrics: Sequence[Metric], n_threads: int = 1
    ) -> None:
        self.sets = tuple(sets)
        self.evaluation = Evaluation(tuple(rows.name for rows in sets), tuple(metrics))
        self.n_threads = n_threads
        self.result: dict[str, dict[str, list[float]]] = {
            rows.name: {metric.name: [] for metric in metrics} for rows in sets
        }
        self._states: list[Floats] = []
        self._trace: Trace | None = None

    def start(self, info: StepInfo) -> None:
        """Compute the state of each set at the start of the run, usually the offset alone."""
        info.evaluation = self.evaluation
        self._follow(info.trace)

    def step(self, info: StepInfo) -> Stop | None:
        """Apply the newest step to each set, and record the metrics."""
        info.evaluation = self.evaluation
        is_followed = info.trace is self._trace
        if not is_followed:  # chains that exchange temperatures show another one
            self._follow(info.trace)
        for rows, state in zip(self.sets, self._states, strict=True):
            if is_followed:
                info.trace.advance(rows.columns, state, info.step - 1, self.n_threads)
            info.scores[rows.name] = self._record(rows, state[0], info.loss)
        return None

    def _follow(self, trace: Trace) -> None:
        """Compute the state of each set after the steps of a trace."""
        self._trace = trace
        self._states = [trace.replay(rows.columns, self.n_threads) for rows in self.sets]

    def record_mean(self, traces: Sequence[Trace], loss: Loss) -> None:
        """Record the mean of chains after each step; a chain that has ended stays where it is."""
        states = [[trace.start(len(rows.target)) for trace in traces] for rows in self.sets]
        for step in range(max(len(trace) for trace in traces)):
            for rows, of_chains in zip(self.sets, states, strict=True):
                for trace, state in zip(traces, of_chains, strict=True):
                    if step < len(trace):
                        trace.advance(rows.columns, state, step, self.n_threads)
                self._record(rows, mean_raw(of_chains), loss)

    def _record(self, rows: EvaluationSet, raw: Floats, loss: Loss) -> dict[str, float]:
        """Add the metrics of raw scores (n_outputs, n_rows) to the result, and return them."""
        scores = {}
        for metric in self.evaluation.metrics:
            value = scores[metric.name] = metric(rows.target, user_shape(raw), loss)
            self.result[rows.name][metric.name].append(value)
        return scores

    def best(self) -> tuple[int, float]:
        """Return the number of steps to the best watched score, and that score."""
        name, metric = self.evaluation.watched
        values = self.result[name][metric.name]
        best = 0
        for k, value in enumerate(values):
            if metric.better(value, than=values[best]):
                best = k
        return best + 1, values[best]
