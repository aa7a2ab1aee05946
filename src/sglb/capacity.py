"""The best k rows: what is gained if only k can be acted upon.

A table, or each stratum of it, is a ranking by falling score, of which the first k rows are
selected. k is a count or a share of the rows; a row of weight 2 takes two of the k, so that weights
are multiplicities. Of rows with equal scores at the border each is selected in part, the mean over
their orders; the selected parts of all strata are added up. With s_i the part of row i, w_i its
weight, sums over all rows:

    precision   sum of w s over rows with y > 0, / sum of w s
    recall      the same, / sum of w over rows with y > 0
    profit      sum of w s times what acting on the row brings
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import sums
from sglb.costs import expected_costs
from sglb.errors import require_rows
from sglb.frame import read_groups, read_weight
from sglb.target import Target

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# k rows, or a share of the rows.
Capacity = int | float


def check_capacity(k: Any) -> Capacity:
    """Return k as an int, a count, or as a float, a share; reject what is neither."""
    if not isinstance(k, bool | np.bool_):
        if isinstance(k, Integral) and int(k) >= 1:
            return int(k)
        if isinstance(k, Real) and not isinstance(k, Integral) and 0.0 < float(k) <= 1.0:
            return float(k)
    raise ValueError(
        f"k={k!r} is not a capacity: a whole number of rows from 1 on, or a share in (0, 1], such"
        " as 0.05 (1.0 is all rows, 1 is a single one)"
    )


def selected_parts(score: Floats, weight: Floats, groups: Integers, k: Capacity) -> Floats:
    """Return which part of each row is among the first k of its group, in [0, 1].

    Without groups all rows are one ranking.
    """
    if not len(score):
        return np.empty(0)
    group = groups if len(groups) else np.zeros(len(score), dtype=np.int64)
    order = np.lexsort((-score, group))
    new_group = np.append(True, np.diff(group[order]) != 0)
    ranked = score[order]
    begins = new_group | np.append(True, ranked[1:] != ranked[:-1])
    block = np.add.accumulate(begins) - 1  # rows of a group with equal scores
    n_blocks = int(block[-1]) + 1
    of_block = sums.by_group(block, np.ones(len(score)), n_blocks, weight[order])
    up_to = sums.running(of_block)
    before = np.append(0.0, up_to[:-1])
    first = np.flatnonzero(new_group[begins])  # blocks that begin a group
    last = np.append(first[1:], n_blocks) - 1
    n_of = np.diff(np.append(first, n_blocks))
    places = np.full(len(first), float(k))
    if isinstance(k, float):
        places = k * (up_to[last] - before[first])
    left = np.repeat(places + before[first], n_of) - before
    with np.errstate(invalid="ignore", divide="ignore"):  # blocks without weight
        part = np.where(of_block > 0.0, np.clip(left / of_block, 0.0, 1.0), 0.0)
    parts = np.empty(len(score))
    parts[order] = part[block]
    return parts


def best_k(score: ArrayLike, k: Capacity, group: Any = None) -> NDArray[np.bool_]:
    """Return a mask of the k rows with the highest scores, of each group if there are groups.

    A share of the rows is rounded down. Of equal scores the first rows of the table are taken.
    """
    values, k = _read_scores(score, "score"), check_capacity(k)
    groups = _read_strata(group, len(values))
    chosen = np.zeros(len(values), dtype=bool)
    for number in np.unique(groups) if len(groups) else [0]:
        rows = np.flatnonzero(groups == number) if len(groups) else np.arange(len(values))
        # Room for the rounding of a share such as .29, which is 28.999999999999996 of 100.
        n_selected = k if isinstance(k, int) else int(np.floor(k * len(rows) + 1e-9))
        chosen[rows[np.argsort(-values[rows], kind="stable")[:n_selected]]] = True
    return chosen


def precision_at_k(
    y: ArrayLike,
    score: ArrayLike,
    k: Capacity,
    *,
    group: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Return the share of positive rows among the k rows with the highest scores.

    k is a number of rows or, a float, a share of them; with `group`, ids of strata, of each
    stratum. Positive is y > 0, or y == pos_label.
    """
    target = _read(y, score, group, sample_weight, pos_label)
    return precision(target, _read_scores(score, "score"), check_capacity(k))


