"""Model files: the same model back, the same bytes always, and nothing else let in."""

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from sglb import ModelFormatError, SGLBClassifier, SGLBRegressor, archive, load
from sglb.losses import Huber, Sla
from sglb.samplers import Langevin
from sglb.samplers.base import Move

rng = np.random.default_rng(5)
X = rng.normal(size=(200, 3))
X[::7, 1] = np.nan
NUMBERS = X[:, 0] + 0.1 * rng.normal(size=200)
FAST = {"n_estimators": 12, "max_depth": 3, "learning_rate": 0.3, "random_state": 0}
CLASSES = np.digitize(NUMBERS, [-0.5, 0.5])


class Steep:
    """A user's loss."""

    def loss(self, y, raw):
        return np.logaddexp(raw - y, y - raw)

    def gradient(self, y, raw):
        return np.tanh(raw - y)


def fitted():
    """Models of many kinds, by name."""
    early = {"eval_set": [(X, CLASSES > 0)], "eval_metric": ["auc", "loss"]}
    return {
        "regressor": SGLBRegressor(**FAST).fit(X, NUMBERS),
        "weighted": SGLBRegressor(**FAST).fit(X, NUMBERS, np.arange(200.0) / 100),
        "huber": SGLBRegressor(**FAST, loss=Huber(0.3)).fit(X, NUMBERS),
        "poisson": SGLBRegressor(**FAST, loss="poisson").fit(X, CLASSES),
        "binary": SGLBClassifier(**FAST).fit(X, CLASSES > 0),
        "softmax": SGLBClassifier(**FAST).fit(X, CLASSES),
        "text": SGLBClassifier(**FAST).fit(X, np.array(["ä", "b\n", "c"])[CLASSES]),
        "objects": SGLBClassifier(**FAST).fit(X, np.array(["a", "b", "c"], object)[CLASSES]),
        "one class": SGLBClassifier(**FAST).fit(X, np.ones(200, dtype=np.int8)),
        "sla": SGLBClassifier(**FAST, loss=Sla(0.2), class_weight={0: 1.0, 1: 2.0}).fit(
            X, (CLASSES > 0).astype(int)
        ),
        "early": SGLBClassifier(**FAST, early_stopping_rounds=3).fit(X, CLASSES > 0, **early),
        "chains": SGLBClassifier(**FAST, n_chains=3, temperature=1, early_stopping_rounds=1).fit(
            X, CLASSES > 0, eval_set=[(X[::3] + 0.2, CLASSES[::3] > 0)]
        ),
        "sampler": SGLBRegressor(n_estimators=5, sampler=Langevin(0.1, 1e-3, 1e-2)).fit(X, NUMBERS),
        "constant": SGLBRegressor(**FAST).fit(np.zeros((5, 2)), np.arange(5.0)),
    }


MODELS = fitted()
EVERY = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def facts(model):
    """Everything public that a fitted estimator knows."""
    public = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_")
    }
    return public | {"trace_": public["trace_"].arrays()}


def assert_same(first, second):
    assert type(first) is type(second)
    a, b = facts(first), facts(second)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_equal(a[name], b[name], err_msg=name)
    inputs = X[:, : first.n_features_in_]
    np.testing.assert_array_equal(first.predict(inputs), second.predict(inputs))
    np.testing.assert_array_equal(first.predict_raw(inputs), second.predict_raw(inputs))


@EVERY
def test_a_model_comes_back_from_its_file_as_it_was(model, tmp_path):
    path = tmp_path / "m.sglb"
    model.save(path)
    again = load(path)
    assert_same(model, again)
    parameters = {k: v for k, v in model.get_params().items() if k not in ("n_jobs", "verbose")}
    assert parameters.items() <= again.get_params().items()
    for single, other in zip(
        model.predict_uncertainty(X[:4, : model.n_features_in_]),
        again.predict_uncertainty(X[:4, : model.n_features_in_]),
        strict=True,
    ):
        np.testing.assert_array_equal(single, other)
    again.save(tmp_path / "again.sglb")
    assert path.read_bytes() == (tmp_path / "again.sglb").read_bytes()


@EVERY
def test_a_pickle_goes_through_the_same_bytes(model):
    again = pickle.loads(pickle.dumps(model))
    assert_same(model, again)
    assert again.get_params().keys() == model.get_params().keys()
    assert archive.dumps(again._model) == archive.dumps(model._model)
    assert archive.dumps(model._model) in pickle.dumps(model)


