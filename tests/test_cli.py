import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from sglb import SGLBClassifier, SGLBRegressor, load, tables
from sglb.cli.app import app
from sglb.cli.train import guess_task

RUNNER = CliRunner()
SMALL = ["--n-estimators", "20", "--max-depth", "3", "--quiet"]


def sglb(*words):
    result = RUNNER.invoke(app, [str(word) for word in words], prog_name="sglb")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def done(*words):
    result = sglb(*words)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*words):
    result = sglb(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def rows(n_rows=200, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n_rows, 2))
    high = x[:, 0] + 0.3 * generator.standard_normal(n_rows) > 0
    return {
        "a": x[:, 0],
        "b": x[:, 1],
        "w": generator.uniform(0.5, 1.5, n_rows),
        "label": np.where(high, "high", "low"),
        "number": 3 * x[:, 0] + x[:, 1],
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(pa.table(rows()), "train.csv")
    pa.parquet.write_table(pa.table(rows(seed=1)), "test.parquet")
    return tmp_path


@pytest.fixture
def classifier(folder):
    done(
        "train",
        "train.csv",
        "-t",
        "label",
        "-m",
        "m.sglb",
        "--drop",
        "number",
        "--drop",
        "w",
        *SMALL,
    )
    return folder / "m.sglb"


@pytest.fixture
def regressor(folder):
    drop = ["--drop", "label", "--drop", "w"]
    done("train", "train.csv", "-t", "number", "-m", "r.sglb", *drop, *SMALL)
    return folder / "r.sglb"


def test_train_writes_the_model_that_the_estimator_would_have_fitted(classifier):
    table = rows()
    x = pa.table({name: table[name] for name in "ab"})
    model = SGLBClassifier(n_estimators=20, max_depth=3, random_state=0).fit(x, table["label"])
    loaded = load(classifier)
    assert np.array_equal(loaded.predict_proba(x), model.predict_proba(x))
    assert list(loaded.feature_names_in_) == ["a", "b"]


def test_train_says_what_it_found_and_did(folder):
    said = done("train", "train.csv", "-t", "label", "-m", "m.sglb", "--weight", "w", *SMALL)
    assert "200 rows, 3 features" in said
    assert "task: classification (text labels)" in said
    assert "trained 20 trees" in said
    assert "saved m.sglb" in said


def test_train_passes_every_option_on(folder):
    options = ["--loss", "sla", "--learning-rate", 0.2, "--temperature", 0.01, "--seed", 7]
    options += ["--shrink-rate", 0.02, "--subsample", 0.8, "--max-bins", 9, "--sampler", "langevin"]
    done("train", "train.csv", "-t", "label", "-m", "m.sglb", *options, "--jobs", 1, *SMALL)
    model = load("m.sglb")
    assert model.loss_.name == "sla"
    assert (model.learning_rate_, model.temperature_, model.shrink_rate_) == (0.2, 0.01, 0.02)
    assert (model.subsample, model.max_bins, model.max_depth) == (0.8, 9, 3)
    assert (model.sampler, model.random_state) == ("langevin", 7)


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
    said = done("train", "train.csv", "-t", "label", "-m", "m.sglb", *watch, *weight, *options)
    model = load("m.sglb")
    assert model.n_iter_ == model.best_iteration_ < 1000
    assert f"best after {model.n_iter_} trees" in said


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


SHOP_ROWS = 300


def write_shops(path, start=0, n_rows=SHOP_ROWS, zips=("02139", "K1A", "00501")):
    """A table with text, numbers that are names, and text that looks like numbers."""
    generator = np.random.default_rng(start)
    shop, zone = generator.integers(0, 80, n_rows), generator.integers(0, 5, n_rows)
    place = generator.integers(0, len(zips), n_rows)
    y = (shop % 2) + (zone == 3) + 2 * (np.array(zips)[place] == "02139")
    y = y + 0.1 * generator.standard_normal(n_rows)
    table = {"shop": [f"s{one}" for one in shop], "zone": zone, "zip": np.array(zips)[place]}
    pa.csv.write_csv(pa.table({**table, "y": y}), path)
    return y


def test_train_takes_text_as_it_is_and_predict_reads_it_as_training_did(folder):
    write_shops("shops.csv")
    done("train", "shops.csv", "-t", "y", "-m", "m.sglb", *SMALL)
    model = load("m.sglb")
    assert model._model.encoding.is_categorical.tolist() == [True, False, True]
    y = write_shops("digits.csv", 1, zips=("02139", "00501"))  # all of it looks like numbers
    done("predict", "m.sglb", "digits.csv", "-o", "p.csv")
    found = pa.csv.read_csv("p.csv")["prediction"].to_numpy()
    assert np.corrcoef(found, y)[0, 1] > 0.8
    shown = json.loads(done("evaluate", "m.sglb", "digits.csv", "-t", "y", "--json"))
    assert shown["rmse"] == pytest.approx(np.sqrt(np.mean((found - y) ** 2)), rel=1e-4)
    facts = json.loads(done("info", "m.sglb", "--json"))
    assert facts["categorical_features"] == ["shop", "zip"]
    assert set(facts["feature_importances"]) == {"shop", "zone", "zip"}
    assert "categorical features" in done("info", "m.sglb")


def test_train_takes_numbers_as_names_when_told_and_reads_the_valid_table_alike(folder):
    write_shops("shops.csv")
    write_shops("valid.csv", 1, zips=("02139", "00501"))
    words = ["train", "shops.csv", "-t", "y", "-m", "m.sglb", *SMALL]
    done(*words, "--categorical", "zone", "--valid", "valid.csv")
    model = load("m.sglb")
    assert model._model.encoding.is_categorical.all()
    shown = json.loads(done("evaluate", "m.sglb", "valid.csv", "-t", "y", "--json"))
    assert shown["loss"] == pytest.approx(model.evals_result_["validation_0"]["loss"][-1], rel=1e-4)
    assert "no feature column 'z' to take as categorical" in refused(*words, "--categorical", "z")


def test_a_model_with_categories_and_without_names_reads_columns_in_order(folder):
    y = write_shops("shops.csv")
    table = pa.csv.read_csv("shops.csv").drop_columns(["y"])
    model = SGLBRegressor(n_estimators=5, random_state=0)
    model.fit(np.array([column.to_pylist() for column in table.columns], dtype=object).T, y)
    model.save("m.sglb")
    pa.csv.write_csv(table, "rows.csv")
    done("predict", "m.sglb", "rows.csv", "-o", "p.csv")
    found = pa.csv.read_csv("p.csv")["prediction"].to_numpy()
    assert np.corrcoef(found, y)[0, 1] > 0.5


def test_dates_in_a_table_are_refused_in_one_line_with_advice(folder):
    pa.csv.write_csv(pa.table({"d": ["2020-01-01", "2020-01-02"], "y": [1, 2]}), "dates.csv")
    said = refused("train", "dates.csv", "-t", "y", "-m", "m.sglb", "-q")
    assert "column 'd' is of type Date" in said
    assert "days since a date" in said


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


TRAIN = ["train", "train.csv", "-t", "label", "-m", "m.sglb", "--drop", "number", "--quiet"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "no.csv", "-t", "y", "-m", "m.sglb"], "no.csv: no such file"),
        (["train", ".", "-t", "y", "-m", "m.sglb"], "cannot tell the format"),
        (["train", "train.txt", "-t", "y", "-m", "m.sglb"], "must end in .csv or"),
        (["train", "train.csv", "-t", "y", "-m", "m.sglb"], "no target column 'y'; the table has"),
        ([*TRAIN, "--drop", "z"], "no column 'z' to drop"),
        ([*TRAIN, "--weight", "z"], "no weight column 'z'"),
        (["train", "train.csv", "-t", "number", "-m", "m.sglb", "--weight", "label"], "holds text"),
        ([*TRAIN, "--task", "regression"], "regression needs numbers"),
        ([*TRAIN, "--task", "guess"], "Invalid value for '--task'"),
        ([*TRAIN, "--loss", "none"], "unknown loss 'none'"),
        ([*TRAIN, "--learning-rate", -1], "learning_rate=-1.0 is not allowed"),
        ([*TRAIN, "--max-depth", 99], "max_depth=99 is not allowed"),
        ([*TRAIN, "--n-estimators", 0], "Invalid value for '--n-estimators'"),
        ([*TRAIN, "--early-stopping-rounds", 5], "needs --valid or --valid-fraction"),
        ([*TRAIN, "--valid-fraction", 2], "must lie between 0 and 1"),
        ([*TRAIN, "--valid", "train.csv", "--valid-fraction", 0.5], "exclude one another"),
        ([*TRAIN[:-3], "-m", "no/m.sglb"], "the folder no does not exist"),
        ([*TRAIN[:-3], "-m", "."], "is a folder"),
        (["train"], "Missing argument"),
        (["train", "train.csv", "-m", "m.sglb"], "Missing option '--target'"),
        (["dance"], "No such command 'dance'"),
        (["info", "no.sglb"], "no.sglb: no such file"),
        (["info", "."], "is a folder"),
        (["info", "train.csv"], "train.csv: model file"),
        (["predict", "train.csv", "train.csv", "-o", "p.csv"], "train.csv: model file"),
        (["predict", "m.sglb", "train.csv", "-o", "p.xlsx"], "cannot tell the format"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(folder, words, said):
    assert said in refused(*words)


def test_a_table_without_the_models_columns_is_refused(classifier):
    pa.csv.write_csv(pa.table({"a": [1.0]}), "t.csv")
    assert "no column 'b'" in refused("predict", classifier, "t.csv", "-o", "p.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read as csv"),
        ("a,y\n1,2,3\n", "cannot be read as csv"),
        ("a,a,y\n1,2,3\n", "column 'a' is there more than once"),
        ("a,y\n", "has no rows"),
        ("y\n1\n", "no columns are left"),
        ("a,y\n1,0\n2,\n", "target column 'y' has a missing value in row 1"),
        ("a,y\n1,2020-01-01\n", "text or numbers are needed"),
    ],
)
def test_a_table_that_cannot_be_learned_from_is_refused(folder, text, said):
    (folder / "t.csv").write_text(text)
    assert said in refused("train", "t.csv", "-t", "y", "-m", "m.sglb", *SMALL)
    assert not (folder / "m.sglb").exists()


