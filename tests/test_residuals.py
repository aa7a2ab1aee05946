"""The variance of the residuals: the chain's own scores and a replay of it are the same numbers."""

import math

import numpy as np
import pytest

from sglb import SGLBRegressor
from sglb.callbacks import BaseCallback, Stop
from sglb.losses.shapes import user_shape
from sglb.trace import Trace

rng = np.random.default_rng(8)
X = rng.normal(size=(900, 4))
X[:, 3] = rng.integers(0, 200, 900)
Y = np.exp(0.3 * X[:, 0] + 0.2 * rng.normal(size=900))
WEIGHT = rng.integers(0, 4, 900).astype(float)
PARAMETERS = {"max_depth": 4, "learning_rate": 0.3, "temperature": 0.01, "random_state": 3}


class Watch(BaseCallback):
    """Keeps the training set; ends the chain after some steps."""

    def __init__(self, last=None):
        self.last = last

    def step(self, info):
        self.training_set = info.rows.data
        return Stop("enough") if info.step == self.last else None


def count_replays(monkeypatch):
    """The lengths of the chains that are replayed from here on."""
    lengths, replay = [], Trace.replay

    def counted(trace, *arguments):
        lengths.append(len(trace))
        return replay(trace, *arguments)

    monkeypatch.setattr(Trace, "replay", counted)
    return lengths


# Name -> constructor, fit, and the lengths of the chains replayed to get there.
CASES = {
    "whole": ({"n_estimators": 30}, {}, []),
    "weighted": ({"n_estimators": 30}, {"sample_weight": WEIGHT}, []),
    "poisson": ({"n_estimators": 30, "loss": "poisson"}, {}, []),
    "categories": ({"n_estimators": 30, "categorical_features": [3]}, {}, []),
    "stopped by a callback": ({"n_estimators": 30}, {"last": 7}, []),
    "evaluated, not stopped": ({"n_estimators": 30}, {"eval_set": [(X, Y)]}, []),
    "stopped early, best at the end": (
        {"n_estimators": 10, "early_stopping_rounds": 9},
        {"eval_set": [(X, Y)]},
        [],
    ),
    "stopped early, cut back": (
        {"n_estimators": 60, "early_stopping_rounds": 5},
        {"eval_set": [(X, -Y)]},
        [1],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_variance_is_that_of_a_replay_which_is_only_made_for_a_chain_cut_back(
    case, n_jobs, monkeypatch
):
    parameters, arguments, expected_replays = CASES[case]
    arguments = dict(arguments)
    watch = Watch(arguments.pop("last", None))
    replays = count_replays(monkeypatch)
    model = SGLBRegressor(**PARAMETERS, **parameters, n_jobs=n_jobs)
    model.fit(X, Y, **arguments, callbacks=[watch])
    assert [length for length in replays if length] == expected_replays
    rows = watch.training_set
    raw = model.trace_.replay(rows.code_columns, 1)[0]
    squares = (rows.target.values - model.loss_.link(user_shape(raw))) ** 2
    weight = rows.target.weight
    assert model._model.residual_variance == math.fsum(weight * squares) / math.fsum(weight)


def test_a_loss_that_predicts_no_mean_has_no_variance_of_residuals():
    model = SGLBRegressor(**PARAMETERS, n_estimators=3, loss="absolute").fit(X, Y)
    assert model._model.residual_variance is None