def test_an_estimator_that_is_not_fitted_pickles_as_usual():
    again = pickle.loads(pickle.dumps(SGLBClassifier(max_depth=3)))
    assert again.max_depth == 3
    assert not hasattr(again, "classes_")


def test_names_of_features_are_kept(tmp_path):
    import pandas as pd

    table = pd.DataFrame(X, columns=["a", "b b", "ü"])
    SGLBRegressor(**FAST).fit(table, NUMBERS).save(tmp_path / "m.sglb")
    again = load(tmp_path / "m.sglb")
    assert again.feature_names_in_.tolist() == ["a", "b b", "ü"]
    with pytest.raises(ValueError, match="same order"):
        again.predict(table[["b b", "a", "ü"]])


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 8])
def test_the_bytes_do_not_depend_on_the_number_of_threads(n_jobs):
    wide = np.random.default_rng(0).normal(size=(5000, 6))
    y = (wide[:, 0] * wide[:, 1] > 0).astype(int)
    model = SGLBClassifier(**FAST, n_jobs=n_jobs, temperature=0.1, subsample=0.7).fit(wide, y)
    digest = hashlib.sha256(archive.dumps(model._model)).hexdigest()
    reference = SGLBClassifier(**FAST, n_jobs=1, temperature=0.1, subsample=0.7).fit(wide, y)
    assert digest == hashlib.sha256(archive.dumps(reference._model)).hexdigest()


def test_the_bytes_are_the_same_in_another_process():
    code = (
        "import numpy as np, hashlib; from sglb import SGLBRegressor, archive;"
        "x = np.arange(60.0).reshape(20, 3); m = SGLBRegressor(n_estimators=5, random_state=1);"
        "print(hashlib.sha256(archive.dumps(m.fit(x, x[:, 0])._model)).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(runs) == 1


def test_a_users_loss_is_not_stored_and_the_model_predicts_raw_scores(tmp_path):
    model = SGLBRegressor(**FAST, loss=Steep()).fit(X, NUMBERS)
    model.save(tmp_path / "m.sglb")
    again = load(tmp_path / "m.sglb")
    assert again.loss_ is None
    assert again.loss is None
    np.testing.assert_array_equal(again.predict(X), model.predict_raw(X))


class Slow:
    """A user's sampler."""

    def move(self, step):
        return Move(0.1)


@pytest.mark.parametrize(("name", "user_object"), [("loss", Steep()), ("sampler", Slow())])
def test_what_a_file_does_not_hold_must_be_given_again_before_fit(tmp_path, name, user_object):
    model = SGLBRegressor(n_estimators=12, random_state=0, **{name: user_object}).fit(X, NUMBERS)
    model.save(tmp_path / "m.sglb")
    again = load(tmp_path / "m.sglb")
    others = {key: value for key, value in model.get_params().items() if key != name}
    for reader in (again, clone(again), pickle.loads(pickle.dumps(again))):
        assert reader.get_params() == others | {name: None}
        with pytest.raises(ValueError, match=rf"{name}=None .* set_params\({name}=...\) before"):
            reader.fit(X, NUMBERS)
        reader.set_params(**{name: user_object}).fit(X, NUMBERS)
        np.testing.assert_array_equal(reader.predict(X), model.predict(X))


class Clicks:
    """A user's loss for two classes."""

    def loss(self, y, raw):
        return np.log1p(np.exp(-(2 * y - 1) * raw))

    def gradient(self, y, raw):
        return 1 / (1 + np.exp(-raw)) - y


def test_a_classifier_without_its_loss_still_chooses_classes(tmp_path):
    labels = np.where(CLASSES > 0, "yes", "no")
    model = SGLBClassifier(**FAST, loss=Clicks()).fit(X, labels)
    model.save(tmp_path / "m.sglb")
    again = load(tmp_path / "m.sglb")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="no probabilities"):
        again.predict_proba(X)


