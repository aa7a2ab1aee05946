"""What a chain learns to predict: losses, metrics and encoders are given a target.

Nothing in it is missing: a row without a stated weight weighs 1, and a target of numbers has no
classes, which is an empty array.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb import sums
from sglb.caching import cached_property
from sglb.costs import NO_COSTS, copy_costs, realised_costs, take_costs
from sglb.queries import Queries
from sglb.row_numbers import RowNumbers
from sglb.weights import RowSelection, are_equal, as_weights, kernel_weight, take_weight

Floats = NDArray[np.float64]
Task = Literal["regression", "binary", "multiclass", "ranking"]

# Weights with a larger mean are seldom numbers of rows.
MOST_REPEATS = 50.0


@dataclass(frozen=True)
class Target:
    """Values, weights, groups and costs of rows, and the classes behind the values.

    Values are numbers or, with classes, indices of `classes`. Weights are multiplicities. Rows of
    one group belong together, as the documents of a query do; rows without groups are independent.
    Numbers of rows in groups are relevances. `numbers` says which rows of a larger table they are;
    rows that are taken are a table by themselves. Costs are those of decisions about a row, by its
    class (`sglb.costs`).
    """

    values: Floats  # (n_rows,)
    weight: Floats  # (n_rows,)
    groups: NDArray[np.int64]  # (n_rows,), or (0,) without groups
    classes: NDArray[Any]  # (n_classes,) labels, none for numbers
    task: Task
    numbers: RowNumbers
    costs: Floats = field(
        default_factory=lambda: NO_COSTS
    )  # (n_rows, n_classes, n_classes), or none

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        groups: ArrayLike = (),
        classes: ArrayLike = (),
    ) -> Self:
        """Build a target; what is not stated gets its neutral value."""
        numbers = np.ascontiguousarray(values, dtype=np.float64)
        labels = np.asarray(classes)
        return cls(
            numbers,
            as_weights(weight, len(numbers)),
            np.asarray(groups, dtype=np.int64),
            labels,
            task_of(len(labels), ranked=np.size(groups) > 0),
            RowNumbers(0, len(numbers)),
        )

    def __len__(self) -> int:
        return len(self.values)

    def __getstate__(self) -> dict[str, Any]:
        """Keep what was stated; equal weights, a view of a number, would become an array."""
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return state | {"weight": None} if are_equal(self.weight) else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        weight = as_weights(state["weight"], len(state["values"]))
        self.__dict__.update(state, weight=weight)

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for numbers."""
        return len(self.classes)

    @property
    def kernel_weight(self) -> Floats | None:
        """Weights as kernels read them: None where every row weighs 1."""
        return kernel_weight(self.weight)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights: the N of the theory."""
        return float(len(self)) if are_equal(self.weight) else sums.total(self.weight)

    @cached_property
    def queries(self) -> Queries:
        """Where the rows of each group are; rows without groups are a single query."""
        return Queries.of(self.groups if len(self.groups) else np.zeros(len(self), np.int64))

    @cached_property
    def computed(self) -> list[tuple[Any, Floats]]:
        """Values of rows that losses have computed and need again, each with what they are of."""
        return []

    @cached_property
    def weight_unit(self) -> float:
        """Weight of an ordinary row."""
        return weight_unit(self.weight)

    def mean(self, values: ArrayLike) -> float:
        """Return the weighted mean of values (n_rows,), exact but for one rounding."""
        return sums.mean(values, self.weight)

    def take(self, rows: RowSelection) -> "Target":
        """Return some of the rows."""
        if isinstance(rows, slice) and rows == slice(None):
            return self.numbered(RowNumbers(0, len(self)))
        values = self.values[rows]
        return replace(
            self,
            values=values,
            weight=take_weight(self.weight, rows),
            groups=self.groups[rows] if len(self.groups) else self.groups,
            numbers=RowNumbers(0, len(values)),
            costs=take_costs(self.costs, rows),
        )

    def numbered(self, numbers: RowNumbers) -> "Target":
        """Return the rows as those of a larger table."""
        return self if numbers == self.numbers else replace(self, numbers=numbers)

    def in_groups(self, groups: NDArray[np.int64]) -> "Target":
        """Return the same rows with these groups; without groups, unchanged."""
        if not len(groups):
            return self
        return replace(self, groups=groups, task=task_of(self.n_classes, ranked=True))

    def with_costs(self, costs: Floats) -> "Target":
        """Return the rows with costs of decisions, (n_rows, n_classes, n_classes)."""
        return replace(self, costs=costs)

    @cached_property
    def realised_costs(self) -> Floats:
        """What each decision costs each row, (n_rows, n_classes), none without costs."""
        return realised_costs(self.costs, self.values) if len(self.costs) else np.empty((0, 0))

    def copies(self, n_copies: int) -> "Target":
        """Return the rows `n_copies` times, one copy after the other, with a share of the weight.

        Each copy has groups of its own: the copies of a query are queries by themselves.
        """
        if n_copies == 1:
            return self
        return replace(
            self,
            values=np.tile(self.values, n_copies),
            weight=np.tile(self.weight / n_copies, n_copies),
            groups=_copied_groups(self.groups, n_copies),
            numbers=RowNumbers(0, len(self), n_copies),
            costs=copy_costs(self.costs, n_copies),
        )


def _copied_groups(groups: NDArray[np.int64], n_copies: int) -> NDArray[np.int64]:
    """Return groups of copies, which do not share a number."""
    span = int(np.ptp(groups)) + 1 if len(groups) else 0
    return np.concatenate([groups + copy * span for copy in range(n_copies)])


def task_of(n_classes: int, *, ranked: bool = False) -> Task:
    """Return what there is to predict; no classes are numbers, of rows in groups relevances."""
    if not n_classes:
        return "ranking" if ranked else "regression"
    return "binary" if n_classes <= 2 else "multiclass"


def weight_unit(weight: Floats, n_copies: int = 1) -> float:
    """Return the weight of an ordinary row: the mean weight over its clip to [1, MOST_REPEATS].

    So weights are multiplicities, unit 1, while their mean is within those bounds: a row of weight
    2 is what two rows are. Whole weights never have a smaller mean, as rows of weight
    0 are dropped. Below, weights are measured by their mean, so that weights normalised to any sum
    mean the same; above, a row stands for MOST_REPEATS rows on average. Nowhere does the unit jump.
    In each of `n_copies` copies of the rows a row has a share of its weight.
    """
    if are_equal(weight) or not len(weight):
        return 1.0
    largest = float(weight.max()) or 1.0
    mean = sums.mean(weight / largest) * largest * n_copies
    return mean / min(max(mean, 1.0), MOST_REPEATS) / n_copies
