"""A checkpoint of another fit is rejected, and what differs is named."""

import inspect

import numpy as np
import pytest

import interrupted
from interrupted import (
    FITS,
    NEW,
    NUMBERS,
    QUERIES,
    SMALL,
    THREE,
    TWO,
    WEIGHT,
    X,
    fitted,
    killed_after,
)
from sglb import ChangedChain, Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.checkpoints.fingerprint import IDLE
from sglb.samplers import Langevin


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A checkpoint of a fit with sets, weights and classes, killed after 10 steps."""
    path = tmp_path_factory.mktemp("started") / "c"
    with killed_after(10):
        start(callbacks=Checkpoint(path, 1))
    return path


FRAME = {"a": X[:, 0], "b": X[:, 1]}


def start(x=None, y=THREE, weight=WEIGHT, new=NEW, labels=THREE[:80], **more):
    model = SGLBClassifier(**SMALL | {"n_chains": more.pop("n_chains", 1)})
    arguments = {"eval_set": [(new, labels)], "eval_metric": "logloss"} | more
    return model.fit(X if x is None else x, y, weight, **arguments)


def moved(values, at=3):
    other = np.array(values)
    other[at] = other[at + 1] if other[at] != other[at + 1] else other[at + 2]
    return other


COLUMN = X.copy()
COLUMN[:, 3] = COLUMN[::-1, 3]
ROW = NEW.copy()
ROW[5] = 9.0


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"y": moved(THREE)}, ["y differs"]),
        ({"y": np.char.upper(THREE), "labels": np.char.upper(THREE[:80])}, ["classes differs"]),
        ({"weight": WEIGHT * np.linspace(1, 2, 160)}, ["sample_weight differs"]),
        ({"x": COLUMN}, ["X differs"]),
        ({"x": X + 1e-3}, ["thresholds differs"]),
        ({"x": X[:150], "y": THREE[:150], "weight": WEIGHT[:150]}, ["n_rows is 150, not 160"]),
        ({"new": ROW}, ["eval_set[0].X differs"]),
        ({"labels": moved(THREE[:80])}, ["eval_set[0].y differs"]),
        ({"eval_set": [(NEW, THREE[:80], np.arange(1.0, 81.0))]}, ["eval_set[0].sample_weight"]),
        ({"eval_set": [(NEW, THREE[:80])] * 2}, ["n_eval_sets is 2, not 1"]),
        ({"eval_metric": ["logloss", "error"]}, ["eval_metric is ['logloss', 'error'], not"]),
    ],
)
def test_other_data_are_rejected_by_name(started, changed, names):
    with pytest.raises(ValueError, match="resume_from: the checkpoint is of another fit") as error:
        start(**changed, resume_from=started)
    for name in names:
        assert name in str(error.value)


def test_queries_columns_and_costs_are_data_too(tmp_path):
    import pandas as pd

    group = {"group": np.arange(160) // 16}
    names = {"X": pd.DataFrame(X, columns=list("abcd"))}
    costs = {"costs": [[0, 2], [5, 0]]}
    for name, other, word in (
        ("rankings", group, "group differs"),
        ("numbers", names, "feature_names is"),
        ("costs", costs, "costs differs"),
    ):
        kind, parameters, arguments = FITS[name]
        with killed_after(5):
            fitted(name, callbacks=Checkpoint(tmp_path / name, 1))
        with pytest.raises(ValueError, match=f"another fit: .*{word}"):
            kind(**parameters).fit(**arguments | other, resume_from=tmp_path / name)


# For each parameter a value other than that of `start`, or of a plain regressor.
OTHER = {
    "loss": "absolute",
    "quantile": 0.3,
    "tweedie_power": 1.2,
    "n_estimators": 25,
    "learning_rate": 0.123,
    "max_depth": 4,
    "max_bins": 17,
    "sampler": "plain",
    "temperature": 0.5,
    "shrink_rate": 0.01,
    "friction": 0.5,
    "structure_noise": 0.5,
    "subsample": 0.5,
    "structure_sample": 0.5,
    "random_strength": 0.5,
    "leaf_method": "gradient",
    "leaf_steps": 2,
    "l2_regularization": 7,
    "init": "zero",
    "categorical_features": [0],
    "class_weight": {0: 1.0, 1: 2.0},
    "n_chains": 2,
    "uncertainty": True,
    "early_stopping_rounds": 5,
    "random_state": 1,
}


@pytest.mark.parametrize("kind", [SGLBClassifier, SGLBRegressor, SGLBRanker])
def test_every_parameter_that_is_changed_is_rejected_by_name(kind, tmp_path):
    y = NUMBERS if kind is SGLBRegressor else TWO
    group, eval_group, changed = {}, {}, OTHER
    if kind is SGLBRanker:
        group, eval_group = {"group": QUERIES}, {"eval_group": [QUERIES[:80]]}
        changed = OTHER | {"loss": "pairwise_logistic"}
    with killed_after(3):
        kind(**SMALL).fit(X, y, callbacks=Checkpoint(tmp_path / "c", 1), **group)
    sets = {"eval_set": [(NEW, y[:80])]} | eval_group
    names = set(inspect.signature(kind).parameters) - set(IDLE)
    assert names <= changed.keys()
    for name in sorted(names):
        model = kind(**SMALL | {name: changed[name]})
        with pytest.raises(ValueError, match=rf"another fit: {name} is ") as error:
            model.fit(X, y, **sets, resume_from=tmp_path / "c", **group)
        assert ";" not in str(error.value)  # no other parameter
    other = SGLBRegressor if kind is SGLBClassifier else SGLBClassifier
    with pytest.raises(ValueError, match=r"another fit: estimator is '.*', not '"):
        other(**SMALL).fit(X, TWO, resume_from=tmp_path / "c")
    for name, value in (("n_jobs", 2), ("verbose", 7), ("warm_start", True)):
        model = kind(**SMALL | {name: value}).fit(X, y, resume_from=tmp_path / "c", **group)
        assert model.n_iter_ == 24


def test_samplers_losses_and_states_of_chance_are_compared_as_far_as_they_can_be(tmp_path):
    model = SGLBRegressor(**SMALL | {"sampler": Langevin(0.1, 1.0, 0.01)})
    with killed_after(9):
        model.fit(X, NUMBERS, callbacks=Checkpoint(tmp_path / "c", 1))
    model.set_params(sampler=Langevin(0.1, 1.0, 0.02))
    with pytest.raises(ValueError, match="another fit: sampler is "):
        model.fit(X, NUMBERS, resume_from=tmp_path / "c")
    kind, parameters, arguments = FITS["numbers"]
    drawn = kind(**parameters | {"random_state": np.random.RandomState(3)})
    with killed_after(9):
        drawn.fit(**arguments, callbacks=Checkpoint(tmp_path / "d", 1))
    with pytest.raises(ValueError, match=r"another fit: .*seed is "):  # it has moved on
        drawn.fit(**arguments, resume_from=tmp_path / "d")


def test_a_loss_whose_code_has_changed_is_seen_at_the_last_step(tmp_path, monkeypatch):
    stated = {"sampler": "plain", "learning_rate": 0.1, "init": "zero", "loss": interrupted.Cubic()}
    model = SGLBRegressor(**SMALL | stated)
    with killed_after(9):
        model.fit(X, NUMBERS, callbacks=Checkpoint(tmp_path / "c", 1))
    gradient = interrupted.Cubic.gradient
    monkeypatch.setattr(
        interrupted.Cubic, "gradient", lambda loss, y, raw: 0.9 * gradient(loss, y, raw)
    )
    with pytest.raises(ChangedChain, match="step 9 differs from that step"):
        model.fit(X, NUMBERS, resume_from=tmp_path / "c", check_gradient=False)
