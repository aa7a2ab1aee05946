"""Compute and print what the commands report: metrics, features, notes."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sglb import Target
from sglb.metrics import METRICS
from sglb.tables import TableFile


def console(*, error: bool = False, wrap: bool = False) -> Console:
    """Return a console that prints names and paths unchanged, without markup."""
    return Console(stderr=error, markup=False, highlight=False, emoji=False, soft_wrap=not wrap)


def print_notes(file: TableFile, more: Sequence[str] = ()) -> None:
    """Print what had to be assumed about a file, once, to standard error."""
    for note in [*file.notes, *more]:
        print(f"note: {file.name}: {note}", file=sys.stderr)
    file.notes.clear()


def plain_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table: first column flush left, the others flush right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index else "left")
    return table


def metrics_of(
    model: Any, table: Any, y: NDArray[Any], weight: NDArray[np.float64] | None
) -> dict[str, float]:
    """Return the value of every metric of the model's task on these rows."""
    loss = model.loss_
    if loss is None:
        raise ValueError(
            "the model's loss was the user's and is not in its file, so it cannot be evaluated"
        )
    truth = _class_indices(model.classes_, y) if hasattr(model, "classes_") else _check_numbers(y)
    target, raw = Target.of(truth, weight), model.predict_raw(table)
    return {
        name: metric(target, raw, loss)
        for name, metric in METRICS.items()
        if loss.task in metric.tasks
        and not metric.needs_costs
        and not (metric.one_prediction and raw.ndim > 1)
    }


def _check_numbers(y: NDArray[Any]) -> NDArray[Any]:
    """Return the target of a regressor; reject text."""
    if y.dtype.kind == "U":
        raise ValueError("the target column holds text, the model predicts numbers")
    return y


def _class_indices(classes: NDArray[Any], y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of each label among the model's classes."""
    if (classes.dtype.kind == "U") != (y.dtype.kind == "U"):
        raise ValueError(
            f"the target column holds {_type_name(y)}, but the model's classes are"
            f" {_type_name(classes)}"
        )
    is_known = np.isin(y, classes)
    if not is_known.all():
        row = int(np.argmin(is_known))
        shown = ", ".join(str(label) for label in classes[:10])
        raise ValueError(
            f"label {y[row].item()!r} in row {row} is not a class of the model: {shown}"
        )
    return np.searchsorted(classes, y)


def _type_name(values: NDArray[Any]) -> str:
    return "text" if values.dtype.kind == "U" else "numbers"


def plain_value(value: Any) -> Any:
    """Return a value as JSON: NumPy scalars unpacked, NaN as null, other objects by repr."""
    if isinstance(value, np.ndarray):
        return [plain_value(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        return plain_value(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [plain_value(item) for item in value]
    return repr(value)


def feature_names(model: Any) -> list[str]:
    """Return the model's feature names, or x0, x1, ... if it was trained without names."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(names)


def top_features(model: Any, count: int) -> list[tuple[str, float]]:
    """Return the most important features and their importances, in decreasing order."""
    share = np.asarray(model.feature_importances_)
    names = feature_names(model)
    return [(names[j], float(share[j])) for j in np.argsort(-share, kind="stable")[:count]]