def recall_at_k(
    y: ArrayLike,
    score: ArrayLike,
    k: Capacity,
    *,
    group: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Return the share of all positive rows that are among the k rows with the highest scores."""
    target = _read(y, score, group, sample_weight, pos_label)
    return recall(target, _read_scores(score, "score"), check_capacity(k))


def profit_at_k(
    y: ArrayLike,
    score: ArrayLike,
    k: Capacity,
    *,
    benefit: ArrayLike = 1.0,
    cost: ArrayLike = 0.0,
    group: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Return what acting on the k rows with the highest scores brings.

    Acting costs `cost`, and brings `benefit` where the row is positive; each is a number, or has
    one for each row.
    """
    target = _read(y, score, group, sample_weight, pos_label)
    positive, of_row = target.values > 0.0, {"benefit": benefit, "cost": cost}
    amounts = {}
    for name, stated in of_row.items():
        values = np.asarray(stated, dtype=np.float64)
        if values.shape not in ((), (len(target),)):
            raise ValueError(
                f"{name} must be a number or have one for each of {len(target)} rows, not the shape"
                f" {values.shape}"
            )
        amounts[name] = np.broadcast_to(values, len(target))
        require_rows(name, amounts[name], np.isfinite(amounts[name]), "a finite number")
    gained = np.where(positive, amounts["benefit"], 0.0) - amounts["cost"]
    raw = _read_scores(score, "score")
    parts = selected_parts(raw, target.weight, target.groups, check_capacity(k))
    return sums.total(parts * gained, target.weight)


def precision(target: Target, score: Floats, k: Capacity) -> float:
    """Return the share of rows with y > 0 among those selected, NaN if there are none."""
    parts = selected_parts(score, target.weight, target.groups, k)
    selected = sums.total(parts, target.weight)
    hits = sums.total(parts * (target.values > 0.0), target.weight)
    return hits / selected if selected > 0.0 else float("nan")


def recall(target: Target, score: Floats, k: Capacity) -> float:
    """Return the share of rows with y > 0 that are selected, NaN if there are none."""
    positive = (target.values > 0.0).astype(np.float64)
    total = sums.total(positive, target.weight)
    hits = sums.total(
        selected_parts(score, target.weight, target.groups, k) * positive, target.weight
    )
    return hits / total if total > 0.0 else float("nan")


def profit(target: Target, score: Floats, k: Capacity) -> float:
    """Return the profit of the selected rows: what they save by their costs, else y."""
    gained = target.values
    if len(target.costs):
        gained = target.realised_costs[:, 0] - target.realised_costs[:, 1]
    parts = selected_parts(score, target.weight, target.groups, k)
    return sums.total(parts * gained, target.weight)


def expected_savings(target: Target, probability: Floats) -> Floats:
    """Return what acting on each row is expected to save, by probabilities (n_rows, 2)."""
    expected = expected_costs(target.costs, probability)
    savings: Floats = expected[:, 0] - expected[:, 1]
    return savings


AT_CAPACITY: dict[str, Callable[[Target, Floats, Capacity], float]] = {
    "precision": precision,
    "recall": recall,
    "profit": profit,
}


def _read_scores(score: ArrayLike, name: str) -> Floats:
    values = np.asarray(score, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(
            f"{name} must be a vector, a score for each row, not an array of shape {values.shape};"
            " of predict_proba pass the column of the class that is sought"
        )
    require_rows(name, values, ~np.isnan(values), "a number")
    return values


def _read_strata(group: Any, n_rows: int) -> Integers:
    return np.empty(0, dtype=np.int64) if group is None else read_groups(group, n_rows)


def _read(y: ArrayLike, score: ArrayLike, group: Any, weight: Any, pos_label: Any) -> Target:
    """Return positive rows as 1, others as 0, or numbers as they are."""
    labels = np.asarray(y)
    if pos_label is not None:
        labels = labels == pos_label
    elif labels.dtype.kind not in "biuf":
        raise ValueError("y must be numbers, y > 0 for positive rows; or pass pos_label")
    values = labels.astype(np.float64)
    if values.ndim != 1 or np.shape(score) != values.shape:
        raise ValueError(
            f"y and score must be vectors of the same length, not {values.shape} and"
            f" {np.shape(score)}"
        )
    require_rows("y", values, np.isfinite(values), "a finite number")
    weights = read_weight(weight, values)
    return Target.of(values, weights, groups=_read_strata(group, len(values)))