def test_a_pickle_keeps_a_users_loss():
    model = SGLBClassifier(**FAST, loss=Clicks()).fit(X, CLASSES > 0)
    again = pickle.loads(pickle.dumps(model))
    assert isinstance(again.loss, Clicks)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_numbers_of_numpy_are_stored_as_plain_numbers(tmp_path):
    path = tmp_path / "m.sglb"
    sampler = Langevin(np.float32(0.25), np.float64(1e-3), np.int64(0), np.longdouble(0.5))
    parameters = {
        "sampler": sampler,
        "n_estimators": np.int64(5),
        "max_depth": np.uint8(3),
        "random_strength": np.float32(0.5),
        "categorical_features": np.array([False, False, True]),
        "random_state": np.int32(7),
        "verbose": np.int64(0),
    }
    whole = np.column_stack([X[:, 0], X[:, 2], CLASSES])
    model = SGLBClassifier(**parameters, class_weight={np.int64(0): np.float32(2), 1: np.int8(3)})
    model.fit(whole, (CLASSES > 0).astype(np.int64)).save(path)
    again = load(path)
    assert again.sampler == Langevin(0.25, 1e-3, 0, 0.5)
    assert {type(value) for value in vars(again.sampler).values()} <= {int, float}
    assert again.class_weight == {0: 2.0, 1: 3}
    assert again.categorical_features == [False, False, True]
    for name in ("n_estimators", "max_depth", "random_strength", "random_state"):
        value = getattr(again, name)
        assert value == parameters[name]
        assert type(value) in (int, float)
    np.testing.assert_array_equal(again.predict_raw(whole), model.predict_raw(whole))
    again.save(tmp_path / "again.sglb")
    assert path.read_bytes() == (tmp_path / "again.sglb").read_bytes()


def test_labels_that_json_cannot_hold_are_refused_when_saving(tmp_path):
    model = SGLBClassifier(**FAST).fit(X, CLASSES)
    model._model.recipe.__dict__["classes"] = np.array([b"a", b"b", b"c"])
    with pytest.raises(TypeError, match="class labels of type"):
        model.save(tmp_path / "m.sglb")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "m.sglb"
    MODELS["binary"].save(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        MODELS["softmax"].save(path)
    assert path.read_bytes() == before
    assert [single.name for single in tmp_path.iterdir()] == ["m.sglb"]


def test_a_file_written_in_the_current_folder_needs_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MODELS["binary"].save("m.sglb")
    assert_same(MODELS["binary"], load("m.sglb"))


def test_an_estimator_that_is_not_fitted_cannot_be_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        SGLBRegressor().save(tmp_path / "m.sglb")


def test_the_file_is_a_safetensors_file_that_others_can_read(tmp_path):
    from safetensors import safe_open

    path = tmp_path / "m.sglb"
    MODELS["early"].save(path)
    with safe_open(path, framework="numpy") as file:
        document = json.loads(file.metadata()["sglb"])
        assert set(file.keys()) == set(archive.ARRAYS)
    assert document["format"] == "sglb"
    assert document["loss"] == {"name": "logistic", "parameters": {}}


def test_a_file_is_read_only_if_it_has_the_stated_hash(tmp_path):
    path = tmp_path / "m.sglb"
    MODELS["binary"].save(path)
    digits = hashlib.sha256(path.read_bytes()).hexdigest()
    for sha256 in (digits, digits.upper(), digits + "\n"):
        assert_same(MODELS["binary"], load(path, sha256=sha256))
    other = "0" * 64
    with pytest.raises(ModelFormatError, match=f"sha256: .* is {digits}, not {other}"):
        load(path, sha256=other)
    for wrong in ("", digits[:-1], f"{digits}  m.sglb", "g" * 64, 5, bytes.fromhex(digits)):
        with pytest.raises(ValueError, match="use the 64 hexadecimal digits that `sha256sum"):
            load(path, sha256=wrong)


def test_other_safetensors_writers_give_the_same_bytes():
    """The layout is that of the format's own library, though none is needed to read or write it."""
    from safetensors.numpy import load as load_arrays
    from safetensors.numpy import save as save_arrays

    for model in MODELS.values():
        data = archive.dumps(model._model)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        assert save_arrays(load_arrays(data), header["__metadata__"]) == data


@EVERY
def test_a_damaged_pickle_of_a_model_is_rejected(model):
    data, content = pickle.dumps(model), archive.dumps(model._model)
    begin = data.index(content)
    for position in np.random.default_rng(3).integers(0, len(content), 25):
        broken = bytearray(data)
        broken[begin + position] ^= 0x10
        with pytest.raises(ModelFormatError):
            pickle.loads(bytes(broken))
