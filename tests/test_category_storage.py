"""Categorical columns in model files: the same encoding back, and nothing else let in."""

import contextlib
import pickle

import numpy as np
import polars as pl
import pytest

from sglb import ModelFormatError, SGLBClassifier, SGLBRegressor, archive, load
from sglb.categories import storage
from test_archive_forged import ODD_VALUES, forge

rng = np.random.default_rng(3)
N = 3000
SHOP, BRAND = rng.integers(0, 90, N), rng.integers(0, 80, N)
TABLE = pl.DataFrame(
    {
        "shop": [f"s{number} ä\n" for number in SHOP],
        "x": rng.normal(size=N),
        "brand": [f"b{number}" for number in BRAND],
        "size": rng.choice(["S", "M", ""], N),
        "row": [f"row {number}" for number in range(N)],
    }
).with_columns(size=pl.when(pl.col("x") > 1).then(None).otherwise("size"))
# Shop and brand decide together, neither alone.
RAW = TABLE["x"].to_numpy() + 3.0 * rng.integers(0, 2, (90, 80))[SHOP, BRAND]
FAST = {"n_estimators": 12, "max_depth": 3, "learning_rate": 0.3, "random_state": 0}

FITTED = {
    "binary": SGLBClassifier(**FAST).fit(TABLE, RAW > 1),
    "classes": SGLBClassifier(**FAST).fit(TABLE, np.digitize(RAW, [0.0, 2.0])),
    "regressor": SGLBRegressor(**FAST, categorical_features=["shop", "brand", "size", "row"]).fit(
        TABLE, RAW
    ),
    "levels": SGLBClassifier(**FAST, categorical_features=[0]).fit(
        np.array([["a"], ["b"], [None], ["\ud800"]] * 9, dtype=object), [0, 1, 0, 1] * 9
    ),
}
EVERY = pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)


def rows_of(model):
    return TABLE if model.n_features_in_ == 5 else np.array([["a"], ["?"], [None]], dtype=object)


def test_the_models_of_this_file_have_all_that_can_be_stored():
    tables = FITTED["binary"]._model.recipe.encoding.tables
    assert {len(table.members) for table in tables} >= {1, 2}
    assert FITTED["binary"]._model.recipe.encoding.vocabularies[2].has_missing


@EVERY
def test_a_model_with_categories_comes_back_from_file_and_pickle(model, tmp_path):
    path = tmp_path / "m.sglb"
    model.save(path)
    rows = rows_of(model)
    for again in (load(path), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict_raw(rows), model.predict_raw(rows))
        assert archive.dumps(again._model) == path.read_bytes()
        assert again.n_features_in_ == model.n_features_in_
        assert np.array_equal(again.feature_importances_, model.feature_importances_)
        assert again.categorical_features == model.categorical_features
        assert (
            again.row_predictor()(list(rows[0] if rows is not TABLE else rows.row(0))) is not None
        )


def put(*path, value):
    """A change of the JSON part: the place `path` of categories becomes `value`."""

    def change(document):
        home = document["categories"]
        for step in path[:-1]:
            home = home[step]
        home[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda d: d.update(categories=None), "categories"),
        (lambda d: d.update(categories=[]), "categories"),
        (lambda d: d.update(categories={}), "categories"),
        (lambda d: d["categories"].update(more=1), "categories"),
        (put("is_categorical", value=[True] * 5), "categories"),
        (put("is_categorical", value=[True, False, True, True]), "categories"),
        (put("is_categorical", value=[1, 0, 1, 1, 1]), "categories"),
        (put("columns", value=[]), "categories"),
        (put("columns", 0, "n_labels", value=-1), "categories"),
        (put("columns", 0, "n_labels", value=True), "categories"),
        (put("columns", 0, "n_labels", value=3), "level_ends"),
        (put("columns", 0, "has_missing", value=1), "categories"),
        (put("columns", 0, "has_missing", value=True), "categories"),
        (put("level_columns", value=[]), "categories"),
        (put("level_columns", value=[2, 2]), "categories"),
        (put("level_columns", value=[2, 9]), "categories"),
        (put("level_columns", value=["2"]), "categories"),
        (put("tables", value=[]), "table_statistics"),
        (put("tables", 0, "members", value=[]), "categories"),
        (put("tables", 0, "members", value=[9]), "categories"),
        (put("tables", 0, "members", value=[1]), "categories"),
        (put("tables", -1, "members", value=[0, 0]), "categories"),
        (put("tables", -1, "members", value=[2, 3]), "table_keys"),
        (put("tables", 0, "n_entries", value=5), "table_statistics"),
        (put("tables", 0, "n_entries", value=None), "categories"),
        (put("tables", 0, "n_entries", value=0), "categories"),
    ],
)
def test_a_forged_encoding_is_rejected_by_its_field(change, field):
    with pytest.raises(ModelFormatError) as error:
        archive.loads(forge(FITTED["binary"], change))
    assert error.value.field == field


