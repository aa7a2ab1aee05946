"""`sglb train`: train a model on a table and write it to a file."""

import inspect
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb import Checkpoint, SGLBClassifier, SGLBRegressor, TimeLimit
from sglb.cli.out_of_core import TableOnDisk
from sglb.cli.reports import console
from sglb.cli.rows import TableInMemory, TrainingRows, TrainingSource, TrainOptions
from sglb.cli.wording import flag, naming_options
from sglb.losses import LOSSES
from sglb.tables import STANDARD, TableError, check_output

# More different whole numbers than this are a quantity, not classes.
MOST_CLASSES = 20
# Of more different labels than that, up to this share of text are errors in a column of numbers.
MOST_ERRORS = 0.1


@dataclass(frozen=True)
class RunOptions:
    """How long to train, and what to begin with."""

    checkpoint: Path | None = None
    resume: bool = False
    time_limit: float | None = None
    init_model: Path | None = None

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.resume and self.checkpoint is None:
            raise ValueError("--resume needs --checkpoint, the file to go on from")

    def arguments(self) -> dict[str, Any]:
        """Return what fit is to be called with."""
        callbacks: list[Any] = []
        if self.checkpoint is not None:
            callbacks.append(Checkpoint(self.checkpoint))
        if self.time_limit is not None:
            callbacks.append(TimeLimit(self.time_limit))
        resume_from = self.checkpoint if self.resume else None
        return {
            "callbacks": callbacks,
            "resume_from": resume_from,
            "init_model": self.init_model,
        }


def guess_task(y: NDArray[Any], loss: str | None = None) -> tuple[str, str]:
    """Return the task of a loss or, without a loss, of a target, and why."""
    if loss in LOSSES:
        if LOSSES[loss].task == "ranking":
            raise ValueError(f"--loss {loss} is for rankings; use sglb.SGLBRanker in Python")
        task = "regression" if LOSSES[loss].task == "regression" else "classification"
        return task, f"--loss {loss}"
    if y.dtype.kind == "U":
        _reject_mixed_target(y)
    if y.dtype.kind in "Ub":
        return "classification", "text labels" if y.dtype.kind == "U" else "true/false labels"
    values = np.unique(y)
    if y.dtype.kind in "iu" and values.size <= MOST_CLASSES:
        return "classification", f"{values.size} different whole numbers"
    if np.isin(values, (0.0, 1.0)).all():
        return "classification", "labels 0 and 1"
    return "regression", "many different numbers"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _reject_mixed_target(y: NDArray[Any]) -> None:
    """Reject a target of many different values that are nearly all numbers."""
    labels, first = np.unique(y, return_index=True)
    if labels.size <= MOST_CLASSES:
        return
    errors = [row for label, row in zip(labels, first, strict=True) if not _is_number(str(label))]
    if errors and len(errors) <= MOST_ERRORS * labels.size:
        row = min(errors)
        raise TableError(
            f"the target is numbers except for {len(errors)} of {labels.size:,} different values,"
            f" the first {str(y[row])!r} in row {row}; correct or leave out these rows, or state"
            " --task classification"
        )


def make_model(task: str, parameters: dict[str, Any]) -> Any:
    """Return the estimator of a task; reject parameters that it does not have."""
    estimator = SGLBClassifier if task == "classification" else SGLBRegressor
    for name in parameters:
        if name not in inspect.signature(estimator).parameters:
            raise ValueError(f"{flag(name)} has no effect in a {task} task; see --task")
    return estimator(**parameters)


def train(
    options: TrainOptions,
    parameters: dict[str, Any],
    destination: Path,
    run: RunOptions,
    *,
    verbose: bool,
) -> None:
    """Train a model by the options and write it to `destination`."""
    if destination == STANDARD:
        raise ValueError("--model needs the name of a file: a model is not written to a terminal")
    check_output(destination, options.table, options.valid, run.checkpoint, run.init_model)
    options.check(parameters)
    run.check()
    out = console()
    source: TrainingSource = TableOnDisk(options) if options.out_of_core else TableInMemory(options)
    y, loss = source.rows.y, parameters.get("loss")
    task, reason = guess_task(y, loss) if options.task == "auto" else (options.task, "as asked")
    out.print(source.title)
    source.show_columns(quiet=not verbose)
    out.print(f"task: {task} ({reason})")
    if task == "regression" and y.dtype.kind == "U":
        why = source.why_text()
        words = f": it {why}" if why else ""
        raise ValueError(
            f"regression needs numbers, target column {options.target!r} holds text{words}"
        )
    held_out = source.evaluation(task, parameters["random_state"])
    if options.categorical:
        parameters = parameters | {"categorical_features": source.categorical()}
    started = time.perf_counter()
    with naming_options():
        model = make_model(task, parameters)
        fit(model, source.rows, held_out, options.eval_metric, run.arguments())
    seconds = time.perf_counter() - started
    model.save(destination)
    chains = f" in {len(model.traces_):,} chains" if len(model.traces_) > 1 else ""
    n_trees = sum(len(trace) for trace in model.traces_)
    out.print(f"trained {n_trees:,} trees{chains} in {seconds:.1f} s")
    if held_out is not None:
        metric = options.eval_metric[0] if options.eval_metric else "loss"
        out.print(
            f"best after {model.best_iteration_:,} trees: {metric} {model.best_score_:.6g}"
            f" on {held_out.y.size:,} evaluation rows"
        )
    size = destination.stat().st_size
    out.print(f"saved {destination} ({size / 1e3:,.0f} kB)")


def fit(
    model: Any,
    rows: TrainingRows,
    held_out: TrainingRows | None,
    metrics: Sequence[str],
    run: dict[str, Any],
) -> Any:
    """Fit an estimator to rows and evaluate it on held-out rows."""
    if held_out is None:
        return model.fit(rows.X, rows.y, sample_weight=rows.weight, **run)
    evaluation = (
        (held_out.X, held_out.y)
        if held_out.weight is None
        else (held_out.X, held_out.y, held_out.weight)
    )
    return model.fit(
        rows.X,
        rows.y,
        sample_weight=rows.weight,
        eval_set=[evaluation],
        eval_metric=list(metrics) or None,
        **run,
    )
