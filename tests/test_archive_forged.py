"""Damaged and forged model files are rejected, with the field that is wrong."""

import contextlib
import hashlib
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from sglb import ModelFormatError, SGLBRegressor, archive, load
from sglb.archive.arguments import to_json
from sglb.checkpoints.store import Store
from sglb.samplers import Plain, Tempering
from test_archive import EVERY, MODELS, X


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
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    body = save_arrays(arrays, {"sglb": text})[:-32]
    return body + hashlib.sha256(body).digest()


def test_forging_without_a_change_is_accepted():
    archive.loads(forge(MODELS["softmax"]))


def test_a_model_that_was_trained_with_another_noise_predicts_the_same(tmp_path):
    data = forge(MODELS["softmax"], lambda document: document.update(noise_version=99))
    (tmp_path / "model.sglb").write_bytes(data)
    again = load(tmp_path / "model.sglb").predict_proba(X)
    np.testing.assert_array_equal(again, MODELS["softmax"].predict_proba(X))


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


def test_an_infinite_number_is_refused_with_the_header():
    data = forge(MODELS["softmax"], lambda document: document.update(learning_rate=float("inf")))
    with pytest.raises(ModelFormatError, match="header: Out of range"):
        archive.loads(data)


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


def test_what_is_no_regular_file_is_refused_unread(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # which nobody ever writes to
    for path in (tmp_path / "pipe", "/dev/zero"):
        for read in (load, lambda path: Store(Path(path)).read()):
            with pytest.raises(ModelFormatError, match=r"file: .* is a pipe or a device"):
                read(path)
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_saving_has_the_permissions_of_any_new_file_and_leaves_the_mask_alone(
    tmp_path, monkeypatch
):
    before = os.umask(0o027)
    try:
        # Of the whole process: files that other threads make in between would be anybody's.
        monkeypatch.setattr(os, "umask", pytest.fail)
        MODELS["softmax"].save(tmp_path / "m.sglb")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m.sglb").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["m.sglb"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exchange": []}, "it must be a list of rates"),
        ({"exchange": 3}, "it must be a list of rates"),
        ({"exchange": [0.5, 1.5]}, "1.5 is not a rate"),
        ({"exchange": [0.5, -0.5]}, "-0.5 is not a rate"),
        ({"exchange": [0.5, "x"]}, "'x' is not a rate"),
        ({"exchange": [0.5]}, "3 chains do not have 1 pairs"),
        ({"exchange": [0.5] * 6}, "3 chains do not have 6 pairs"),
        (
            {"exchange": [0.5] * 6, "sampler": {"lost": "Tempering"}},
            "12 trees are not those of 7 chains of one length",
        ),
        ({"sampler": to_json(Plain(0.1))}, "the sampler exchanges no temperatures"),
        ({"sampler": {"sampler": "tempering"}}, "the sampler exchanges no temperatures"),
        ({"sampler": {"lost": "A", "sampler": 1}}, "the sampler exchanges no temperatures"),
        ({"chains": []}, "of a single model"),
    ],
)
def test_a_file_with_other_exchanges_is_not_a_model(change, message):
    ladder = Tempering(0.1, 0.01, 0.2, hot_temperature=0.1, n_replicas=3)
    model = SGLBRegressor(sampler=ladder, n_estimators=4, max_depth=2).fit(X, X[:, 0])
    archive.loads(forge(model))
    with pytest.raises(ModelFormatError, match=message):
        archive.loads(forge(model, lambda document: document.update(change)))
