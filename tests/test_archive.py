"""Model files: the same model back, the same bytes always, and nothing else let in."""

import contextlib
import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
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


@pytest.mark.parametrize("name", ["regressor", "softmax", "early", "chains"])
def test_no_mutated_byte_and_no_cut_file_is_ever_accepted(name):
    data = archive.dumps(MODELS[name]._model)
    chance = np.random.default_rng(11)
    for _ in range(300):
        broken = bytearray(data)
        match chance.integers(4):
            case 0:
                position = chance.integers(len(data))
                broken[position] ^= chance.integers(1, 256)
            case 1:
                del broken[chance.integers(len(data)) :]
            case 2:
                broken += chance.bytes(chance.integers(1, 50))
            case 3:  # the header is where a parser could be led astray
                position = chance.integers(min(len(data), 2000))
                broken[position] ^= chance.integers(1, 256)
        with pytest.raises(ModelFormatError):
            archive.loads(bytes(broken))


@pytest.mark.parametrize(
    "data", [b"", b"x" * 20, b"\xff" * 100, b"\x00" * 100, b"PK\x03\x04" + b"a" * 500]
)
def test_what_is_no_model_file_is_refused(data):
    with pytest.raises(ModelFormatError):
        archive.loads(data)


def forge(model, change_document=None, change_arrays=None):
    """Return the bytes of a model with changed content and a digest that fits it."""
    data = archive.dumps(model._model)
    length = int.from_bytes(data[:8], "little")
    document = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["sglb"])
    arrays = {name: array.copy() for name, array in load_arrays(data).items()}
    if change_document:
        change_document(document)
    if change_arrays:
        change_arrays(arrays)
    body = save_arrays(arrays, {"sglb": json.dumps(document)})[:-32]
    return body + hashlib.sha256(body).digest()


def test_forging_without_a_change_is_accepted():
    archive.loads(forge(MODELS["softmax"]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "xgb"),
        ("version", 1),
        ("version", 3),
        ("version", "1"),
        ("kind", "ranker"),
        ("kind", "regressor"),
        ("loss", {"name": "softmax", "parameters": {"n_classes": 4}}),
        ("loss", {"name": "os.system", "parameters": {}}),
        ("loss", {"name": "huber", "parameters": {"colour": 1}}),
        ("loss", "softmax"),
        ("classes", None),
        ("classes", {"dtype": "int64", "labels": [2, 1, 0]}),
        ("classes", {"dtype": "int64", "labels": [0, 1, 1]}),
        ("classes", {"dtype": "int8", "labels": [0, 1, 300]}),
        ("classes", {"dtype": "int64", "labels": [0, 1, 2, 3]}),
        ("classes", {"dtype": "V1000000000", "labels": [0, 1, 2]}),
        ("feature_names", ["a", "b"]),
        ("feature_names", ["a", "a", "b"]),
        ("feature_names", [1, 2, 3]),
        ("feature_dtype", "object"),
        ("categories", [1]),
        ("parameters", []),
        ("parameters", {"sampler": {"sampler": "hmc", "arguments": {}}}),
        ("parameters", {"loss": {"import": "os"}}),
        ("learning_rate", 0),
        ("temperature", -1.0),
        ("shrink_rate", None),
        ("leaf_method", "exact"),
        ("total_weight", "many"),
        ("seed", -1),
        ("seed", 1 << 64),
        ("residual_variance", -1),
        ("best_iteration", 5),
        ("best_score", "good"),
        ("best_score", {"list": []}),
        ("evals_result", {"a": 1}),
        ("evals_result", {"a": {"auc": ["good"]}}),
    ],
)
def test_a_forged_document_is_refused_by_its_field(field, value):
    data = forge(MODELS["softmax"], lambda document: document.update({field: value}))
    with pytest.raises(ModelFormatError) as error:
        archive.loads(data)
    assert error.value.field in (field, "classes", "loss", "parameters", "evals_result")
    assert error.value.field in str(error.value)


CHAIN = {"n_trees": 6, "best_iteration": None, "best_score": None, "evals_result": {}}


