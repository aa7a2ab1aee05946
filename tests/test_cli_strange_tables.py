"""Tables as they come: each is learned from and predicted, or rejected in one line."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from shell import done, rejected

FAST = ["--n-estimators", "30", "--max-depth", "2", "--jobs", "1", "--quiet"]
N_ROWS = 60


def german_export():
    """Semicolons, decimal commas, points between thousands, umlauts in Windows' encoding."""
    rows = ["Größe;Umsatz;Ort;Ziel"]
    for i in range(N_ROWS):
        size, amount = f"{(i - 30) / 4:.2f}".replace(".", ","), f"{1000 * (i % 7) + i:,}"
        town, goal = "Bern" if i % 3 else "Köln", "ja" if i >= 30 else "nein"
        rows.append(f"{size};{amount.replace(',', '.')},50;{town};{goal}")
    return "\r\n".join(rows).encode("cp1252"), "Ziel"


def question_marks():
    """A question mark for a missing number."""
    rows = [f"{'?' if i % 8 == 3 else i},{i % 5},{int(i >= 30)}" for i in range(N_ROWS)]
    return "\n".join(["a,b,y", *rows]).encode(), "y"


def quoted_lines():
    """Text with line breaks, commas and quotes inside."""
    rows = [f'{i},"first, {i % 2}\nsecond ""line""",{int(i >= 30)}' for i in range(N_ROWS)]
    return "\n".join(["a,note,y", *rows]).encode(), "y"


def names_with_zeros():
    """Numbers that are names, with leading zeros."""
    rows = [f"{i:05d},{i},{int(i >= 30)}" for i in range(N_ROWS)]
    return "\n".join(["id,a,y", *rows]).encode(), "y"


def windows_text():
    """What a spreadsheet calls Unicode text: UTF-16 with tabs."""
    rows = [f"{i},5\tx\t{'gut' if i >= 30 else 'schlecht'}" for i in range(N_ROWS)]
    return "\r\n".join(["Länge\tArt\tUrteil", *rows]).encode("utf-16"), "Urteil"


def old_mac():
    """Lines that end in a carriage return alone, and an empty last column."""
    rows = [f"{i};{int(i >= 30)};" for i in range(N_ROWS)]
    return "\r".join(["a;y;", *rows]).encode(), "y"


def signed():
    """A byte order mark before UTF-8, as spreadsheets write it."""
    rows = [f"{i}|{int(i >= 30)}" for i in range(N_ROWS)]
    return "\n".join(["ä|y", *rows]).encode("utf-8-sig"), "y"


@pytest.mark.parametrize(
    "make",
    [german_export, question_marks, quoted_lines, names_with_zeros, windows_text, old_mac, signed],
)
def test_strange_tables_are_learned_from_and_predicted(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)
    content, target = make()
    (tmp_path / "t.csv").write_bytes(content)
    common = ["--missing", "?"]
    done("train", "t.csv", "-t", target, "-m", "m.sglb", *FAST, *common)
    written = done("predict", "m.sglb", "t.csv", "--keep", target, *common)
    rows = list(csv.reader(io.StringIO(written)))
    assert rows[0] == [target, "prediction"]
    assert len(rows) == N_ROWS + 1
    assert np.mean([truth == predicted for truth, predicted in rows[1:]]) > 0.9


def parquet_in_disguise():
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table({"a": [1, 2], "y": [0, 1]}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "t.csv: the file is empty"),
        (b"a,b,y\n", "t.csv: has no rows"),
        (b"a,b,y\n1,2,0\n1,2\n", "row 1 has 2 fields where the first row has 3 names: '1,2'"),
        (parquet_in_disguise(), "t.csv: holds Parquet data"),
        (b"1.5,2,0\n2.5,3,1\n", "the first row looks like data: the file needs a first row with"),
        (b"day,y\n2024-01-01,0\n2024-01-02,1\n", "--dates turns them into numbers"),
        (b"a b y\n1 2 0\n", "no target column 'y'; the table has 'a b y'"),
        (bytes(range(1, 256)) * 9, "state its encoding with --encoding"),
    ],
)
def test_tables_that_cannot_be_used_are_rejected_in_one_line(
    tmp_path, monkeypatch, content, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(content)
    assert message in rejected("train", "t.csv", "-t", "y", "-m", "m.sglb", *FAST)
    assert not (tmp_path / "m.sglb").exists()


def test_an_error_in_a_target_of_numbers_does_not_make_hundreds_of_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{number},{number * 1.5}" for number in range(60)]
    rows[7] = "7,?"
    (tmp_path / "slip.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    error = rejected("train", "slip.csv", "-t", "y", "-m", "m.sglb")
    assert (
        "the target is numbers except for 1 of 60 different values, the first '?' in row 7" in error
    )


def test_the_line_that_spreadsheets_write_before_the_names_states_the_separator(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{number};{number % 2}" for number in range(40))
    (tmp_path / "sheet.csv").write_text(f"sep=;\nx;y\n{rows}\n")
    message = done("train", "sheet.csv", "-t", "y", "-m", "m.sglb", "--n-estimators", "2")
    assert "40 rows, 1 feature" in message
