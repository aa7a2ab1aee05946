"""`sglb predict`, `evaluate` and `info`: use a saved model, or describe it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sglb import ModelFormatError, SGLBRanker, load
from sglb.cli.reports import (
    console,
    feature_names,
    metrics_of,
    plain_table,
    plain_value,
    print_notes,
    top_features,
)
from sglb.cli.roles import check_numbers
from sglb.tables import (
    STANDARD,
    ArrowTable,
    Dialect,
    TableError,
    TableFile,
    add_parts,
    check_table_output,
    column_values,
    select,
    sources_of,
    weight_values,
    write_table,
)


def load_model(path: Path, n_jobs: int | None = None) -> Any:
    """Load a model file and let it use `n_jobs` threads."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder, not a model file")
    try:
        stored: Any = load(path)
    except ModelFormatError as error:
        raise ValueError(f"{path}: {error}") from error
    model = getattr(stored, "model", stored)  # that of a posterior
    return model if n_jobs is None else model.set_params(n_jobs=n_jobs)


def read_for(model: Any, file: TableFile) -> ArrowTable:
    """Read a table as the model was trained: the same columns are text, dates are in parts."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return file.read()
    names = [str(name) for name in names]
    text = [names[j] for j in np.flatnonzero(model.is_text_)]
    table = file.read(text, dates=bool(sources_of(names, file.header)))
    return add_parts(table, names)


def features_of(
    model: Any, file: TableFile, table: ArrowTable, not_features: Sequence[str | None] = ()
) -> Any:
    """Return the columns that the model was trained on, without all others."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        chosen = select(table, list(names), file.advice)
        check_numbers(file, chosen, names[~model.is_categorical_])
        return chosen
    chosen = table.drop_columns([name for name in table.column_names if name in not_features])
    if chosen.num_columns != model.n_features_in_:
        raise TableError(
            f"the model was trained on {model.n_features_in_} unnamed columns,"
            f" the table has {chosen.num_columns}"
        )
    if not model.is_categorical_.any():
        parts = [column_values(chosen, name, "feature") for name in chosen.column_names]
        return np.column_stack(parts)
    cells = [column.to_pylist() for column in chosen.columns]
    return np.array(cells, dtype=object).T


def predict(
    model_path: Path,
    table_path: Path,
    output: Path,
    dialect: Dialect,
    *,
    keep: Sequence[str] | None,
    proba: bool,
    uncertainty: bool,
    n_jobs: int | None,
) -> None:
    """Write the predictions of all rows and the columns `keep`, None for all columns."""
    check_table_output(output, model_path, table_path)
    model = load_model(model_path, n_jobs)
    if proba and not hasattr(model, "classes_"):
        raise ValueError(f"--proba needs a classifier; the model is a {type(model).__name__}")
    if uncertainty and isinstance(model, SGLBRanker):
        raise ValueError("--uncertainty needs a classifier or a regressor; the model is a ranker")
    file = TableFile(table_path, dialect)
    table = read_for(model, file)
    kept = kept_columns(file, keep)
    rows = features_of(model, file, table, () if keep is None else keep)
    print_notes(file)
    predictions = model.predict(rows)
    columns = prediction_columns("prediction", predictions, model)
    if proba:
        for label, values in zip(model.classes_, model.predict_proba(rows).T, strict=True):
            columns[f"probability_{label}"] = pa.array(np.ascontiguousarray(values))
    if uncertainty:
        parts = model.predict_uncertainty(rows)
        for name in ("knowledge", "data", "total"):
            if getattr(parts, name) is not None:
                columns |= prediction_columns(name, getattr(parts, name), model)
    for name in columns:
        if name in kept:
            raise TableError(
                f"column {name!r} cannot be kept: the output has a column of that name"
            )
    columns = kept | columns
    write_table(pa.table(columns), output)
    if output != STANDARD:
        words = f"{output}: {len(predictions):,} rows, {', '.join(columns)}"
        console(error=True).print(words)


def prediction_columns(name: str, values: NDArray[Any], model: Any) -> dict[str, pa.Array]:
    """Return predictions as columns of the output: one, or one for each quantile of a model."""
    if values.ndim == 1:
        return {name: pa.array(values)}
    levels = getattr(model.loss_, "levels", range(values.shape[1]))
    return {
        f"{name}_{level}": pa.array(np.ascontiguousarray(column))
        for level, column in zip(levels, values.T, strict=True)
    }