@pytest.mark.parametrize(
    ("chains", "field"),
    [
        (None, "chains"),
        ({}, "chains"),
        ([], "chains"),
        ([CHAIN | {"n_trees": 12}], "chains"),
        ([CHAIN] * 3, "chains"),
        ([CHAIN, CHAIN | {"n_trees": 1 << 63}], "chains"),
        ([CHAIN, 5], "chains[1]"),
        ([CHAIN, {"n_trees": 6}], "chains[1].best_iteration"),
        ([CHAIN, CHAIN | {"n_trees": 0}], "chains[1].n_trees"),
        ([CHAIN, CHAIN | {"n_trees": 6.0}], "chains[1].n_trees"),
        ([CHAIN, CHAIN | {"n_trees": True}], "chains[1].n_trees"),
        ([CHAIN, CHAIN | {"more": 1}], "chains[1].more"),
        ([CHAIN, CHAIN | {"best_iteration": 3}], "chains[1].best_iteration"),
        ([CHAIN, CHAIN | {"best_score": "good"}], "chains[1].best_score"),
        ([CHAIN, CHAIN | {"evals_result": []}], "chains[1].evals_result"),
    ],
)
def test_forged_chains_are_refused_by_their_field(chains, field):
    def change(document):
        document["chains"] = chains

    with pytest.raises(ModelFormatError) as error:
        archive.loads(forge(MODELS["regressor"], change))
    assert error.value.field == field


def test_how_many_chains_there_are_is_told_by_their_trees_alone():
    def change(document):
        document["chains"] = [CHAIN] * 2
        document["parameters"]["n_chains"] = 7

    model = archive.loads(forge(MODELS["regressor"], change))
    assert [len(trace) for trace in model.traces] == [6, 6]
    assert model.recipe.parameters["n_chains"] == 2


@pytest.mark.parametrize(
    ("name", "classes", "reason"),
    [
        ("softmax", [0, 1], "2 classes for 3 outputs"),
        ("softmax", [0], "1 classes for 3 outputs"),
        ("binary", [0, 1, 2], "3 classes for 1 outputs"),
    ],
)
@pytest.mark.parametrize("with_loss", [True, False])
def test_classes_that_do_not_fit_the_outputs_are_refused(name, classes, reason, with_loss):
    def change(document):
        document["classes"] = {"dtype": "int64", "labels": classes}
        document["loss"] = document["loss"] if with_loss else None

    with pytest.raises(ModelFormatError, match=f"classes: {reason}"):
        archive.loads(forge(MODELS[name], change))


@pytest.mark.parametrize(
    ("name", "loss", "kind"),
    [("binary", "squared", "classifier"), ("regressor", "logistic", "regressor")],
)
def test_a_loss_of_another_task_is_refused(name, loss, kind):
    stored = {"name": loss, "parameters": {}}
    with pytest.raises(ModelFormatError, match=f"loss: '{loss}' is not a loss of a {kind}"):
        archive.loads(forge(MODELS[name], lambda document: document.update(loss=stored)))


@pytest.mark.parametrize("field", ["format", "parameters", "best_score", "classes"])
@pytest.mark.parametrize("depth", [60, 300, 900, 100_000])
def test_a_document_that_is_nested_deeply_is_refused_before_it_is_walked(field, depth):
    mark = "a place for what json.dumps would not write"
    data = forge(MODELS["softmax"], lambda document: document.update({field: mark}))
    length = int.from_bytes(data[:8], "little")
    nested = b'{\\"list\\":[' * depth + b"]}" * depth
    header = data[8 : 8 + length].replace(b'\\"' + mark.encode() + b'\\"', nested)
    assert len(header) > length
    header += b" " * (-len(header) % 8)
    body = len(header).to_bytes(8, "little") + header + data[8 + length : -32]
    with pytest.raises(ModelFormatError, match=r"header: .*nested"):
        archive.loads(body + hashlib.sha256(body).digest())


def test_a_missing_or_unknown_field_is_named():
    with pytest.raises(ModelFormatError, match="seed: missing"):
        archive.loads(forge(MODELS["softmax"], lambda document: document.pop("seed")))
    with pytest.raises(ModelFormatError, match="extra: unknown field"):
        archive.loads(forge(MODELS["softmax"], lambda document: document.update(extra=1)))


