"""Log parameters, scores and the reason of an early stop to MLflow's active run."""

import re
from typing import Any

from sglb import BaseCallback, StepInfo, Stop
from sglb.integrations.requirement import required_by


class MLflowLogging(BaseCallback):
    """Logs a chain to the active MLflow run, or to a new one if none is active.

    At the start it logs the parameters, "auto" resolved; at the first, every `every`-th and the
    last step `training-loss` and `<set>-<metric>` of all evaluation sets; at the end, if the chain
    stopped early, the reason as the tag `stopped`. `prefix` is put before each of these names: in a
    run of several fits each needs its own, because MLflow does not let parameters change.
    """

    def __init__(self, every: int = 10, prefix: str = "") -> None:
        with required_by("MLflowLogging", "mlflow"):
            import mlflow
        if every < 1:
            raise ValueError(f"every={every!r} is not allowed; use a whole number >= 1")
        self.every = every
        self.prefix = prefix
        self._mlflow: Any = mlflow
        self._first = 0
        self._logged = -1

    def start(self, info: StepInfo) -> None:
        """Log the parameters."""
        self._first, self._logged = info.step, -1
        self._mlflow.log_params(
            {f"{self.prefix}{name}": value for name, value in info.parameters.items()}
        )

    def step(self, info: StepInfo) -> Stop | None:
        """Log the scores of a step that is due."""
        if info.step == self._first + 1 or info.step % self.every == 0:
            self._log(info)
        return None

    def finish(self, info: StepInfo) -> None:
        """Log the last step, and why the chain stopped."""
        if info.step != self._logged:
            self._log(info)
        if info.stop is not None:
            self._mlflow.set_tag(f"{self.prefix}stopped", info.stop.reason)

    def _log(self, info: StepInfo) -> None:
        scores = {"training-loss": info.training_loss}
        for name, values in info.scores.items():
            scores |= {f"{name}-{metric}": value for metric, value in values.items()}
        self._mlflow.log_metrics(
            {_allowed(f"{self.prefix}{name}"): value for name, value in scores.items()},
            step=info.step,
        )
        self._logged = info.step


def _allowed(name: str) -> str:
    """Return a name that MLflow accepts: a user's function may be called <lambda>."""
    return re.sub(r"[^\w\-. /]", "_", name)
