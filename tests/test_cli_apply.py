"""`sglb predict`, `evaluate` and `info`: what a model file says."""

import csv
import gzip
import io
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sglb import SGLBClassifier, SGLBRanker, load, tables
from shell import SMALL, done, rejected, rows, sglb


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
    assert "needs a classifier" in rejected(
        "predict", regressor, "test.parquet", "-o", "p.csv", "--proba"
    )


def test_a_ranker_predicts_scores_and_is_scored_in_python(folder):
    x = pa.parquet.read_table("test.parquet").select(["a", "b"])
    y = np.arange(len(x)) % 3
    ranker = SGLBRanker(n_estimators=3, random_state=0).fit(x, y, group=np.zeros(len(x)))
    ranker.save("ranker.sglb")
    done("predict", "ranker.sglb", "test.parquet", "-o", "p.parquet")
    written = pa.parquet.read_table("p.parquet")
    assert written["prediction"].to_pylist() == ranker.predict(x).tolist()
    assert "scored within queries" in rejected(
        "evaluate", "ranker.sglb", "test.parquet", "--target", "a"
    )
    options = ("ranker.sglb", "test.parquet", "-o", "p.csv")
    assert "the model is a ranker" in rejected("predict", *options, "--uncertainty")
    assert "is for rankings; use sglb.SGLBRanker" in rejected(
        "train", "train.csv", "-t", "number", "-m", "r.sglb", "--loss", "xendcg"
    )


def test_several_quantiles_are_a_column_each(folder):
    words = ["--loss", "quantile", "--quantile", "0.1,0.5,0.9"]
    done("train", "train.csv", "-t", "number", "-m", "q.sglb", *SMALL, *words)
    model = load("q.sglb")
    assert model.quantile == [0.1, 0.5, 0.9]
    done("predict", "q.sglb", "test.parquet", "-o", "p.parquet")
    written = pa.parquet.read_table("p.parquet")
    assert written.column_names == ["prediction_0.1", "prediction_0.5", "prediction_0.9"]
    x = pa.parquet.read_table("test.parquet").select(list(model.feature_names_in_))
    assert np.array_equal(np.column_stack(written.columns), model.predict(x))
    done("evaluate", "q.sglb", "test.parquet", "-t", "number")
    message = rejected("train", "train.csv", "-t", "number", "-m", "r.sglb", *words[:3], "0.9,0.1")
    assert "increasing" in message


def test_predict_reads_a_model_that_was_trained_without_names(folder):
    table = rows()
    x = np.column_stack([table["a"], table["b"]])
    SGLBClassifier(n_estimators=5, random_state=0).fit(x, table["label"]).save("m.sglb")
    pa.csv.write_csv(pa.table({"a": table["a"], "b": table["b"]}), "x.csv")
    done("predict", "m.sglb", "x.csv", "-o", "p.csv")
    assert pa.csv.read_csv("p.csv")["prediction"].to_pylist() == load("m.sglb").predict(x).tolist()
    assert "2 unnamed columns, the table has 5" in rejected(
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


def test_a_table_without_the_models_columns_is_rejected(classifier):
    pa.csv.write_csv(pa.table({"a": [1.0]}), "t.csv")
    assert "no column 'b'" in rejected("predict", classifier, "t.csv", "-o", "p.csv")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["high", "odd"], "label 'odd' in row 1"),
        ([1, 2], "holds numbers, but the model's classes are text"),
    ],
)
def test_labels_not_seen_during_training_are_rejected(classifier, labels, message):
    pa.csv.write_csv(pa.table({"a": [1.0, 2.0], "b": [1.0, 2.0], "label": labels}), "t.csv")
    assert message in rejected("evaluate", classifier, "t.csv", "-t", "label")


def test_text_is_rejected_as_the_target_of_a_regressor(regressor):
    assert "holds text" in rejected("evaluate", regressor, "test.parquet", "-t", "label")


def test_a_failed_write_leaves_the_old_file(classifier, monkeypatch):
    (classifier.parent / "p.csv").write_text("old")

    def fail(table, path):
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setitem(tables.WRITERS, ".csv", fail)
    assert "disk full" in rejected("predict", classifier, "test.parquet", "-o", "p.csv")
    assert (classifier.parent / "p.csv").read_text() == "old"
    assert not list(classifier.parent.glob(".*"))


