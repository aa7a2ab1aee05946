"""What is measured of one library on one problem; each returns numbers for the report.

`seconds` is always the number that ratios are made of.
"""

import time
from dataclasses import replace

import numpy as np

from benchmarks.process import least, least_in_turn, timed_with_memory

STATES = 10


def fit(problem, peer, settings):
    """Training, binning included."""
    data = problem.make()
    warm_up(peer, peer.fit, data, settings)
    model, cost = training(lambda: peer.fit(data.X, data.y, settings))
    loss = test_loss(problem.task, data.y_test, peer.predict(model, data.X_test))
    return cost._asdict() | {"loss": loss}


def custom(problem, peer, settings):
    """Training with a user's loss, and with the same loss built in."""
    data = problem.make()
    warm_up(peer, peer.fit, data, settings)
    warm_up(peer, peer.fit_custom, data, settings)
    fit_built_in = getattr(peer, "fit_built_in", peer.fit)
    _, built_in = training(lambda: fit_built_in(data.X, data.y, settings))
    model, cost = training(lambda: peer.fit_custom(data.X, data.y, settings))
    loss = test_loss(problem.task, data.y_test, peer.predict_custom(model, data.X_test))
    return cost._asdict() | {"loss": loss, "built_in_seconds": built_in.seconds}


def predict(problem, peer, settings):
    """Prediction of many rows."""
    data = problem.make()
    model = peer.fit(data.X, data.y, settings)
    loss = test_loss(problem.task, data.y_test, peer.predict(model, data.X_test))
    cost = least(lambda: peer.predict(model, data.X_test), short=1.0)
    return cost._asdict() | {"loss": loss}


def one_row(problem, peer, settings):
    """Prediction of one row at a time, the median call: as an array, as a pandas frame, and through
    the library's call for one row.
    """
    data = problem.make()
    model = peer.fit(data.X, data.y, settings)
    rows = [data.X_test[i : i + 1] for i in range(len(data.X_test))]
    result = {"seconds": median_call(lambda row: peer.predict(model, row), rows)}
    result["frame_seconds"] = frame_call(peer, data, settings)
    if hasattr(peer, "predict_row"):
        bare = [row[0] for row in rows]
        result["row_seconds"] = median_call(lambda row: peer.predict_row(model, row), bare)
    return result


def frame_call(peer, data, settings):
    """The median call with a pandas frame of one row; the model has learnt from a frame."""
    import pandas as pd

    names = [f"column_{position}" for position in range(data.X.shape[1])]
    model = peer.fit(pd.DataFrame(data.X, columns=names), data.y, settings)
    test = pd.DataFrame(data.X_test, columns=names)
    frames = [test.iloc[i : i + 1] for i in range(len(test))]
    return median_call(lambda frame: peer.predict(model, frame), frames)


def states(problem, peer, settings):
    """Uncertainty from several states of one model, their scores, and one prediction."""
    data = problem.make()
    model = peer.fit(data.X, data.y, settings)
    peer.predict(model, data.X_test[:100])
    peer.predict_states(model, data.X_test[:100], STATES)
    calls = [
        lambda: peer.predict(model, data.X_test),
        lambda: peer.predict_states(model, data.X_test, STATES),
    ]
    if hasattr(peer, "score_states"):
        calls.append(lambda: peer.score_states(model, data.X_test, STATES))
    single, cost, *scores = least_in_turn(*calls)
    result = cost._asdict() | {"single_seconds": single.seconds}
    if scores:
        result["score_seconds"] = scores[0].seconds
    return result


MEASURES = {
    "fit": fit,
    "custom": custom,
    "predict": predict,
    "one_row": one_row,
    "states": states,
}


def warm_up(peer, train, data, settings):
    """Fit 2 trees on 200 rows: late imports, thread pools and compilers are done with."""
    if hasattr(peer, "warm_up"):
        peer.warm_up()
    n = min(200, len(data.X))
    y = np.arange(n) % (settings.n_classes or n)
    train(data.X[:n], y.astype(data.y.dtype), replace(settings, n_trees=2))


def training(call):
    """A model and the cost of its fit, the least of several if it is short."""
    model, cost = timed_with_memory(call)
    return model, least(call, cost)


def median_call(call, rows):
    for row in rows[:100]:
        call(row)
    seconds = []
    for row in rows:
        start = time.perf_counter()
        call(row)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def test_loss(task, y, prediction):
    """Mean squared error, or mean log loss with probabilities kept above 1e-7."""
    prediction = np.asarray(prediction, dtype=np.float64)
    if task == "regression":
        return float(np.mean((prediction - y) ** 2))
    if prediction.ndim == 1:
        prediction = np.column_stack([1.0 - prediction, prediction])
    return float(-np.log(np.maximum(prediction[np.arange(len(y)), y], 1e-7)).mean())
