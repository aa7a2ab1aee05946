"""What the command line says of a model: its metrics on a table, and what it is."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sglb.metrics import METRICS
from sglb.tables import TableFile


def console(*, error: bool = False, wrap: bool = False) -> Console:
    """Return a console that prints names and paths as they are, without markup."""
    return Console(stderr=error, markup=False, highlight=False, emoji=False, soft_wrap=not wrap)


def say_notes(file: TableFile, more: Sequence[str] = ()) -> None:
    """Print what had to be assumed about a file, once, on standard error."""
    for note in [*file.notes, *more]:
        print(f"note: {file.name}: {note}", file=sys.stderr)
    file.notes.clear()


def plain_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table: first column flush left, the others flush right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left")
    return table


def metrics_of(
    model: Any, table: Any, y: NDArray[Any], weight: NDArray[np.float64] | None
) -> dict[str, float]:
    """Return every metric that has a meaning for the model's task, on these rows."""
    loss = model.loss_
    if loss is None:
        raise ValueError("the model's own loss is not in its file, so it cannot be evaluated")
    truth = _class_indices(model.classes_, y) if hasattr(model, "classes_") else _numbers(y)
    raw = model.predict_raw(table)
    return {
        name: metric(truth.astype(np.float64), raw, loss, weight)
        for name, metric in METRICS.items()
        if loss.task in metric.tasks
    }


def _numbers(y: NDArray[Any]) -> NDArray[Any]:
    """Refuse text where a regressor needs numbers."""
    if y.dtype.kind == "U":
        raise ValueError("the target column holds text, the model predicts numbers")
    return y


def _class_indices(classes: NDArray[Any], y: NDArray[Any]) -> NDArray[np.intp]:
    """Return each label's place among the model's classes."""
    if (classes.dtype.kind == "U") != (y.dtype.kind == "U"):
        raise ValueError(
            f"the target column holds {_kind(y)}, the model's classes are {_kind(classes)}"
        )
    known = np.isin(y, classes)
    if not known.all():
        row = int(np.argmin(known))
        shown = ", ".join(str(label) for label in classes[:10])
        raise ValueError(
            f"label {y[row].item()!r} in row {row} is not a class of the model: {shown}"
        )
    return np.searchsorted(classes, y)


def _kind(values: NDArray[Any]) -> str:
    return "text" if values.dtype.kind == "U" else "numbers"


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it: NumPy scalars unpacked, NaN as null, objects by name."""
    if isinstance(value, np.ndarray):
        return [plain_value(one) for one in value.tolist()]
    if isinstance(value, np.generic):
        return plain_value(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain_value(one) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [plain_value(one) for one in value]
    return repr(value)


def feature_names(model: Any) -> list[str]:
    """Return the model's feature names, or x0, x1, ... where it was trained without."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(names)


def top_features(model: Any, count: int) -> list[tuple[str, float]]:
    """Return the most important features, the first first."""
    share = np.asarray(model.feature_importances_)
    names = feature_names(model)
    return [(names[j], float(share[j])) for j in np.argsort(-share, kind="stable")[:count]]
