"""How long categorical columns take before a chain starts.

    python -m benchmarks.encoding [--rows N] [--columns N]

Columns of 10 to 300,000 levels as they come: text and categories of pandas and of polars, and named
integers of an array. A line is one process; its seconds are those of a whole fit of one tree, from
the table to the codes: reading, finding the levels, choosing combinations, ordered means, bins.
"""

import time

import numpy as np

from benchmarks.kinds import measured

KINDS = ("text, pandas", "category, pandas", "text, polars", "category, polars", "integers, NumPy")


def make(n_rows, n_columns, seed=0):
    """Level numbers (n_rows, n_columns) and a target that hangs on some of them."""
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(10, 300_000, n_columns).astype(int)
    # Most levels are rare, as in real tables.
    levels = np.stack([(n * rng.random(n_rows) ** 3).astype(np.int64) for n in sizes], axis=1)
    effect = sum(rng.normal(size=n)[column] for n, column in zip(sizes, levels.T, strict=True))
    return levels, (effect + rng.normal(size=n_rows) > 0).astype(int)


def table(kind, levels):
    """The same rows in another container."""
    if kind == "integers, NumPy":
        return levels
    names = [f"c{i}" for i in range(levels.shape[1])]
    text = {
        name: np.char.add("level ", column.astype(str))
        for name, column in zip(names, levels.T, strict=True)
    }
    if kind.endswith("pandas"):
        import pandas as pd

        frame = pd.DataFrame({name: column.astype(object) for name, column in text.items()})
        return frame.astype("category") if kind.startswith("category") else frame
    import polars as pl

    frame = pl.DataFrame({name: pl.Series(name, column.tolist()) for name, column in text.items()})
    return (
        frame.with_columns(pl.all().cast(pl.Categorical)) if kind.startswith("category") else frame
    )


def measure(kind, n_rows, n_columns):
    """Seconds of a fit of one tree on the container."""
    from sglb import SGLBClassifier

    levels, y = make(n_rows, n_columns)
    X = table(kind, levels)
    del levels
    model = SGLBClassifier(
        n_estimators=1,
        categorical_features=list(range(n_columns)) if isinstance(X, np.ndarray) else "from_dtype",
        random_state=0,
    )
    model.fit(X[:200], y[:200])
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def main():
    columns = {"description": "categorical columns", "n_columns": 10, "heads": ["seconds"]}
    for kind, seconds, error in measured("benchmarks.encoding", measure, KINDS, **columns):
        print(f"| {kind} | {f'failed: {error}' if error else f'{seconds:.2f}'} |", flush=True)


if __name__ == "__main__":
    main()
