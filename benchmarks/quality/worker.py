"""One library on one split of one table, alone in a process.

    python -m benchmarks.quality.worker '{"table": "adult", "seed": 0, "library": "sglb"}'

prints one line of JSON on stdout; whatever a library prints goes to stderr. Further keys:
threads (1), max_rounds, patience, max_rows.
"""

import json
import os
import sys

import numpy as np

from benchmarks.process import timed
from benchmarks.quality.libraries import get_library, version
from benchmarks.quality.protocol import MAX_ROUNDS, PATIENCE, Part, Protocol
from benchmarks.quality.scores import scores
from benchmarks.quality.split import split
from benchmarks.quality.work import read


def parts_of(table, seed, max_rows):
    """Training, validation and test part of a table; labels become 0, 1, ..."""
    classes = table.task != "regression"
    y = np.unique(table.y, return_inverse=True)[1] if classes else table.y.astype(np.float64)
    frame = table.X.to_pandas()
    return [
        Part(
            frame.iloc[rows].reset_index(drop=True),
            y[rows],
            None if table.weight is None else table.weight[rows],
        )
        for rows in split(y, seed, classes=classes, max_rows=max_rows)
    ]


def warm_up(library, threads):
    """A tiny fit wakes thread pools before the clock starts."""
    import pandas as pd

    x = np.random.default_rng(0).standard_normal((200, 2))
    part = Part(pd.DataFrame(x, columns=["a", "b"]), (x[:, 0] > 0).astype(int))
    library.predict(library.fit(part, part, Protocol("binary", 0, threads, 2)), part.X)


def measure(request, library):
    table = read(request["table"])
    train, valid, test = parts_of(table, request["seed"], request.get("max_rows"))
    shape = {"task": table.task, "rows": len(train.y), "features": train.X.shape[1]}
    if hasattr(library, "prepare"):
        frames = library.prepare(train.X, valid.X, test.X)
        train, valid, test = (
            Part(frame, part.y, part.weight)
            for frame, part in zip(frames, (train, valid, test), strict=True)
        )
    protocol = Protocol(
        table.task,
        request["seed"],
        request.get("threads", 1),
        request.get("max_rounds", MAX_ROUNDS),
        request.get("patience", PATIENCE),
    )
    warm_up(library, protocol.threads)
    model, fitting = timed(lambda: library.fit(train, valid, protocol))
    prediction, predicting = timed(lambda: library.predict(model, test.X))
    if hasattr(library, "predict_best"):
        prediction = library.predict_best(model, test.X)
    return shape | {
        **scores(table.task, test.y, prediction, test.weight),
        "fit_seconds": fitting.seconds,
        "predict_seconds": predicting.seconds,
        "rounds": int(library.rounds(model)),
    }


def main():
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(sys.argv[1])
    name = request["library"]
    result = measure(request, get_library(name)) | {"version": version(name)}
    with os.fdopen(answer, "w") as stdout:
        print(json.dumps(result), file=stdout)


if __name__ == "__main__":
    main()
