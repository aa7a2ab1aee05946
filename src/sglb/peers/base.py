"""What is read off the model of another library."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sglb.losses import Loss, get_loss

Array = NDArray[Any]

NO_CLASSES: Array = np.empty(0)


@dataclass(frozen=True)
class PeerModel:
    """A model of trees.

    objective    what it was trained for, in the words of its library
    classes      labels of the classes, (0,) for numbers
    raw          rows -> raw scores, (n_rows,) or (n_rows, n_outputs)
    leaves       rows -> any numbers for the leaves, (n_rows, n_trees)
    loss         the loss that goes with the objective, None where there is none
    """

    objective: str
    classes: Array
    raw: Callable[[Any], ArrayLike]
    leaves: Callable[[Any], ArrayLike]
    loss: Loss | None = None


def loss_of(
    names: Mapping[str, str], objective: str, n_classes: int = 0, **parameters: float
) -> Loss | None:
    """Return the loss that goes with an objective by a table of names, None where none does."""
    name = names.get(objective)
    return None if name is None else get_loss(name, n_classes=n_classes, **parameters)
