"""No damaged or forged file is ever taken for another model, or costs more than an error.

SGLB_ALL_DAMAGE=1 changes every byte of the first kept model and reads what has a digest that fits;
`python tests/damage.py` does so with all kept models.
"""

import os
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import damage
import golden
from sglb import ModelFormatError, SGLBClassifier, SGLBRegressor, archive
from sglb.archive import blobs, container

SEEDS = damage.seeds()
FOUND = sorted((Path(__file__).parent / "data" / "fuzz").iterdir())
TINY = SEEDS["three_classes_2.sglb"]
EVERY = pytest.mark.parametrize("name", SEEDS)
# Beside 4 times the file: what Python's objects of a few fields take.
SLACK = 1 << 16


def test_every_flip_and_every_cut_of_a_model_is_rejected():
    for files in (damage.flips(TINY), damage.cuts(TINY)):
        for file in files:
            with pytest.raises(ModelFormatError):
                archive.loads_with_draws(file)


@EVERY
def test_a_flip_is_rejected_or_read_and_written_again_if_the_digest_fits(name):
    data = SEEDS[name]
    positions = np.random.default_rng(0).integers(0, len(data) - damage.DIGEST, 12).tolist()
    if os.environ.get("SGLB_ALL_DAMAGE") and data is TINY:
        positions = None
    kind = name[name.rindex(".") :]
    verdicts, failures = damage.count((f, kind) for f in damage.signed_flips(data, positions))
    assert not failures
    assert set(verdicts) <= {"rejected", "accepted"}


@settings(max_examples=250)
@given(st.binary(min_size=8, max_size=64))
def test_a_forgery_is_rejected_or_a_model_as_good_as_any(choices):
    assert damage.verdict(*damage.forgery(choices)) in ("rejected", "accepted")


def test_forgeries_of_chance_are_rejected_or_models_and_take_little_memory():
    chance = np.random.default_rng(7)
    forgeries = [damage.forgery(chance.bytes(64)) for _ in range(200)]
    verdicts, failures = damage.count(forgeries)
    assert not failures
    assert min(verdicts["rejected"], verdicts["accepted"]) > 2  # so that both are tested
    for file, kind in forgeries[:60]:
        assert damage.peak(file, kind) <= 4 * len(file) + SLACK


def large_models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] + rng.normal(size=200)
    many = {"n_estimators": 100, "max_depth": 6, "random_state": 0}
    labels = np.array([f"level {i}" for i in rng.integers(0, 90, 200)], dtype=object)
    table = np.column_stack([X.astype(object), labels])
    single, several = SGLBRegressor(**many).fit(X, y), SGLBClassifier(**many, n_chains=3)
    posterior = single.posterior(X, y, n_draws=16, temperature=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        long = (
            SGLBClassifier(**many)
            .fit(X, y > 0)
            .posterior(X, y > 0, kind="paper", n_draws=8, n_steps=100)
        )
    return {
        "trees": (single, None),
        "chains": (several.fit(X, y > 0), None),
        "categories": (SGLBRegressor(**many, categorical_features=[4]).fit(table, y), None),
        "scores": (SGLBRegressor(n_estimators=500, max_depth=1).fit(X, y, eval_set=(X, y)), None),
        "draws": (single, posterior._posterior),
        "long chains": (long.model, long._posterior),
    }


def test_reading_takes_at_most_four_times_the_file():
    for name, (model, draws) in large_models().items():
        data = archive.dumps(model._model, draws)
        assert damage.peak(data) <= 4 * len(data) + SLACK, name


def written(name, change_document=None, change_arrays=None, key="sglb", part=None):
    """A kept file whose content was changed, with a digest that fits."""

    def change(data, key):
        document, arrays = container.unpack(key, data)
        if key == "sglb" and part is not None:
            inner = change(arrays[f"part_{part}"].tobytes(), "part")
            arrays[f"part_{part}"] = np.frombuffer(inner, dtype=np.uint8)
        else:
            arrays = {name: np.array(array) for name, array in arrays.items()}
            for changing, content in ((change_document, document), (change_arrays, arrays)):
                if changing is not None:
                    changing(content)
        return b"".join(bytes(piece) for piece in container.pack(key, document, arrays))

    return damage.signed(change(SEEDS[f"{name}_{golden.FORMAT}.sglb"], key))


def rejected_field(data):
    with pytest.raises(ModelFormatError) as error:
        archive.loads_with_draws(data)
    return error.value.field


def setting(name, value):
    return lambda content: content.update({name: value})


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("version", 3, "the file has format 3, this version of sglb reads format 2: install a"),
        ("version", 1, "the file has format 1, .* an older version of sglb wrote it"),
        ("version", 2.0, "not allowed"),
        ("noise_version", True, "not allowed"),
        ("leaf_steps", 3, "leaf_steps=3 needs leaf_method='newton'"),
        ("sampler", {"sampler": "plain", "arguments": {"learning_rate": "a"}}, "'a'|not supported"),
        ("sampler", {"sampler": "plain", "arguments": {"learning_rate": -1.0}}, "above 0"),
        ("sampler", {"sampler": "plain", "arguments": {"learning_rate": 0.1}}, "1 parts"),
        ("sampler", {"list": []}, "no attribute 'move'"),
    ],
)
def test_a_field_is_rejected_with_the_reason(field, value, reason):
    data = written("hamiltonian", lambda document: document.update({"leaf_method": "gradient"}))
    archive.loads(data)
    data = written("hamiltonian", lambda d: d.update({"leaf_method": "gradient", field: value}))
    with pytest.raises(ModelFormatError, match=reason) as error:
        archive.loads(data)
    assert error.value.field == field


