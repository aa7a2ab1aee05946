"""`sglb train` says what it takes each column for, and what made text of numbers."""

import pytest

from shell import done, rejected, sglb

FAST = ["--n-estimators", "3", "--jobs", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def train(*words, path="t.csv"):
    result = sglb("train", path, "-m", "m.sglb", *FAST, *words)
    assert result.exit_code == 0, result.stderr
    return result


def notes(result):
    return [line for line in result.stderr.splitlines() if line.startswith("note: ")]


def lines_of(stdout):
    return [line.split() for line in stdout.splitlines() if line.strip()]


def test_train_prints_the_role_of_each_column(folder):
    rows = [
        f"{i},r{i % 3},2024-01-{i:02d},{i % 2},1,{'' if i == 3 else i}.5," for i in range(1, 21)
    ]
    (folder / "t.csv").write_text("\n".join(["id,town,when,y,w,size,none", *rows]) + "\n")
    message = train("-t", "y", "--weight", "w", "--drop", "id", "--dates").stdout
    lines = lines_of(message)
    for line in (
        "id dropped",
        "town category 3 levels",
        "when date day, weekday",
        "y target 2 different values",
        "w weight",
        "size number",
        "none number no values",
    ):
        assert line.split() in lines
    assert "20 rows, 5 features" in message
    assert max(map(len, message.splitlines())) <= 80


def test_a_wide_table_is_listed_by_role_within_80_characters(folder):
    names = [f"measurement_{index}" for index in range(200)]
    rows = [
        ",".join([*(str(i + index) for index in range(200)), "x", str(i % 2)]) for i in range(9)
    ]
    (folder / "t.csv").write_text("\n".join([",".join([*names, "t", "y"]), *rows]) + "\n")
    message = train("-t", "y").stdout
    lines = lines_of(message)
    assert ["number", "200", "measurement_0,", "measurement_1,", "measurement_2,", "..."] in lines
    assert ["category", "1", "t"] in lines
    assert ["target", "1", "y"] in lines
    assert len(lines) < 12
    assert max(map(len, message.splitlines())) <= 80


def test_quiet_leaves_the_list_out_but_not_the_notes(folder):
    (folder / "t.csv").write_text("a,y\n1,0\n?,1\n3,0\n4,1\n")
    result = train("-t", "y", "--quiet")
    assert "column" not in result.stdout
    assert len(notes(result)) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["1", "?", "3.5", "?"],
            "because of '?' in row 1; if '?' means a missing value: --missing '?'",
        ),
        (
            ["1", "2", "unknown", "-"],
            "'unknown' and '-' mean a missing value: --missing 'unknown' --missing '-'",
        ),
        (['"1,234.5"', "7", "8", "9"], "because of '1,234.5' in row 0; remedy: --thousands ','"),
        (['"1,5"', "7", '"2,25"', "9"], "because of '1,5' in row 0; remedy: --decimal ','"),
        (['"1,234"', "7", "8", "9"], "in row 0; remedy: --thousands ',' or --decimal ','"),
        (["1'234", "7", "8", "9"], 'in row 0; remedy: --thousands "\'"'),
        (["1", "2", "3 kg", "4"], "because of '3 kg' in row 2"),
        (
            ["01/31/2024", "02/01/2024", "02/02/2024", ""],
            "looks like a date; remedy: --dates --date-format",
        ),
        (["31.1.2024", "1.2.2024", "", ""], "looks like a date; remedy: --dates"),
        (["001", "002", "003", "004"], "read as numbers; if they are codes: --categorical a"),
    ],
)
def test_train_names_the_value_that_turns_numbers_into_text_and_the_remedy(folder, values, message):
    rows = [f"{value},{row % 2}" for row, value in enumerate(values * 3)]
    (folder / "t.csv").write_text("\n".join(["a,y", *rows]) + "\n")
    lines = notes(train("-t", "y"))
    assert len(lines) == 1
    assert lines[0].startswith("note: t.csv: column 'a' ")
    assert message in lines[0]


@pytest.mark.parametrize(
    "values", [["x", "y", "1", "z"], ["02139", "K1A", "00501", "02139"], ["1", "2", "3", "4"]]
)
def test_columns_that_are_what_they_seem_have_no_note(folder, values):
    rows = [f"{value},{row % 2}" for row, value in enumerate(values * 3)]
    (folder / "t.csv").write_text("\n".join(["a,y", *rows]) + "\n")
    assert not notes(train("-t", "y"))


def test_the_remedies_work(folder):
    rows = [f'"{1000 + i:,}.5",{"?" if i % 5 == 2 else i},{i % 2}' for i in range(20)]
    (folder / "t.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    assert len(notes(train("-t", "y"))) == 2
    result = train("-t", "y", "--thousands", ",", "--missing", "?")
    assert not notes(result)
    assert ["b", "number", "4", "missing"] in lines_of(result.stdout)


def test_a_model_that_needs_numbers_names_the_value_that_is_not_one(folder):
    (folder / "t.csv").write_text("a,y\n1,0\n2,1\n3,0\n4,1\n")
    (folder / "new.csv").write_text("a,y\n1,0\n2,1\n?,1\n")
    train("-t", "y")
    message = rejected("predict", "m.sglb", "new.csv")
    assert "new.csv: the model needs numbers in column 'a', which is text because of '?'" in message
    assert "--missing '?'" in message
    valid = sglb("train", "t.csv", "-t", "y", "-m", "m.sglb", "--valid", "new.csv", "-q")
    assert "new.csv: the model needs numbers in column 'a'" in valid.stderr
    assert done("predict", "m.sglb", "new.csv", "--missing", "?").count("\n") == 4
    (folder / "new.csv").write_text("a\nred\nblue\n")
    assert "which holds text, for example 'red'" in rejected("predict", "m.sglb", "new.csv")


def test_a_target_or_weight_of_text_names_the_value_that_is_not_a_number(folder):
    (folder / "t.csv").write_text("a,w,y\n1,1,0.5\n2,1,?\n3,x,2.5\n4,1,1.5\n")
    result = sglb("train", "t.csv", "-m", "m.sglb", "-t", "y", "--task", "regression", "-q")
    assert result.exit_code == 2
    assert "target column 'y' holds text: it is text because of '?' in row 1" in result.stderr
    message = rejected("train", "t.csv", "-m", "m.sglb", "-t", "y", "--weight", "w", "-q")
    assert "weight column 'w' holds text, not numbers: 'x' in row 2" in message
