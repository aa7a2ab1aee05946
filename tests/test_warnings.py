"""Every warning points at the line of the user that led to it, however deep the library is."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sglb
from interrupted import NEW, NUMBERS, QUERIES, SMALL, THREE, TWO, X, killed_after
from sglb import Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.conformal import ConformalClasses, CrossConformal, CrossConformalClasses

PACKAGE = Path(sglb.__file__).parent


class Cauchit:
    """A loss of the user's own whose link a file does not hold."""

    def loss(self, y, raw):
        return 0.5 * (raw - y) ** 2

    def gradient(self, y, raw):
        return raw - y

    def link(self, raw):
        return 0.5 + np.arctan(raw) / np.pi


def regressor(**options):
    return SGLBRegressor(**SMALL | options)


def classifier(**options):
    return SGLBClassifier(**SMALL | options)


def of_a_users_loss():
    return classifier(loss=Cauchit()).fit(X, TWO)


def damaged(folder):
    """A checkpoint of which the newest file is damaged."""
    path = folder / "c"
    with killed_after(10):
        regressor().fit(X, NUMBERS, callbacks=Checkpoint(path, 2))
    path.write_bytes(path.read_bytes()[:-40])
    return path


def unwritable(folder):
    """A path where the device is full."""
    (folder / "c.part").symlink_to("/dev/full")
    return Checkpoint(folder / "c", 30, on_error="warn")


# What is warned of -> the user's line, and the names in it; `folder` is an empty one.
LINES = {
    "numbers as text": (
        "model.fit(table, y)",
        lambda folder: {
            "model": regressor(),
            "table": pd.DataFrame({"a": [str(0.5 * row) for row in range(160)]}),
            "y": NUMBERS,
        },
    ),
    "sample_weight has the mean": (
        "model.fit(X, y, np.full(160, 1000.0))",
        lambda folder: {"model": regressor(), "X": X, "y": NUMBERS, "np": np},
    ),
    "nothing to learn": (
        "model.fit(X, y, group)",
        lambda folder: {"model": SGLBRanker(**SMALL), "X": X, "y": np.ones(160), "group": QUERIES},
    ),
    "the chains are equal": (
        "model.fit(X, y)",
        lambda folder: {
            "model": classifier(n_chains=2, sampler="plain", random_strength=0.0),
            "X": X,
            "y": TWO,
        },
    ),
    "is damaged": (
        "model.fit(X, y, resume_from=path)",
        lambda folder: {"model": regressor(), "X": X, "y": NUMBERS, "path": damaged(folder)},
    ),
    "cannot be written": (
        "model.fit(X, y, callbacks=checkpoint)",
        lambda folder: {
            "model": regressor(),
            "X": X,
            "y": NUMBERS,
            "checkpoint": unwritable(folder),
        },
    ),
    "link of loss": (
        "model.save(path)",
        lambda folder: {"model": of_a_users_loss(), "path": folder / "m"},
    ),
    "the link of loss": (
        "posterior.save(path)",
        lambda folder: {
            "posterior": of_a_users_loss().posterior(X, TWO, n_draws=2, prior_variance=0.3),
            "path": folder / "m",
        },
    ),
    "not draws": (
        "model.predict_uncertainty(X)",
        lambda folder: {"model": classifier().fit(X, TWO), "X": X},
    ),
    "intervals are infinite": (
        "conformal.predict_interval(X)",
        lambda folder: {
            "conformal": regressor().fit(X, NUMBERS).conformalize(NEW[:5], NUMBERS[:5]),
            "X": X,
        },
    ),
    "6 calibration rows": (
        "law.interval(new)",
        lambda folder: {
            "law": CrossConformal(np.zeros(6), np.ones(6), np.arange(6) % 2),
            "new": np.zeros((2, 3)),
        },
    ),
    "are in every set": (
        "law.sets(new)",
        lambda folder: {
            "law": ConformalClasses([], np.zeros((0, 3))),
            "new": np.full((1, 3), 1.0 / 3.0),
        },
    ),
    "rows of a class in": (
        "law.sets(new)",
        lambda folder: {
            "law": CrossConformalClasses([1, 0], [0.8, 0.4], [0, 1]),
            "new": np.full((2, 1, 2), 0.5),
        },
    ),
}


@pytest.mark.parametrize("message", LINES)
def test_a_warning_points_at_the_users_line(message, tmp_path):
    line, names = LINES[message]
    code = compile(f"\n\n\n{line}", "user.py", "exec")
    names = names(tmp_path)
    with pytest.warns(UserWarning, match=message) as caught:
        exec(code, names)
    assert {(warning.filename, warning.lineno) for warning in caught} == {("user.py", 4)}


def test_a_warning_points_at_another_library_that_called():
    pipeline = make_pipeline(StandardScaler(), classifier(n_chains=2, sampler="plain"))
    with pytest.warns(UserWarning, match="the chains are equal") as caught:
        pipeline.fit(NEW, THREE[:80])
    assert caught[0].filename.endswith("pipeline.py")


def test_all_warnings_are_made_by_one_function():
    callers = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                callers.add(path.relative_to(PACKAGE).as_posix())
    assert callers == {"errors.py"}
