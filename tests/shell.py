"""The command line as tests use it: run it in this process, on small tables."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from typer.testing import CliRunner

from sglb.cli.app import app

RUNNER = CliRunner()
SMALL = ["--n-estimators", "20", "--max-depth", "3", "--quiet"]


def sglb(*words, stdin=None):
    result = RUNNER.invoke(app, [str(word) for word in words], prog_name="sglb", input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def done(*words, stdin=None):
    result = sglb(*words, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def rejected(*words, stdin=None):
    result = sglb(*words, stdin=stdin)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def rows(n_rows=200, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n_rows, 2))
    high = x[:, 0] + 0.3 * generator.standard_normal(n_rows) > 0
    return {
        "a": x[:, 0],
        "b": x[:, 1],
        "w": generator.uniform(0.5, 1.5, n_rows),
        "label": np.where(high, "high", "low"),
        "number": 3 * x[:, 0] + x[:, 1],
    }


def write_tables():
    """Write a table to train on and one to test on."""
    pa.csv.write_csv(pa.table(rows()), "train.csv")
    pa.parquet.write_table(pa.table(rows(seed=1)), "test.parquet")


def train_classifier(path):
    drop = ["--drop", "number", "--drop", "w"]
    done("train", "train.csv", "-t", "label", "-m", path, *drop, *SMALL)


def train_regressor(path):
    drop = ["--drop", "label", "--drop", "w"]
    done("train", "train.csv", "-t", "number", "-m", path, *drop, *SMALL)