@pytest.mark.parametrize(
    ("labels", "said"),
    [(["high", "odd"], "label 'odd' in row 1"), ([1, 2], "holds numbers, the model's classes")],
)
def test_labels_that_the_model_does_not_know_are_refused(classifier, labels, said):
    pa.csv.write_csv(pa.table({"a": [1.0, 2.0], "b": [1.0, 2.0], "label": labels}), "t.csv")
    assert said in refused("evaluate", classifier, "t.csv", "-t", "label")


def test_text_is_refused_as_the_target_of_a_regressor(regressor):
    assert "holds text" in refused("evaluate", regressor, "test.parquet", "-t", "label")


def test_an_output_that_may_not_be_written_is_refused_before_training(folder, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: mode == os.R_OK)
    assert "m.sglb: may not be written" in refused(*TRAIN)


def test_a_failed_write_leaves_the_old_file(classifier, monkeypatch):
    (classifier.parent / "p.csv").write_text("old")

    def fail(table, path):
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setitem(tables.WRITERS, ".csv", fail)
    assert "disk full" in refused("predict", classifier, "test.parquet", "-o", "p.csv")
    assert (classifier.parent / "p.csv").read_text() == "old"
    assert not list(classifier.parent.glob(".*"))


def test_a_bug_keeps_its_traceback(classifier, monkeypatch):
    def fail(*_):
        raise KeyError("bug")

    monkeypatch.setattr("sglb.cli.apply.load", fail)
    with pytest.raises(KeyError, match="bug"):
        RUNNER.invoke(app, ["info", str(classifier)], catch_exceptions=False)


