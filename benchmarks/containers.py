"""What a fit takes beyond the caller's table, for each container of the same numbers.

    python -m benchmarks.containers [--rows N] [--columns N]

A line is one process: a fit of 20 trees on float32 columns, its seconds and its peak of memory
above what was there before, the table included there. The models must be the same to the last bit.
"""

import hashlib

import numpy as np

from benchmarks.kinds import measured
from benchmarks.process import timed_with_memory


def _pandas(columns):
    import pandas as pd

    return pd.DataFrame(columns)


def _pandas_arrow(columns):
    import pandas as pd

    return pd.DataFrame(columns).astype("float[pyarrow]")


def _pandas_nullable(columns):
    import pandas as pd

    return pd.DataFrame(columns).astype("Float32")


def _polars(columns):
    import polars as pl

    return pl.DataFrame(columns)


def _arrow(columns):
    import pyarrow as pa

    return pa.table(columns)


CONTAINERS = {
    "NumPy": lambda columns: np.column_stack(list(columns.values())),
    "pandas, NumPy columns": _pandas,
    "pandas, Arrow columns": _pandas_arrow,
    "pandas, nullable columns": _pandas_nullable,
    "polars": _polars,
    "pyarrow": _arrow,
}


def measure(name, n_rows, n_columns):
    """Seconds and bytes of a fit on the container, and a fingerprint of the model."""
    from sglb import SGLBClassifier

    rng = np.random.default_rng(0)
    heads = ["seconds", "MB above the table"]
    columns = {"description": "columns", "n_columns": 28, "heads": heads}
    first, second, *_ = columns.values()
    y = (first * second + rng.standard_normal(n_rows) > 0).astype(float)
    X = CONTAINERS[name](columns)
    del columns, first, second, _
    model = SGLBClassifier(n_estimators=20, random_state=0)
    model.fit(X[:100], y[:100])
    model, cost = timed_with_memory(lambda: model.fit(X, y))
    scores = model.predict_raw(X[:10_000])
    return cost.seconds, cost.memory, hashlib.sha256(scores.tobytes()).hexdigest()


def main():
    columns = {
        "description": "columns",
        "n_columns": 28,
        "heads": ["seconds", "MB above the table"],
    }
    models = set()
    for name, answer, error in measured("benchmarks.containers", measure, CONTAINERS, **columns):
        if error:
            print(f"| {name} | failed: {error} | |", flush=True)
            continue
        seconds, memory, model = answer
        models.add(model)
        held = "not known" if memory is None else f"{memory / 1e6:.0f}"
        print(f"| {name} | {seconds:.2f} | {held} |", flush=True)
    if models:  # none in a process of one kind
        print("\nThe same model from all." if len(models) == 1 else "\nTHE MODELS DIFFER.")


if __name__ == "__main__":
    main()