def test_a_combination_without_entries_is_rejected():
    """Its keys would be -1 in number, which another combination can make up for."""
    rows = FITTED["binary"]._model.recipe.encoding.tables
    first, second = [index for index, table in enumerate(rows) if len(table.members) > 1][:2]

    def change(document):
        tables = document["categories"]["tables"]
        tables[second]["n_entries"] += tables[first]["n_entries"]
        tables[first]["n_entries"] = 0

    with pytest.raises(ModelFormatError, match="categories: a table has no entry"):
        archive.loads(forge(FITTED["binary"], change))


def at(name, index, value):
    def change(arrays):
        arrays[name][index] = value

    return change


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (at("level_text", 0, 0xFF), "level_text"),
        (at("level_text", 0, ord("z")), "level_text"),
        (at("level_ends", 0, 1 << 40), "level_ends"),
        (at("level_ends", 0, -1), "level_ends"),
        (at("level_ends", -1, 5), "level_ends"),
        (at("table_statistics", (0, 0), np.nan), "table_statistics"),
        (at("table_counts", 0, -1.0), "table_counts"),
        (at("table_counts", 0, np.inf), "table_counts"),
        (at("table_keys", 0, (1 << 64) - 1), "table_keys"),
        (lambda arrays: at("table_keys", 0, arrays["table_keys"][1])(arrays), "table_keys"),
        (lambda a: a.update(table_keys=a["table_keys"][1:]), "table_keys"),
        (lambda a: a.update(table_counts=a["table_counts"][1:]), "table_counts"),
        (lambda a: a.update(table_statistics=a["table_statistics"][:0]), "table_statistics"),
        (lambda a: a.update(table_keys=a["table_keys"].astype(np.int64)), "table_keys"),
        (lambda a: a.pop("level_text"), "level_text"),
    ],
)
def test_a_forged_table_is_rejected_by_its_name(change, field):
    with pytest.raises(ModelFormatError) as error:
        archive.loads(forge(FITTED["binary"], None, change))
    assert error.value.field == field


@EVERY
def test_odd_content_with_a_right_digest_loads_or_is_rejected_but_never_breaks(model, tmp_path):
    chance = np.random.default_rng(17)
    path = tmp_path / "m.sglb"

    def odd_field(document):
        categories = document["categories"]
        name = chance.choice(sorted(categories))
        odd = ODD_VALUES[chance.integers(len(ODD_VALUES))]
        if isinstance(categories[name], list) and categories[name] and chance.random() < 0.7:
            index = chance.integers(len(categories[name]))
            entry = categories[name][index]
            if isinstance(entry, dict):
                entry[chance.choice(sorted(entry))] = odd
            else:
                categories[name][index] = odd
        else:
            categories[name] = odd

    def odd_bit(arrays):
        name = chance.choice(sorted(name for name in storage.ARRAYS if arrays[name].size))
        bits = arrays[name].reshape(-1).view(np.uint8)
        bits[chance.integers(bits.size)] ^= chance.integers(1, 256)

    for trial in range(60):
        path.write_bytes(forge(model, odd_field) if trial % 2 else forge(model, None, odd_bit))
        with contextlib.suppress(ModelFormatError):
            assert len(load(path).predict(rows_of(model))) == len(rows_of(model))
