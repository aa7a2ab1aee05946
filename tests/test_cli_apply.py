"""`sglb predict`, `evaluate` and `info`: what a model file says."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sglb import SGLBClassifier, load, tables
from shell import SMALL, done, refused, rows


@pytest.mark.parametrize("output", ["p.csv", "p.tsv", "p.parquet"])
def test_predict_writes_what_the_model_predicts(classifier, output):
    done("predict", classifier, "test.parquet", "-o", output, "--proba", "--uncertainty")
    readers = {"csv": pa.csv.read_csv, "parquet": pa.parquet.read_table}
    readers["tsv"] = lambda path: pa.csv.read_csv(
        path, parse_options=pa.csv.ParseOptions(delimiter="\t")
    )
    written = readers[output.partition(".")[2]](output)
    x = pa.parquet.read_table("test.parquet").select(["a", "b"])
    model = load(classifier)
    assert written["prediction"].to_pylist() == model.predict(x).tolist()
    probability = np.column_stack([written["probability_high"], written["probability_low"]])
    assert np.array_equal(probability, model.predict_proba(x))
    parts = model.predict_uncertainty(x)
    for name in ("knowledge", "data", "total"):
        assert np.array_equal(written[name].to_numpy(), getattr(parts, name))


def test_predict_takes_columns_by_name_in_any_order(classifier):
    table = pa.parquet.read_table("test.parquet")
    pa.parquet.write_table(table.select(["b", "w", "a"]), "other.parquet")
    for name in ("test", "other"):
        done("predict", classifier, f"{name}.parquet", "-o", f"{name}.csv")
    assert (classifier.parent / "test.csv").read_bytes() == (
        classifier.parent / "other.csv"
    ).read_bytes()


def test_predict_of_a_regressor_has_numbers_and_uncertainty(regressor):
    done("predict", regressor, "test.parquet", "-o", "p.parquet", "--uncertainty")
    written = pa.parquet.read_table("p.parquet")
    assert written.column_names == ["prediction", "knowledge", "data", "total"]
    assert "needs a classifier" in refused(
        "predict", regressor, "test.parquet", "-o", "p.csv", "--proba"
    )


def test_predict_reads_a_model_that_was_trained_without_names(folder):
    table = rows()
    x = np.column_stack([table["a"], table["b"]])
    SGLBClassifier(n_estimators=5, random_state=0).fit(x, table["label"]).save("m.sglb")
    pa.csv.write_csv(pa.table({"a": table["a"], "b": table["b"]}), "x.csv")
    done("predict", "m.sglb", "x.csv", "-o", "p.csv")
    assert pa.csv.read_csv("p.csv")["prediction"].to_pylist() == load("m.sglb").predict(x).tolist()
    assert "2 unnamed columns, the table has 5" in refused(
        "predict", "m.sglb", "train.csv", "-o", "p.csv"
    )


def test_evaluate_prints_the_metrics_of_the_model(classifier):
    shown = json.loads(done("evaluate", classifier, "test.parquet", "-t", "label", "--json"))
    table = pa.parquet.read_table("test.parquet")
    model = load(classifier)
    x, y = table.select(["a", "b"]), np.array(table["label"].to_pylist())
    assert shown["rows"] == 200
    assert shown["accuracy"] == pytest.approx(np.mean(model.predict(x) == y))
    of_truth = model.predict_proba(x)[np.arange(200), (y == "low").astype(int)]
    assert shown["logloss"] == pytest.approx(-np.log(of_truth).mean())
    assert set(shown) == {"rows", "loss", "logloss", "error", "accuracy", "brier", "auc"}
    printed = done("evaluate", classifier, "test.parquet", "-t", "label")
    assert "accuracy" in printed
    weighted = done(
        "evaluate", classifier, "test.parquet", "-t", "label", "--weight", "w", "--json"
    )
    assert json.loads(weighted)["logloss"] != shown["logloss"]


def test_evaluate_of_a_regressor(regressor):
    shown = json.loads(done("evaluate", regressor, "test.parquet", "-t", "number", "--json"))
    assert set(shown) == {"rows", "loss", "rmse", "mae", "r2"}


def test_info_says_what_the_model_is(classifier):
    facts = json.loads(done("info", classifier, "--json", "--top", 1))
    assert facts["kind"] == "SGLBClassifier"
    assert facts["loss"] == "logistic"
    assert (facts["trees"], facts["depth"], facts["features"]) == (20, 3, 2)
    assert facts["classes"] == ["high", "low"]
    assert list(facts["feature_importances"]) == ["a"]
    assert facts["parameters"]["max_depth"] == 3
    printed = done("info", classifier)
    for words in ("SGLBClassifier", "logistic", "high, low", "max_depth", "share of the gain"):
        assert words in printed


def test_column_names_are_printed_as_they_are(folder):
    pa.csv.write_csv(pa.table({"[red]x": [1.0, 2.0] * 9, "y": [0, 1] * 9}), "t.csv")
    done("train", "t.csv", "-t", "y", "-m", "m.sglb", *SMALL)
    assert "[red]x" in done("info", "m.sglb")


def test_a_column_without_values_is_missing_everywhere(folder):
    (folder / "t.csv").write_text("a,b,y\n1,,0\n2,,1\n,,0\n4,,1\n")
    done("train", "t.csv", "-t", "y", "-m", "m.sglb", *SMALL)
    done("predict", "m.sglb", "t.csv", "-o", "p.csv")


def test_a_table_without_the_models_columns_is_refused(classifier):
    pa.csv.write_csv(pa.table({"a": [1.0]}), "t.csv")
    assert "no column 'b'" in refused("predict", classifier, "t.csv", "-o", "p.csv")


@pytest.mark.parametrize(
    ("labels", "said"),
    [(["high", "odd"], "label 'odd' in row 1"), ([1, 2], "holds numbers, the model's classes")],
)
def test_labels_that_the_model_does_not_know_are_refused(classifier, labels, said):
    pa.csv.write_csv(pa.table({"a": [1.0, 2.0], "b": [1.0, 2.0], "label": labels}), "t.csv")
    assert said in refused("evaluate", classifier, "t.csv", "-t", "label")


def test_text_is_refused_as_the_target_of_a_regressor(regressor):
    assert "holds text" in refused("evaluate", regressor, "test.parquet", "-t", "label")


def test_a_failed_write_leaves_the_old_file(classifier, monkeypatch):
    (classifier.parent / "p.csv").write_text("old")

    def fail(table, path):
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setitem(tables.WRITERS, ".csv", fail)
    assert "disk full" in refused("predict", classifier, "test.parquet", "-o", "p.csv")
    assert (classifier.parent / "p.csv").read_text() == "old"
    assert not list(classifier.parent.glob(".*"))