def test_a_model_of_another_noise_predicts_and_cannot_be_continued():
    data = written("numbers", lambda document: document.update({"noise_version": 2}))
    model = archive.loads(data)
    assert archive.dumps(model) == data
    same = archive.loads(SEEDS[f"numbers_{golden.FORMAT}.sglb"])
    assert np.array_equal(model.traces[0].values, same.traces[0].values)
    with pytest.raises(ValueError, match="version 2 of the noise"):
        model.recipe.make_chain(None, 1)


def test_a_newer_format_is_named_even_if_its_header_looks_different():
    document, arrays = container.unpack("sglb", TINY)
    pieces = container.pack("sglb", document | {"version": 9}, arrays)
    head = bytes(pieces[0]).replace(b'"dtype":"F64"', b'"dtype":"F16"')
    with pytest.raises(ModelFormatError, match="reads format 2: install a newer version"):
        archive.loads(damage.signed(head + b"".join(map(bytes, pieces[1:]))))


@pytest.mark.parametrize(
    "parameter",
    [
        {"number": "1.5"},
        {"number": "-nan"},
        {"number": "nan", "more": 1},
        {"pairs": [[1, 2], [True, 3]]},
        {"sampler": "langevin", "arguments": {"learning_rate": 0.1}},
        {"sampler": "plain", "arguments": {}},
        {"loss": {"name": "huber", "parameters": {"delta": 1}, "more": 2}},
        [1, 2],
    ],
)
def test_only_what_would_be_written_is_read_as_a_parameter(parameter):
    data = written("numbers", lambda document: document["parameters"].update(subsample=parameter))
    assert rejected_field(data) == "parameters"


def test_what_was_lost_inside_of_a_parameter_stays_readable():
    lost = {"pairs": [["a", {"lost": "Fraction"}], ["b", 1]]}
    change = {"class_weight": lost}
    model = archive.loads(written("two_classes", lambda d: d["parameters"].update(change)))
    assert model.recipe.parameters["class_weight"] == {"a": None, "b": 1}


def set_all(name, value):
    def change(arrays):
        arrays[name][...] = value

    return change


@pytest.mark.parametrize("name", ["numbers", "momentum", "chains", "quantiles"])
@pytest.mark.parametrize(("array", "value"), [("values", 1e308), ("gains", 1e308)])
def test_finite_numbers_whose_sums_are_not_are_rejected(name, array, value):
    assert rejected_field(written(name, change_arrays=set_all(array, value))) == array


def test_momentum_that_overflows_is_rejected():
    assert rejected_field(written("momentum", change_arrays=set_all("C", 1e200))) == "values"