def kept_columns(file: TableFile, keep: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns to copy to the output, exactly as in the file."""
    for name in keep or ():
        if name not in file.header:
            columns = ", ".join(repr(column) for column in file.header[:20])
            raise TableError(f"no column {name!r} to keep; the table has {columns}")
    names = file.header if keep is None else list(dict.fromkeys(keep))
    if not names:
        return {}
    table = file.as_written(names)
    return {name: table.column(name) for name in names}


def evaluate(
    model_path: Path,
    table_path: Path,
    target: str,
    weight: str | None,
    dialect: Dialect,
    *,
    as_json: bool,
    n_jobs: int | None,
) -> None:
    """Print the metrics of a model on a table with known labels."""
    model = load_model(model_path, n_jobs)
    if isinstance(model, SGLBRanker):
        raise ValueError(
            "a ranker is scored within queries, whose ids the command line does not read; use"
            " score(X, y, group=ids) of the model in Python"
        )
    file = TableFile(table_path, dialect)
    table = read_for(model, file)
    y = column_values(table, target, "target", file.advice)
    weights = None if weight is None else weight_values(table, weight)
    rows = features_of(model, file, table, (target, weight))
    print_notes(file)
    if not y.size:
        raise TableError(f"{file.name}: has no rows")
    values = metrics_of(model, rows, y, weights)
    if as_json:
        print(json.dumps(plain_value({"rows": y.size, **values}), indent=2))
        return
    printed = plain_table("metric", "value", title=f"{model_path.name} on {y.size:,} rows")
    for name, value in values.items():
        printed.add_row(name, f"{value:.6g}")
    console().print(printed)


def info(model_path: Path, top: int, *, as_json: bool) -> None:
    """Print a description of a model."""
    model = load_model(model_path)
    facts = facts_of(model)
    if as_json:
        importances = dict(top_features(model, top))
        print(json.dumps(plain_value({**facts, "feature_importances": importances}), indent=2))
        return
    out = console()
    printed = plain_table(model_path.name, "")
    for name, value in facts.items():
        if name not in ("parameters", "feature_names") and value not in (None, {}):
            printed.add_row(name.replace("_", " "), _shown(value))
    out.print(printed)
    chosen = plain_table("parameter", "value")
    for name, value in facts["parameters"].items():
        chosen.add_row(name, _shown(value))
    out.print(chosen)
    if top:
        listed = plain_table("feature", "share of the gain")
        for name, share in top_features(model, top):
            listed.add_row(name, f"{share:.1%}")
        out.print(listed)


def _shown(value: Any) -> str:
    """Return a value as text for people."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(str(item) for item in value[:10]) + (", ..." if len(value) > 10 else "")
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _categorical_names(model: Any) -> list[str] | None:
    """Return the names of the categorical columns, None if there are none."""
    return [feature_names(model)[j] for j in np.flatnonzero(model.is_categorical_)] or None


def facts_of(model: Any) -> dict[str, Any]:
    """Return the facts that describe a fitted model, in the order of printing."""
    traces = model.traces_
    facts: dict[str, Any] = {
        "kind": type(model).__name__,
        "loss": "the user's, not stored" if model.loss_ is None else model.loss_.name,
        "loss_parameters": {} if model.loss_ is None else model.loss_.parameters(),
        "trees": sum(len(trace) for trace in traces),
        "chains": len(traces),
        "depth": max(int(trace.depths.max(initial=0)) for trace in traces),
        "features": model.n_features_in_,
        "categorical_features": _categorical_names(model),
        "learning_rate": model.learning_rate_,
        "temperature": model.temperature_,
        "inverse_temperature": model.inverse_temperature_,
        "shrink_rate": model.shrink_rate_,
        "leaf_method": model.leaf_method_,
        "best_iteration": model.best_iteration_,
        "best_score": model.best_score_,
    }
    if hasattr(model, "classes_"):
        facts["classes"] = model.classes_.tolist()
    facts["parameters"] = model.get_params(deep=False)
    facts["feature_names"] = feature_names(model)
    return facts
