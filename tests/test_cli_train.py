"""`sglb train`: tables and options -> a model file."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sglb import SGLBClassifier, SGLBRegressor, load
from sglb.cli.train import guess_task
from shell import SMALL, done, rejected, rows, sglb


def test_train_writes_the_model_that_the_estimator_would_have_fitted(classifier):
    table = rows()
    x = pa.table({name: table[name] for name in "ab"})
    model = SGLBClassifier(n_estimators=20, max_depth=3, random_state=0).fit(x, table["label"])
    loaded = load(classifier)
    assert np.array_equal(loaded.predict_proba(x), model.predict_proba(x))
    assert list(loaded.feature_names_in_) == ["a", "b"]


def test_train_says_what_it_found_and_did(folder):
    message = done("train", "train.csv", "-t", "label", "-m", "m.sglb", "--weight", "w", *SMALL)
    assert "200 rows, 3 features" in message
    assert "task: classification (text labels)" in message
    assert "trained 20 trees" in message
    assert "saved m.sglb" in message


def test_train_uses_weights(folder):
    common = ["train", "train.csv", "-t", "label", *SMALL]
    done(*common, "-m", "without.sglb", "--drop", "w")
    done(*common, "-m", "with.sglb", "--weight", "w")
    table = pa.parquet.read_table("test.parquet").select(["a", "b", "number"])
    assert not np.allclose(
        load("with.sglb").predict_raw(table), load("without.sglb").predict_raw(table)
    )


@pytest.mark.parametrize("watch", [("--valid", "test.parquet"), ("--valid-fraction", 0.25)])
@pytest.mark.parametrize("weight", [(), ("--weight", "w")])
def test_train_stops_early_on_evaluation_rows(folder, watch, weight):
    options = ["--early-stopping-rounds", 5, "--learning-rate", 0.5, "--drop", "number", "-q"]
    message = done("train", "train.csv", "-t", "label", "-m", "m.sglb", *watch, *weight, *options)
    model = load("m.sglb")
    assert model.n_iter_ == model.best_iteration_ < 1000
    assert f"best after {model.n_iter_} trees" in message


def test_progress_goes_to_standard_error_only(folder):
    result = sglb("train", "train.csv", "-t", "label", "-m", "m.sglb", "--n-estimators", 5)
    assert "5/5" in result.stderr
    assert "5/5" not in result.stdout


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (np.array(["x", "y"]), "classification"),
        (np.array([True, False]), "classification"),
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        (np.array([0.0, 1.0]), "classification"),
        (np.array([1.0, 2.0]), "regression"),
    ],
)
def test_the_task_is_guessed_from_the_target(values, task):
    assert guess_task(values)[0] == task


def test_the_task_may_be_stated(folder):
    pa.csv.write_csv(pa.table({"x": [1.0, 2.0, 3.0], "y": [0, 1, 1]}), "t.csv")
    done("train", "t.csv", "-t", "y", "-m", "r.sglb", "--task", "regression", *SMALL)
    assert isinstance(load("r.sglb"), SGLBRegressor)


SHOP_ROWS = 300


def write_shops(path, start=0, n_rows=SHOP_ROWS, zips=("02139", "K1A", "00501")):
    """A table with text, numbers that are names, and text that looks like numbers."""
    generator = np.random.default_rng(start)
    shop, zone = generator.integers(0, 80, n_rows), generator.integers(0, 5, n_rows)
    index = generator.integers(0, len(zips), n_rows)
    y = (shop % 2) + (zone == 3) + 2 * (np.array(zips)[index] == "02139")
    y = y + 0.1 * generator.standard_normal(n_rows)
    table = {"shop": [f"s{number}" for number in shop], "zone": zone, "zip": np.array(zips)[index]}
    pa.csv.write_csv(pa.table({**table, "y": y}), path)
    return y


def test_train_reads_text_as_categories_and_predict_reads_it_the_same_way(folder):
    write_shops("shops.csv")
    done("train", "shops.csv", "-t", "y", "-m", "m.sglb", *SMALL)
    model = load("m.sglb")
    assert model._model.recipe.encoding.is_categorical.tolist() == [True, False, True]
    y = write_shops("digits.csv", 1, zips=("02139", "00501"))  # all of it looks like numbers
    done("predict", "m.sglb", "digits.csv", "-o", "p.csv")
    predictions = pa.csv.read_csv("p.csv")["prediction"].to_numpy()
    assert np.corrcoef(predictions, y)[0, 1] > 0.8
    shown = json.loads(done("evaluate", "m.sglb", "digits.csv", "-t", "y", "--json"))
    assert shown["rmse"] == pytest.approx(np.sqrt(np.mean((predictions - y) ** 2)), rel=1e-4)
    facts = json.loads(done("info", "m.sglb", "--json"))
    assert facts["categorical_features"] == ["shop", "zip"]
    assert set(facts["feature_importances"]) == {"shop", "zone", "zip"}
    assert "categorical features" in done("info", "m.sglb")


def test_numbers_are_categories_on_request_and_the_valid_table_is_read_alike(folder):
    write_shops("shops.csv")
    write_shops("valid.csv", 1, zips=("02139", "00501"))
    with open("valid.csv", "a") as file:
        file.write("s1,outside,02139,1.5\n")
    words = ["train", "shops.csv", "-t", "y", "-m", "m.sglb", *SMALL]
    done(*words, "--categorical", "zone", "--valid", "valid.csv")
    model = load("m.sglb")
    assert model._model.recipe.encoding.is_categorical.all()
    shown = json.loads(done("evaluate", "m.sglb", "valid.csv", "-t", "y", "--json"))
    assert shown["loss"] == pytest.approx(model.evals_result_["validation_0"]["loss"][-1], rel=1e-4)
    assert "no feature column 'z' to treat as categorical" in rejected(*words, "--categorical", "z")


def test_a_model_with_categories_and_without_names_reads_columns_in_order(folder):
    y = write_shops("shops.csv")
    table = pa.csv.read_csv("shops.csv").drop_columns(["y"])
    model = SGLBRegressor(n_estimators=5, random_state=0)
    model.fit(np.array([column.to_pylist() for column in table.columns], dtype=object).T, y)
    model.save("m.sglb")
    pa.csv.write_csv(table, "rows.csv")
    done("predict", "m.sglb", "rows.csv", "-o", "p.csv")
    predictions = pa.csv.read_csv("p.csv")["prediction"].to_numpy()
    assert np.corrcoef(predictions, y)[0, 1] > 0.5