def test_a_score_that_is_not_a_number_is_rejected():
    assert rejected_field(written("numbers", setting("best_score", True))) == "evals_result"
    text = TINY.replace(b'\\"best_score\\":null', b'\\"best_score\\":NaN ')
    assert rejected_field(damage.signed(text)) == "header"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'\\"seed\\":', b'\\"seed\\" :'),
        (b'{"__metadata__":{"sglb":', b'{"__metadata__":{"sglb" :'),
        (b'"data_offsets":[0,', b'"data_offsets":[8,'),
        (b'"dtype":"F64"', b'"dtype":"F16"'),
        (b'"dtype":"I32"', b'"dtype":"F32"'),
        (b'"shape":[', b'"shape":[-'),
        (b'"shape":[', b'"shape":[1e'),
    ],
)
def test_another_spelling_of_a_header_is_rejected(old, new):
    length = int.from_bytes(TINY[:8], "little")
    header = TINY[8 : 8 + length].rstrip().replace(old, new, 1)
    assert header != TINY[8 : 8 + length].rstrip()
    header += b" " * (-len(header) % 8)
    data = len(header).to_bytes(8, "little") + header + TINY[8 + length :]
    with pytest.raises(ModelFormatError):
        archive.loads(damage.signed(data))


def test_bytes_after_the_arrays_are_rejected():
    digest = bytes(damage.DIGEST)
    assert rejected_field(damage.signed(TINY[: -damage.DIGEST] + bytes(8) + digest)) == "arrays"


def test_a_header_that_is_longer_than_the_file_is_said_to_be_so():
    header = b'{"__metadata__":{"sglb":"{}"}}  '
    with pytest.raises(ModelFormatError, match="header: it is longer than the file"):
        container.unpack("sglb", (len(header) + 1).to_bytes(8, "little") + header)


@pytest.mark.parametrize("law", [10**400, 1e308, 0.0, True])
def test_numbers_of_a_law_that_no_double_holds_are_rejected(law):
    change = {"parameters": {"dispersion": law}, "unit": 1e300}
    data = written("amounts", lambda document: document.update(change), part="outcomes")
    assert rejected_field(data).startswith("outcomes")


@pytest.mark.parametrize(
    ("plan", "arrays"),
    [
        ({"n_draws": 3}, {}),
        ({"n_draws": 0}, {}),
        ({"n_draws": 10**400}, {}),
        ({"temperature": 10**400}, {}),
        ({}, {"stages": np.empty((2, 1, 0, 4))}),
        ({"n_draws": 1 << 40}, {"stages": np.empty((2, 1, 0, 1 << 40))}),
    ],
)
def test_draws_of_no_rows_or_of_an_odd_number_are_rejected(plan, arrays):
    data = written(
        "posterior",
        lambda document: document["plan"].update(plan),
        lambda content: content.update(arrays),
        part="draws",
    )
    assert rejected_field(data).startswith("draws")


def test_long_chains_of_another_recipe_are_rejected():
    data = written("long_chains", setting("structure_outputs", 3))
    assert rejected_field(data) == "draws.chains"


def test_arrays_of_no_value_and_many_columns_are_rejected():
    for shape in ((0, 1 << 39), (1 << 39, 0)):
        change = {"table_statistics": np.zeros(shape)}
        assert rejected_field(written("numbers", None, lambda a, c=change: a.update(c)))
        assert rejected_field(written("categories", None, lambda a, c=change: a.update(c)))


@pytest.mark.parametrize("pad", ["0, 1" + " " * 20_000, " " * 20_000 + "0, 1", "x" * 20_000])
def test_a_long_string_for_a_schedule_is_rejected_at_once(pad):
    schedule = {"sampler": "langevin", "arguments": LANGEVIN | {"learning_rate": f"linear({pad}"}}
    signal.alarm(10)  # a hang ends the process
    try:
        assert rejected_field(written("numbers", setting("sampler", schedule))) == "sampler"
        change = {"sampler": schedule}
        data = written("numbers", lambda document: document["parameters"].update(change))
        assert rejected_field(data) == "parameters"
    finally:
        signal.alarm(0)