def test_predict_writes_to_standard_output_and_nothing_else(classifier):
    done("predict", classifier, "test.parquet", "-o", "p.csv")
    written = (classifier.parent / "p.csv").read_text()
    assert done("predict", classifier, "test.parquet") == written
    assert done("predict", classifier, "test.parquet", "-o", "-") == written


def test_messages_of_predict_go_to_standard_error(classifier):
    result = sglb("predict", classifier, "test.parquet", "-o", "p.csv")
    assert result.stdout == ""
    assert result.stderr == "p.csv: 200 rows, prediction\n"


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_tables_are_read_from_standard_input(classifier, form):
    table = pa.parquet.read_table("test.parquet")
    sink = io.BytesIO()
    if form == "parquet":
        pa.parquet.write_table(table, sink)
    else:
        pa.csv.write_csv(table, sink)
    data = gzip.compress(sink.getvalue()) if form == "csv.gz" else sink.getvalue()
    assert done("predict", classifier, "-", stdin=data) == done(
        "predict", classifier, "test.parquet"
    )
    for words in (["evaluate", classifier], ["train"]):
        more = ["-m", "n.sglb", *SMALL] if words == ["train"] else []
        done(*words, "-", "-t", "label", *more, stdin=data)
    assert "standard input: the file is empty" in rejected("predict", classifier, "-", stdin=b"")


def test_the_table_and_the_valid_table_cannot_both_be_standard_input(folder):
    message = rejected("train", "-", "-t", "y", "-m", "m.sglb", "--valid", "-", stdin=b"a,y\n1,2\n")
    assert "the table and --valid cannot both be standard input" in message


def test_predict_keeps_columns_as_they_are(classifier):
    text = "id;a;b;Ort\n007;1,50;2;Köln\n0042;-1,00;3;NA\n"
    (classifier.parent / "t.csv").write_bytes(text.encode("cp1252"))
    written = done("predict", classifier, "t.csv", "--keep", "Ort", "--keep", "id", "--keep", "a")
    assert list(csv.reader(io.StringIO(written))) == [
        ["Ort", "id", "a", "prediction"],
        ["Köln", "007", "1,50", "high"],
        ["NA", "0042", "-1,00", "low"],
    ]
    written = done("predict", classifier, "t.csv", "--keep-all")
    assert written.splitlines()[1] == '"007","1,50","2","Köln","high"'


def test_predict_keeps_the_types_of_a_parquet_file(classifier):
    done("predict", classifier, "test.parquet", "--keep", "w", "-o", "p.parquet")
    written = pa.parquet.read_table("p.parquet")
    assert written["w"].equals(pa.parquet.read_table("test.parquet")["w"])
    assert written.column_names == ["w", "prediction"]


def test_columns_that_cannot_be_kept_are_rejected(classifier):
    message = rejected("predict", classifier, "test.parquet", "--keep", "id")
    assert "no column 'id' to keep; the table has 'a', 'b', 'w'" in message
    (classifier.parent / "t.csv").write_text("a,b,prediction\n1,2,3\n")
    message = rejected("predict", classifier, "t.csv", "--keep-all")
    assert "column 'prediction' cannot be kept: the output has a column of that name" in message


def test_a_file_in_another_format_than_the_training_file_gives_the_same_predictions(classifier):
    table = pa.parquet.read_table("test.parquet")
    a, b = (table[name].to_pylist() for name in "ab")
    rows = [f"{x!r}|{y!r}|{label}" for x, y, label in zip(a, b, table["label"], strict=True)]
    text = "\n".join(["a|b|label", *rows]).replace(".", ",")
    (classifier.parent / "t.csv").write_text(text, encoding="utf-16")
    assert done("predict", classifier, "t.csv") == done("predict", classifier, "test.parquet")
    words = ["-t", "label", "--json"]
    assert done("evaluate", classifier, "t.csv", *words) == done(
        "evaluate", classifier, "test.parquet", *words
    )


def test_a_reader_that_stops_early_is_not_an_error(classifier):
    text = "a,b\n" + "1,2\n" * 200_000
    (classifier.parent / "t.csv").write_text(text)
    code = "from sglb.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "predict", "m.sglb", "t.csv"],
        cwd=classifier.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b'"prediction"\n'
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1
