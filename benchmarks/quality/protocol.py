"""What is the same for every library."""

from dataclasses import dataclass
from typing import Any

# Of the rows of a table: to learn from, to stop by, to score on.
TRAIN, VALID, TEST = 0.65, 0.15, 0.20
MAX_ROUNDS = 1000
PATIENCE = 50  # rounds without a better loss on the validation rows before a library stops


@dataclass(frozen=True)
class Protocol:
    task: str  # "binary", "multiclass" or "regression"
    seed: int
    threads: int
    max_rounds: int = MAX_ROUNDS
    patience: int = PATIENCE


@dataclass(frozen=True)
class Part:
    """Rows of a table: a pandas frame, labels 0, 1, ... or numbers, weights where there are."""

    X: Any
    y: Any
    weight: Any = None


def choose(protocol, classifier, regressor):
    """The class for the task."""
    return regressor if protocol.task == "regression" else classifier


def answer(model, X, **options):
    """Probability of each class (n_rows, n_classes), or numbers (n_rows,)."""
    return (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(X, **options)


def categorical(frame):
    """Names of the columns with a category dtype."""
    return list(frame.select_dtypes("category").columns)