def set_at(name, index, value):
    def change(arrays):
        arrays[name][index] = value

    return change


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("features", set_at("features", (0, 0), 3)),
        ("features", set_at("features", (0, 0), -1)),
        ("highs", set_at("highs", (0, 0), 255)),
        ("lows", set_at("lows", (0, 0), 255)),
        ("depths", set_at("depths", 0, 17)),
        ("depths", set_at("depths", 0, -1)),
        ("values", set_at("values", (0, 0, 0), np.nan)),
        ("values", set_at("values", (0, 0, 0), np.inf)),
        ("C", set_at("C", (0, 0, 0), 0.0)),
        ("C", set_at("C", (0, 0, 0), 1.5)),
        ("C", set_at("C", (0, 0, 0), np.nan)),
        ("b", set_at("b", (0, 0), np.inf)),
        ("cover", set_at("cover", (0, 0), -1.0)),
        ("temperatures", set_at("temperatures", 0, -1.0)),
        ("gains", set_at("gains", (0, 0), np.nan)),
        ("offset", set_at("offset", 0, np.inf)),
        ("n_thresholds", set_at("n_thresholds", 0, 64)),
        ("n_thresholds", set_at("n_thresholds", 0, -1)),
        ("thresholds", set_at("thresholds", (0, 0), np.nan)),
        ("thresholds", set_at("thresholds", (0, 0), np.inf)),
        ("thresholds order", set_at("thresholds", (0, 0), 1e9)),
        ("values", lambda arrays: arrays.update(values=arrays["values"][:, :4])),
        ("depths", lambda arrays: arrays.update(depths=arrays["depths"][:-1])),
        ("offset", lambda arrays: arrays.update(offset=arrays["offset"].astype("f4"))),
        ("gains", lambda arrays: arrays.pop("gains")),
        ("more", lambda arrays: arrays.update(more=np.zeros(3))),
    ],
)
def test_a_forged_array_is_refused_by_its_name(field, change):
    with pytest.raises(ModelFormatError) as error:
        archive.loads(forge(MODELS["softmax"], change_arrays=change))
    assert error.value.field in (field, "values", "cover")


ODD_VALUES = [
    None, True, 0, -1, 3.5, 10**400, "", "x", [], [[]], ["a"], {}, {"a": 1},
    {"number": "abc"}, {"pairs": [[1]]}, {"pairs": [[[], 1]]}, {"lost": "x"}, {"loss": {"name": 1}},
    {"loss": {"name": "huber", "parameters": {"delta": []}}},
    {"sampler": "plain", "arguments": {"learning_rate": "a"}},
    {"dtype": "float64", "labels": ["a", "b"]}, {"dtype": "object", "labels": ["a", 1]},
    {"dtype": "str", "labels": [1, 2]}, {"dtype": "bool", "labels": [0, 1, 2]},
]  # fmt: skip


@EVERY
def test_odd_content_with_a_right_digest_loads_or_is_refused_but_never_breaks(model, tmp_path):
    chance = np.random.default_rng(17)
    path = tmp_path / "m.sglb"

    def odd_field(document):
        home = document if chance.random() < 0.7 else document["parameters"]
        home[chance.choice(sorted(home))] = ODD_VALUES[chance.integers(len(ODD_VALUES))]

    def odd_bit(arrays):
        name = chance.choice(sorted(name for name in arrays if arrays[name].size))
        bits = arrays[name].reshape(-1).view(np.uint8)
        bits[chance.integers(bits.size)] ^= chance.integers(1, 256)

    for trial in range(60):
        path.write_bytes(forge(model, odd_field) if trial % 2 else forge(model, None, odd_bit))
        with contextlib.suppress(ModelFormatError):
            again = load(path)
            assert len(again.predict(X[:, : again.n_features_in_])) == 200


def test_unknown_parameters_of_the_constructor_are_refused(tmp_path):
    path = tmp_path / "m.sglb"
    forged = forge(MODELS["softmax"], lambda d: d["parameters"].update(colour="red"))
    path.write_bytes(forged)
    with pytest.raises(ModelFormatError, match="colour"):
        load(path)
    path.write_bytes(forge(MODELS["softmax"], lambda d: d["parameters"].update(max_depth=99)))
    with pytest.raises(ModelFormatError, match="max_depth=99 is not allowed"):
        load(path)


def test_a_file_that_is_too_large_is_refused_unread(tmp_path):
    path = tmp_path / "huge.sglb"
    with path.open("wb") as file:
        file.truncate(archive.MOST_BYTES + 1)  # a hole: takes no room on disk
    with pytest.raises(ModelFormatError, match="size"):
        load(path)


def test_the_file_is_a_safetensors_file_that_others_can_read(tmp_path):
    from safetensors import safe_open

    path = tmp_path / "m.sglb"
    MODELS["early"].save(path)
    with safe_open(path, framework="numpy") as file:
        document = json.loads(file.metadata()["sglb"])
        assert set(file.keys()) == set(archive.ARRAYS)
    assert document["format"] == "sglb"
    assert document["loss"] == {"name": "logistic", "parameters": {}}
