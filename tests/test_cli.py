"""The command line as a whole: wrong usage, errors, help, other commands."""

import os
import subprocess
import sys

import pytest

from sglb.cli.app import app
from shell import RUNNER, SMALL, done, rejected

TRAIN = ["train", "train.csv", "-t", "label", "-m", "m.sglb", "--drop", "number", "--quiet"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "no.csv", "-t", "y", "-m", "m.sglb"], "no.csv: no such file"),
        (["train", ".", "-t", "y", "-m", "m.sglb"], "is a folder, not a table"),
        (["train", "train.txt", "-t", "y", "-m", "m.sglb"], "must end in .csv or"),
        (["train", "train.csv", "-t", "y", "-m", "m.sglb"], "no target column 'y'; the table has"),
        ([*TRAIN, "--drop", "z"], "no column 'z' to drop"),
        ([*TRAIN, "--weight", "z"], "no weight column 'z'"),
        (["train", "train.csv", "-t", "number", "-m", "m.sglb", "--weight", "label"], "holds text"),
        ([*TRAIN, "--task", "regression"], "regression needs numbers"),
        ([*TRAIN, "--task", "guess"], "Invalid value for '--task'"),
        ([*TRAIN, "--loss", "none"], "unknown loss 'none'"),
        ([*TRAIN, "--learning-rate", -1], "--learning-rate -1.0 is not allowed"),
        ([*TRAIN, "--max-depth", 99], "--max-depth 99 is not allowed"),
        ([*TRAIN, "--n-estimators", 0], "--n-estimators 0 is not allowed"),
        ([*TRAIN, "--early-stopping-rounds", 5], "needs --valid or --valid-fraction"),
        ([*TRAIN, "--valid-fraction", 2], "must lie between 0 and 1"),
        ([*TRAIN, "--valid", "train.csv", "--valid-fraction", 0.5], "exclude each other"),
        ([*TRAIN[:-3], "-m", "no/m.sglb"], "the folder no does not exist"),
        ([*TRAIN[:-3], "-m", "."], "is a folder"),
        ([*TRAIN[:-3], "-m", "-"], "--model needs the name of a file"),
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
def test_what_cannot_be_done_is_rejected_in_one_line(folder, words, message):
    assert message in rejected(*words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv: the file is empty"),
        ("a,y\n1,0\n1,2,3\n", "row 1 has 3 fields where the first row has 2 names: '1,2,3'"),
        ("a,a,y\n1,2,3\n", "column 'a' occurs more than once"),
        ("1,1,0\n1,2,3\n", "more than once; the first row looks like data"),
        (
            "1,2,0\n1,2,3\n",
            "no target column 'y'; the table has '1', '2', '0'; the first row looks",
        ),
        (",,y\n1,2,3\n", "a column without a name occurs more than once"),
        ("a,y\n", "has no rows"),
        ("y\n1\n", "no feature columns are left"),
        ("a,y\n1,0\n2,\n", "target column 'y' has a missing value in row 1"),
        ("a,y\n1,2020-01-01\n", "must be text or numbers"),
    ],
)
def test_a_table_that_cannot_be_learned_from_is_rejected(folder, text, message):
    (folder / "t.csv").write_text(text)
    assert message in rejected("train", "t.csv", "-t", "y", "-m", "m.sglb", *SMALL)
    assert not (folder / "m.sglb").exists()


def test_an_output_that_may_not_be_written_is_rejected_before_training(folder, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: mode == os.R_OK)
    assert "m.sglb: no permission to write" in rejected(*TRAIN)


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
    message = done("demo", "--folds", 2, "--steps", 10, "--output", "out", "--jobs", 1)
    assert "2 folds" in message
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
    from sglb.experiments.theory import concentration, generalisation, page

    message = done("paper", "--help")
    for command in ("synthetic", "zero-one", "logloss", "theory"):
        assert command in message
    small = ("--folds", 2, "--steps", 5, "--sweep-folds", 0, "--catboost-folds", 0, "--jobs", 1)
    assert "2 folds, 5 steps, seed 3" in done("paper", "synthetic", *small, "--seed", 3)
    assert (folder / "paper" / "synthetic_test_error.png").exists()
    monkeypatch.setattr(page, "QUICK", 0.001)
    monkeypatch.setattr(concentration, "BETAS", (8.0,))
    monkeypatch.setattr(concentration, "N_CHAINS", 2)
    monkeypatch.setattr(generalisation, "TOTAL_BITS", 9)
    monkeypatch.setattr(generalisation, "SPREAD_SETS", 100)
    assert "Theorem 1" in done("paper", "theory", "--quick", "--out", "there")
    assert (folder / "there" / "theory.png").exists()


def test_a_page_that_cannot_take_the_tables_is_rejected_before_the_work(folder):
    (folder / "page.md").write_text("no marks")
    for command in ("synthetic", "theory"):
        assert "has no marks" in rejected("paper", command, "--write", "--page", "page.md")
        assert "no such page" in rejected("paper", command, "--write")
    assert not (folder / "paper").exists()