LANGEVIN = {
    "learning_rate": 0.1, "temperature": 0.01, "shrink_rate": 0.01, "subsample": 1.0,
    "structure_noise": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("n_replicas", [1_000_000_000, 1 << 62, 1001, 1, 4.0, True, "4"])
def test_a_ladder_of_no_number_of_chains_is_rejected_without_making_it(n_replicas):
    def change(document):
        document["sampler"]["arguments"]["n_replicas"] = n_replicas

    data = written("tempering", change)
    assert rejected_field(data) in ("sampler", "exchange")
    alone = written("tempering", lambda document: (change(document), document.pop("exchange")))
    assert rejected_field(alone) == "exchange"
    assert damage.peak(alone) <= 4 * len(alone) + SLACK


def test_a_model_of_exchanged_temperatures_without_exchanges_is_rejected():
    assert rejected_field(written("tempering", lambda d: d.pop("exchange"))) == "exchange"


@pytest.mark.parametrize(
    ("kind", "labels"),
    [("bool", [False, 1]), ("bool", [0, True]), ("int64", [0, 1.0]), ("float64", [0, 1.5])],
)
def test_labels_that_equal_those_of_another_type_are_rejected(kind, labels):
    data = written("two_classes", setting("classes", {"dtype": kind, "labels": labels}))
    assert rejected_field(data) == "classes"


@pytest.mark.parametrize("depth", [1, 400])
def test_a_part_that_has_parts_is_rejected_before_they_are_read(depth):
    """Each level has the one before it as its scale, down to a model."""
    document, arrays = container.unpack("sglb", SEEDS[f"amounts_{golden.FORMAT}.sglb"])
    law = {"law": "student", "parameters": {"df": 4.0, "factor": 1.0}, "unit": 1.0}
    arrays.pop("part_posterior")
    data = SEEDS[f"numbers_{golden.FORMAT}.sglb"]
    for _ in range(depth + 1):
        scale = {"scale": np.frombuffer(data, dtype=np.uint8)}
        arrays["part_outcomes"] = blobs.pack(law, scale)
        pieces = container.pack("sglb", document, arrays)
        data = damage.signed(b"".join(map(bytes, pieces)))
    assert rejected_field(data) == "outcomes.scale.outcomes"


def test_long_chains_that_have_parts_are_rejected_before_they_are_read():
    data = SEEDS[f"long_chains_{golden.FORMAT}.sglb"]

    def nest(arrays):
        arrays["chains"] = np.frombuffer(data, dtype=np.uint8)

    assert rejected_field(written("long_chains", None, nest, part="draws")) == "draws.chains.draws"


def bomb(text):
    """A file whose document has one more field, made of this text."""
    length = int.from_bytes(TINY[:8], "little")
    header = (
        TINY[8 : 8 + length]
        .rstrip()
        .replace(b'\\"best_score', b'\\"a\\":' + text + b',\\"best_score')
    )
    header += b" " * (-len(header) % 8)
    return damage.signed(len(header).to_bytes(8, "little") + header + TINY[8 + length :])


@pytest.mark.parametrize("piece", [b"[]", b"{}", b"1", b"1.5", b"[[],{}]"])
def test_json_that_would_become_far_larger_in_memory_is_rejected_unread(piece):
    data = bomb(b"[" + b",".join([piece] * (24_000_000 // (len(piece) + 1) // 4)) + b"]")
    assert damage.peak(data) <= 4 * len(data) + container.MOST_OBJECT_BYTES
    assert rejected_field(data)


def test_labels_as_long_as_the_longest_are_rejected_before_they_are_made():
    labels = sorted([*(f"{i:06}" for i in range(5000)), "z" * 100_000])
    data = written("two_classes", setting("classes", {"dtype": "str", "labels": labels}))
    assert rejected_field(data) == "classes"
    assert damage.peak(data) < 1 << 22  # the array would take 2 GB


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name[:8])
def test_what_the_fuzzer_found_is_a_model_or_rejected(path):
    damage.verdict(*damage.forgery(path.read_bytes()))
