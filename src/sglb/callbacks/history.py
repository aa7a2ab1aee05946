"""Scores of evaluation sets: after each step its tree is applied to their rows as well."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglb.callbacks.base import BaseCallback, Evaluation, Floats, StepInfo, Stop
from sglb.losses.shapes import user_shape
from sglb.metrics import Metric


@dataclass(frozen=True)
class EvaluationSet:
    """Rows that are scored but not learned from: codes (n_features, n_rows), y and weight."""

    name: str
    columns: NDArray[np.uint8]
    y: Floats
    weight: Floats | None


class History(BaseCallback):
    """Records the metrics of evaluation sets, and tells the callbacks after it the newest ones.

    `result[set][metric]` is a list whose entry k - 1 belongs to the chain after k steps.
    """

    def __init__(
        self, sets: Sequence[EvaluationSet], metrics: Sequence[Metric], n_threads: int = 1
    ) -> None:
        self.sets = tuple(sets)
        self.evaluation = Evaluation(tuple(one.name for one in sets), tuple(metrics))
        self.n_threads = n_threads
        self.result: dict[str, dict[str, list[float]]] = {
            one.name: {metric.name: [] for metric in metrics} for one in sets
        }
        self._states: list[Floats] = []

    def start(self, info: StepInfo) -> None:
        """Bring the raw scores of the sets to where the chain is, usually its offset alone."""
        info.evaluation = self.evaluation
        self._states = [info.ensemble.replay(one.columns, self.n_threads) for one in self.sets]

    def step(self, info: StepInfo) -> Stop | None:
        """Take the newest step on the raw scores of each set too, and record the metrics."""
        info.evaluation = self.evaluation
        for one, state in zip(self.sets, self._states, strict=True):
            info.ensemble.advance(one.columns, state, info.step - 1, self.n_threads)
            scores = info.scores[one.name] = {}
            for metric in self.evaluation.metrics:
                value = metric(one.y, user_shape(state[0]), info.loss, one.weight)
                scores[metric.name] = value
                self.result[one.name][metric.name].append(value)
        return None

    def best(self) -> tuple[int, float]:
        """Number of steps of the best iterate by what is watched, and its score."""
        name, metric = self.evaluation.watched
        values = self.result[name][metric.name]
        best = 0
        for k, value in enumerate(values):
            if metric.better(value, than=values[best]):
                best = k
        return best + 1, values[best]
