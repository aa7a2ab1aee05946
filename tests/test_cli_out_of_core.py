"""`sglb train --out-of-core` on folders of Parquet files."""

import pyarrow as pa
import pyarrow.parquet
import pytest

from shell import SMALL, done, rejected, rows

ONE_FILE = ["train", "whole.parquet", "-t", "label", *SMALL]
FOLDER = ["train", "parts", "-t", "label", "--out-of-core", *SMALL]


@pytest.fixture
def parts(folder):
    """The same rows as a file and as a folder of two."""
    table = pa.table(rows())
    pa.parquet.write_table(table, "whole.parquet")
    (folder / "parts").mkdir()
    pa.parquet.write_table(table.slice(0, 70), "parts/a.parquet", row_group_size=30)
    pa.parquet.write_table(table.slice(70), "parts/b.parquet")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["--weight", "w"],
        ["--drop", "w", "--categorical", "number", "--valid", "VALID"],
        ["--drop", "label", "-t", "number", "--early-stopping-rounds", "3", "--valid", "VALID"],
    ],
)
def test_a_folder_gives_the_model_of_the_table_in_memory(parts, words):
    def stated(valid):
        return [valid if word == "VALID" else word for word in words]

    done(*ONE_FILE, "-m", "one.sglb", *stated("whole.parquet"))
    message = done(*FOLDER, "-m", "parts.sglb", *stated("parts"), "--page-folder", ".")
    assert "parts: 200 rows," in message
    assert "(out of core)" in message
    assert (parts / "parts.sglb").read_bytes() == (parts / "one.sglb").read_bytes()


def test_a_checkpoint_of_a_folder_is_gone_on_with(parts):
    done(*FOLDER, "-m", "one.sglb")
    for _ in range(2):
        done(*FOLDER, "-m", "again.sglb", "--checkpoint", "c", "--resume")
        assert (parts / "again.sglb").read_bytes() == (parts / "one.sglb").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--valid-fraction", "0.2"], "--valid-fraction takes rows out of a table in memory"),
        (["--dates"], "write year, month, day, ... to columns of their own"),
        (["--drop", "other"], "no column 'other' to drop"),
        (["--categorical", "other"], "no feature column 'other'"),
        (["--weight", "other"], "there is no column 'other'"),
        (["-t", "other"], "there is no column 'other'"),
        (["--page-folder", "nowhere"], "codes cannot be kept in nowhere: No such file"),
        (["--valid", "narrow.parquet"], "there is no column 'a'"),
        (["--drop", "a", "--drop", "b", "--drop", "w", "--drop", "number"], "no feature columns"),
        (["--task", "regression"], "regression needs numbers, target column 'label' holds text"),
    ],
)
def test_what_is_for_tables_in_memory_is_rejected(parts, words, message):
    pa.parquet.write_table(pa.table(rows()).drop_columns(["a"]), "narrow.parquet")
    assert message in rejected(*FOLDER, "-m", "m.sglb", *words)


def test_missing_targets_are_named(parts):
    table = pa.table(rows())
    for name, values in (("label", [None]), ("number", [float("nan")])):
        column = pa.array(values + table[name].to_pylist()[1:])
        changed = table.set_column(table.column_names.index(name), name, column)
        pa.parquet.write_table(changed, "parts/a.parquet")
        pa.parquet.write_table(changed, "parts/b.parquet")
        message = rejected(*FOLDER, "-m", "m.sglb", "-t", name)
        assert f"target column '{name}' has a missing value in row 0" in message
    for name in "ab":
        pa.parquet.write_table(table.slice(0, 0), f"parts/{name}.parquet")
    assert "has no rows" in rejected(*FOLDER, "-m", "m.sglb")


def test_a_folder_needs_the_option(parts):
    words = [word for word in FOLDER if word != "--out-of-core"]
    assert "is a folder, not a table; `sglb train --out-of-core`" in rejected(*words, "-m", "m")
    assert "goes with --out-of-core" in rejected(*ONE_FILE, "-m", "m", "--page-folder", ".")
