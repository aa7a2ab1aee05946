"""The same rows in a CSV and in a Parquet file are the same rows to the command line."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sglb import load, tables
from sglb.files import whole_file
from shell import done, rejected

SMALL = ["--n-estimators", "30", "--max-depth", "3", "--jobs", "1", "--quiet"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def accuracy(model, table):
    return json.loads(done("evaluate", model, table, "-t", "y", "--json"))["accuracy"]


@pytest.mark.parametrize("learned", ["csv", "parquet"])
def test_missing_text_is_missing_in_every_file(folder, learned):
    generator = np.random.default_rng(3)
    color = generator.choice(np.array(["a", "b", None]), 400)
    rare = generator.random(400) < 0.2
    table = pa.table(
        {
            "color": pa.array(color.tolist(), pa.string()),
            "x": generator.standard_normal(400),
            "y": np.where((color == None) | rare, "yes", "no"),  # noqa: E711
        }
    )
    pa.csv.write_csv(table, "rows.csv")
    pa.parquet.write_table(table, "rows.parquet")
    assert tables.read_table(folder / "rows.csv").column("color").null_count > 100
    done("train", f"rows.{learned}", "-t", "y", "-m", "m.sglb", *SMALL)
    assert accuracy("m.sglb", "rows.csv") == accuracy("m.sglb", "rows.parquet") > 0.8


def test_a_missing_label_is_rejected(folder):
    (folder / "rows.csv").write_text("a,y\n1,yes\n2,no\n3,\n4,no\n")
    message = rejected("train", "rows.csv", "-t", "y", "-m", "m.sglb", *SMALL)
    assert "target column 'y' has a missing value in row 2" in message


def test_categories_of_digits_keep_their_leading_zeros(folder):
    generator = np.random.default_rng(4)
    town = generator.integers(0, 5, 400)
    label = np.where(generator.random(400) < 0.9 * (town % 2), "yes", "no")
    lines = [f"0210{z},{z + 1},{y}" for z, y in zip(town, label, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["zip,code,y", *lines]) + "\n")
    (folder / "more.csv").write_text("\n".join(["zip,code,y", *lines, "K1A,other,no"]) + "\n")
    done(
        "train",
        "rows.csv",
        "-t",
        "y",
        "-m",
        "m.sglb",
        "--categorical",
        "zip",
        "--categorical",
        "code",
        *SMALL,
    )
    encoding = load("m.sglb")._model.recipe.encoding
    assert encoding.vocabularies[0].labels == ("02100", "02101", "02102", "02103", "02104")
    assert encoding.vocabularies[1].labels == ("1", "2", "3", "4", "5")
    assert encoding.is_text.tolist() == [True, False]
    assert accuracy("m.sglb", "more.csv") == pytest.approx(accuracy("m.sglb", "rows.csv"), abs=0.01)


def test_no_command_overwrites_its_input(folder):
    text = "a,y\n" + "\n".join(f"{i},{'yes' if i % 2 else 'no'}" for i in range(30)) + "\n"
    (folder / "rows.csv").write_text(text)
    message = rejected("train", "rows.csv", "-t", "y", "-m", "./rows.csv", *SMALL)
    assert "rows.csv: is an input and would be overwritten" in message
    done("train", "rows.csv", "-t", "y", "-m", "m.sglb", *SMALL)
    assert "overwritten" in rejected("predict", "m.sglb", "rows.csv", "-o", "rows.csv")
    assert (folder / "rows.csv").read_text() == text


def test_a_written_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "other").write_text("")
    with whole_file(tmp_path / "table") as draft:
        draft.write_text("a,b")
    assert (tmp_path / "table").stat().st_mode == (tmp_path / "other").stat().st_mode
