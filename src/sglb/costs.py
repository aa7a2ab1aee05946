"""What decisions cost: matrices of costs, and the cheapest decision by probabilities.

    costs[y, d]      cost of decision d where the class is y; a benefit is a negative cost
    costs[i, y, d]   the same of row i

An array of costs has a matrix for each row; one matrix for all rows is a view of it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb.weights import RowSelection

Floats = NDArray[np.float64]

NO_COSTS: Floats = np.empty((0, 0, 0))

LAYOUT = "costs[y, d] of decision d where the class is y"


def action_costs(cost: ArrayLike, benefit: ArrayLike) -> Floats:
    """Return the costs of two decisions, 1 to act on a row and 0 to leave it alone.

    To act costs `cost`, and brings `benefit` where the class is 1. Numbers give a matrix (2, 2),
    vectors with a value for each row an array (n_rows, 2, 2):

                    decision 0    decision 1
        class 0         0           cost
        class 1         0         cost - benefit
    """
    acting, gain = _numbers(cost, "cost"), _numbers(benefit, "benefit")
    if max(acting.ndim, gain.ndim) > 1 or (acting.ndim and gain.ndim and len(acting) != len(gain)):
        raise ValueError(
            "cost and benefit must be numbers or vectors of the same length, not of shapes"
            f" {acting.shape} and {gain.shape}"
        )
    acting, gain = np.broadcast_arrays(acting, gain)
    costs = np.zeros((*acting.shape, 2, 2))
    costs[..., 0, 1] = acting
    costs[..., 1, 1] = acting - gain
    return costs


def _numbers(values: ArrayLike, name: str) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite")
    return numbers


def read_costs(costs: Any, n_rows: int, classes: ArrayLike, name: str = "costs") -> Floats:
    """Return a matrix of costs, or one for each row, as an array (n_rows, n_classes, n_classes)."""
    labels = np.asarray(classes).tolist()
    n_classes = len(labels)
    _check_order(costs, labels, name)
    try:
        numbers = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, {LAYOUT}: {error}") from error
    square = (n_classes, n_classes)
    if numbers.shape not in (square, (n_rows, *square)):
        raise ValueError(
            f"{name} has the shape {numbers.shape}; with {n_classes} classes it must be {square},"
            f" {LAYOUT}, or ({n_rows}, {n_classes}, {n_classes}), such a matrix for each row."
            " sglb.costs.action_costs makes them of a cost and a benefit"
        )
    if not np.isfinite(numbers).all():
        where = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise ValueError(f"{name} must be finite; {name}{where} is {numbers[tuple(where)]}")
    return np.broadcast_to(numbers, (n_rows, *square))


def _check_order(costs: Any, classes: list[Any], name: str) -> None:
    """Reject a frame whose rows or columns are named by the classes in another order."""
    for axis in ("index", "columns"):
        names = getattr(costs, axis, ())
        names = [] if callable(names) else list(names)
        are_classes = len(names) == len(classes) and all(each in classes for each in names)
        if are_classes and names != classes:
            raise ValueError(
                f"the {axis} of {name} is {names}; put rows and columns in the order of the"
                f" classes, {classes}"
            )


def take_costs(costs: Floats, rows: RowSelection) -> Floats:
    """Return the costs of some rows; a matrix for all rows stays a view of one."""
    if not len(costs) or costs.strides[0]:
        return costs[rows] if len(costs) else costs
    n_rows = len(np.empty(len(costs), dtype=np.bool_)[rows])
    return np.broadcast_to(costs[0], (n_rows, *costs.shape[1:]))


def copy_costs(costs: Floats, n_copies: int) -> Floats:
    """Return the costs `n_copies` times, one copy after the other."""
    if not len(costs) or costs.strides[0]:
        return np.tile(costs, (n_copies, 1, 1)) if len(costs) else costs
    return np.broadcast_to(costs[0], (n_copies * len(costs), *costs.shape[1:]))


def realised_costs(costs: Floats, values: Floats) -> Floats:
    """Return what each decision costs a row whose class is known, (n_rows, n_classes)."""
    of_class: Floats = costs[np.arange(len(values)), values.astype(np.intp)]
    return of_class


def expected_costs(costs: Floats, probability: Floats) -> Floats:
    """Return what each decision is expected to cost by probabilities (n_rows, n_classes)."""
    expected = np.zeros(probability.shape)
    for label in range(probability.shape[1]):  # in a fixed order, the same bits on any machine
        expected += probability[:, label, None] * costs[:, label]
    return expected


def cheapest(costs: Floats, probability: Floats) -> NDArray[np.intp]:
    """Return the index of the decision of least expected cost; of equal ones the first."""
    index: NDArray[np.intp] = expected_costs(costs, probability).argmin(axis=1)
    return index
