"""Prune Optuna trials that fall behind, before their last step."""

from typing import TYPE_CHECKING

from sglb import BaseCallback, StepInfo, Stop
from sglb.integrations.requirement import required_by

if TYPE_CHECKING:
    from optuna import Trial


class OptunaPruning(BaseCallback):
    """Reports a score to an Optuna trial after each step, and ends the trial if Optuna prunes it.

    The score is that of `metric` on the evaluation set `set`, by default what early stopping
    watches: the first metric on the last set. A trial that is pruned raises `optuna.TrialPruned`,
    which `study.optimize` expects. With `every` Optuna is asked every n steps only, which is
    cheaper where the study is kept in a database.
    """

    def __init__(
        self, trial: "Trial", metric: str | None = None, set: str | None = None, every: int = 1
    ) -> None:
        with required_by("OptunaPruning", "optuna"):
            from optuna import TrialPruned
        if every < 1:
            raise ValueError(f"every={every!r} is not allowed; use a whole number >= 1")
        self.trial = trial
        self.metric = metric
        self.set = set
        self.every = every
        self._pruned = TrialPruned
        self._watched = ("", "")

    def start(self, info: StepInfo) -> None:
        """Choose the score to report; reject a study that would prune the better trials."""
        evaluation = info.evaluation
        if evaluation is None:
            raise ValueError(
                "OptunaPruning needs an evaluation set: pass eval_set=[(X, y)], or X_val and "
                "y_val, to fit"
            )
        name, metric = evaluation.watched
        if self.set is not None:
            name = self.set
            if name not in evaluation.sets:
                allowed = ", ".join(evaluation.sets)
                raise ValueError(f"set={name!r} is not an evaluation set; allowed: {allowed}")
        if self.metric is not None:
            metrics = {metric.name: metric for metric in evaluation.metrics}
            if self.metric not in metrics:
                raise ValueError(
                    f"metric={self.metric!r} is not computed; eval_metric has: {', '.join(metrics)}"
                )
            metric = metrics[self.metric]
        self._check_direction(metric.name, "maximize" if metric.greater_is_better else "minimize")
        self._watched = name, metric.name

    def _check_direction(self, metric: str, expected: str) -> None:
        study = getattr(self.trial, "study", None)  # a FixedTrial has none, and prunes nothing
        if study is None:
            return
        directions = [direction.name.lower() for direction in study.directions]
        if len(directions) > 1:
            raise ValueError(
                f"OptunaPruning needs a study with one objective, and this one has"
                f" {len(directions)}: Optuna does not prune with several"
            )
        if directions != [expected]:
            raise ValueError(
                f"the study is to {directions[0]}, but better values of {metric} are "
                f"{'greater' if expected == 'maximize' else 'smaller'}: use "
                f"optuna.create_study(direction={expected!r}) or another metric"
            )

    def step(self, info: StepInfo) -> Stop | None:
        """Report the score; raise TrialPruned if the trial has fallen behind."""
        if info.step % self.every:
            return None
        name, metric = self._watched
        score = info.scores[name][metric]
        self.trial.report(score, info.step)
        if self.trial.should_prune():
            raise self._pruned(f"pruned after step {info.step}: {metric} on {name} is {score:.6g}")
        return None
