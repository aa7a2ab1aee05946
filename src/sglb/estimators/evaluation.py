"""Evaluation sets in every form that `fit` accepts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_GROUPS: NDArray[np.int64] = np.empty(0, dtype=np.int64)

EvalSets = Sequence[tuple[Any, ...]] | tuple[Any, ...] | None


class StatedSet(NamedTuple):
    """Training rows or an evaluation set as the user gave them."""

    X: Any
    y: Any
    weight: Any = None
    groups: NDArray[np.int64] = NO_GROUPS  # numbers of groups, none for independent rows
    costs: Any = None  # of decisions: a matrix, or one for each row


def list_sets(eval_set: EvalSets, X_val: Any, y_val: Any) -> list[StatedSet]:
    """Return `eval_set`, a list or a single (X, y) or (X, y, weight), and after it X_val, y_val."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val must be passed together; one of them is missing")
    if isinstance(eval_set, tuple) and eval_set and not isinstance(eval_set[0], tuple | list):
        eval_set = [eval_set]
    sets = []
    for number, stated in enumerate(eval_set or ()):
        if not isinstance(stated, tuple | list) or len(stated) not in (2, 3):
            raise ValueError(f"eval_set[{number}] must be (X, y) or (X, y, weight)")
        sets.append(StatedSet(*stated))
    return sets if X_val is None else [*sets, StatedSet(X_val, y_val)]


def check_watched(
    sets: Sequence[StatedSet], early_stopping_rounds: int | None, eval_metric: Any
) -> None:
    """Reject what asks for scores where there are no rows to score."""
    requested = {"early_stopping_rounds": early_stopping_rounds, "eval_metric": eval_metric}
    for name, value in requested.items():
        if value is not None and not sets:
            raise ValueError(
                f"{name}={value!r} needs an evaluation set: pass eval_set=[(X, y)], or X_val "
                "and y_val, to fit"
            )


def with_eval_costs(
    sets: Sequence[StatedSet], costs: Any, eval_costs: Any, costs_val: Any, *, last_is_val: bool
) -> list[StatedSet]:
    """Return evaluation sets with their costs: as stated, else the matrix of the training rows.

    `costs_val` is that of X_val, the last set. Costs that differ from row to row cannot be guessed.
    """
    if costs_val is not None and not last_is_val:
        raise ValueError("costs_val was passed without X_val and y_val")
    matrix = costs if costs is not None and np.ndim(costs) == 2 else None
    n_listed = len(sets) - last_is_val
    listed = [matrix] * n_listed
    if eval_costs is not None:
        listed = list(eval_costs) if isinstance(eval_costs, list | tuple) else [eval_costs]
    if len(listed) != n_listed:
        raise ValueError(
            f"eval_costs has {len(listed)} entries, eval_set {n_listed}; pass a list with the costs"
            " of each set"
        )
    if last_is_val:
        listed.append(matrix if costs_val is None else costs_val)
    return [stated._replace(costs=of_set) for stated, of_set in zip(sets, listed, strict=True)]
