"""Early stopping: the chain ends when the watched score no longer improves."""

import numpy as np

from sglb.callbacks.base import BaseCallback, StepInfo, Stop


class EarlyStopping(BaseCallback):
    """Stops when the first metric on the last evaluation set has not improved for `rounds` steps.

    As a callback it only ends the chain; the estimators' `early_stopping_rounds` also returns to
    the best state. Rounds are counted from step `after` on, because a chain that starts hot gets
    worse before it gets better.
    """

    def __init__(self, rounds: int, after: int = 0) -> None:
        self.rounds = rounds
        self.after = after
        self._best = (0, float("nan"))

    def start(self, info: StepInfo) -> None:
        """Reset the best score; reject a chain without evaluation sets."""
        if info.evaluation is None:
            raise ValueError("EarlyStopping needs an evaluation set: pass eval_set=[(X, y)] to fit")
        self._best = (info.step, float("nan"))

    def step(self, info: StepInfo) -> Stop | None:
        """Compare the newest score with the best so far."""
        assert info.evaluation is not None  # start has checked it
        name, metric = info.evaluation.watched
        value = info.scores[name][metric.name]
        if metric.better(value, than=self._best[1]):
            self._best = (info.step, value)
        if info.step - max(self._best[0], self.after) < self.rounds:
            return None
        if np.isnan(self._best[1]):
            raise ValueError(
                f"{metric.name} on {name} was NaN at each of {self.rounds} steps, so that early"
                " stopping cannot compare them; choose another eval_metric or evaluation set"
            )
        return Stop(
            f"{metric.name} on {name} has not improved for {self.rounds} steps; "
            f"best {self._best[1]:.6g} after {self._best[0]} steps"
        )
