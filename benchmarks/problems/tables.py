"""Rows of a real table: numeric columns in a fixed random order."""

import numpy as np

from sglb.datasets import load_table


def numeric(name):
    def draw(n_rows, seed):
        import pyarrow as pa

        table = load_table(name)
        fields = [
            field.name
            for field in table.X.schema
            if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        ]
        X = np.column_stack([table.X[field].to_numpy().astype(np.float32) for field in fields])
        y = table.y
        if table.task != "regression":
            y = np.unique(y, return_inverse=True)[1]
        order = np.random.default_rng(seed).permutation(len(X))[:n_rows]
        return X[order], y[order]

    return draw