def test_every_command_and_option_has_a_help_text():
    from typer.main import get_command

    for command in get_command(app).commands.values():
        assert command.help
        for parameter in command.params:
            assert getattr(parameter, "help", "x"), f"{command.name} {parameter.name}"
        assert f"Usage: sglb {command.name}" in done(command.name, "--help")


def test_without_a_command_the_help_is_shown():
    assert "Commands:" in done()


def test_a_small_demo_runs_from_the_command_line(folder):
    said = done("demo", "--folds", 2, "--steps", 10, "--output", "out", "--jobs", 1)
    assert "2 folds" in said
    assert (folder / "out" / "test_error.png").exists()


def in_a_process(*words, cwd, code="from sglb.cli import main; main()"):
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=cwd, capture_output=True, text=True, timeout=60
    )


def test_the_installed_command_works_and_fails_cleanly(folder):
    version = in_a_process("--version", cwd=folder)
    assert version.stdout.startswith("sglb ")
    assert version.returncode == 0
    trained = in_a_process(
        "train", "train.csv", "-t", "number", "-m", "m.sglb", "--drop", "label", *SMALL, cwd=folder
    )
    assert trained.returncode == 0, trained.stderr
    failed = in_a_process("info", "train.csv", cwd=folder)
    assert failed.returncode == 2
    assert failed.stderr.startswith("error: ")
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize("missing", ["typer", "rich", "pyarrow", "matplotlib"])
def test_without_the_extra_one_line_says_how_to_install_it(tmp_path, missing):
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom sglb.cli import main; main()"
    failed = in_a_process("info", "x.sglb", cwd=tmp_path, code=code)
    assert failed.returncode == 2
    assert 'pip install "sglb[cli]"' in failed.stderr
    assert failed.stderr.count("\n") == 1


def test_the_papers_experiments_are_commands(folder, monkeypatch):
    from sglb.experiments import theory, theory_page

    said = done("paper", "--help")
    for command in ("synthetic", "zero-one", "logloss", "theory"):
        assert command in said
    small = ("--folds", 2, "--steps", 5, "--sweep-folds", 0, "--catboost-folds", 0, "--jobs", 1)
    assert "2 folds, 5 steps, seed 3" in done("paper", "synthetic", *small, "--seed", 3)
    assert (folder / "paper" / "synthetic_test_error.png").exists()
    monkeypatch.setattr(theory_page, "QUICK", 0.001)
    monkeypatch.setattr(theory, "BETAS", (8.0,))
    monkeypatch.setattr(theory, "N_CHAINS", 2)
    assert "Theorem 1" in done("paper", "theory", "--quick", "--out", "there")
    assert (folder / "there" / "theory.png").exists()


def test_a_page_that_cannot_take_the_tables_is_refused_before_the_work(folder):
    (folder / "page.md").write_text("no marks")
    for command in ("synthetic", "theory"):
        assert "has no marks" in refused("paper", command, "--write", "--page", "page.md")
        assert "no such page" in refused("paper", command, "--write")
    assert not (folder / "paper").exists()
