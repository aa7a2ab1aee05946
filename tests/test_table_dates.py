"""Dates become numbers in training and, from the model's names alone, in prediction."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sglb import load
from sglb.tables.dates import add_parts, split_dates
from shell import done, rejected

FAST = ["--n-estimators", "30", "--max-depth", "3", "--jobs", "1", "--quiet"]
START = dt.datetime(2023, 1, 2, 5)  # a Monday


def moments(n_rows=200):
    return [START + dt.timedelta(days=3 * row, hours=row % 24) for row in range(n_rows)]


@pytest.fixture
def visits(tmp_path, monkeypatch):
    """The same rows in four files: weekends are busy."""
    monkeypatch.chdir(tmp_path)
    when = moments()
    busy = ["yes" if moment.weekday() >= 5 else "no" for moment in when]
    size = np.random.default_rng(0).standard_normal(len(when)).round(3)
    formats = {
        "iso.csv": "%Y-%m-%d %H:%M:%S",
        "german.csv": "%d.%m.%Y %H:%M",
        "american.csv": "%m/%d/%Y %H:%M",
    }
    for name, date_format in formats.items():
        separator = ";" if name == "german.csv" else ","
        cells = zip(
            [moment.strftime(date_format) for moment in when], map(str, size), busy, strict=True
        )
        lines = [["when", "size", "busy"], *cells]
        tmp_path.joinpath(name).write_text("\n".join(separator.join(row) for row in lines) + "\n")
    pa.parquet.write_table(pa.table({"when": when, "size": size, "busy": busy}), "typed.parquet")
    return tmp_path


def test_dates_are_rejected_with_a_remedy(visits):
    message = rejected("train", "iso.csv", "-t", "busy", "-m", "m.sglb", *FAST)
    assert "column 'when' holds dates or times: --dates turns them into numbers" in message
    assert "--drop when leaves them out" in message
    done("train", "iso.csv", "-t", "busy", "-m", "m.sglb", "--drop", "when", *FAST)


@pytest.mark.parametrize("learned", ["iso.csv", "german.csv", "typed.parquet"])
def test_parts_of_dates_are_remembered_by_their_names(visits, learned):
    done("train", learned, "-t", "busy", "-m", "m.sglb", "--dates", *FAST)
    names = [f"when.{part}" for part in ("year", "month", "day", "weekday", "hour")]
    assert load("m.sglb").feature_names_in_.tolist() == [*names, "size"]
    for name in ("iso.csv", "german.csv", "typed.parquet"):
        shown = json.loads(done("evaluate", "m.sglb", name, "-t", "busy", "--json"))
        assert shown["accuracy"] == 1.0
    assert done("predict", "m.sglb", "iso.csv") == done("predict", "m.sglb", "german.csv")
    message = rejected("predict", "m.sglb", "american.csv")
    assert (
        "column 'when', the source of 'when.year', must hold dates; row 0 has '01/02/2023"
        in message
    )
    stated = done("predict", "m.sglb", "american.csv", "--date-format", "%m/%d/%Y %H:%M")
    assert stated == done("predict", "m.sglb", "iso.csv")


def test_dates_of_a_stated_format_become_numbers(visits):
    common = ["train", "american.csv", "-t", "busy", "-m", "m.sglb", *FAST]
    done(*common, "--date-format", "%m/%d/%Y %H:%M", "--valid", "iso.csv")
    assert "when.weekday" in load("m.sglb").feature_names_in_
    assert load("m.sglb").best_score_ < 0.1


def test_dates_may_be_missing(visits):
    done("train", "iso.csv", "-t", "busy", "-m", "m.sglb", "--dates", *FAST)
    (visits / "gaps.csv").write_text("when,size\n,1\n2024-01-06,2\n")
    assert done("predict", "m.sglb", "gaps.csv").count("\n") == 3
    (visits / "none.csv").write_text("when,size\n,1\n,2\n")
    assert done("predict", "m.sglb", "none.csv").count("\n") == 3
    (visits / "other.csv").write_text("size\n1\n")
    message = rejected("predict", "m.sglb", "other.csv")
    assert (
        "no column 'when.year' (the year of a column of dates 'when'), which the model" in message
    )


def test_only_parts_that_vary_are_made_and_stand_where_the_date_stood():
    days = [dt.date(2024, 2, 1), dt.date(2024, 3, 1), None]
    times = [dt.time(1, 30), dt.time(2, 30), dt.time(1, 30)]
    table = pa.table({"a": [1, 2, 3], "day": days, "time": times, "b": [1, 2, 3]})
    split, parts = split_dates(table)
    assert parts == {"day": ["month", "weekday"], "time": ["hour"]}
    assert split.column_names == ["a", "day.month", "day.weekday", "time.hour", "b"]
    assert split["day.month"].to_pylist() == [2, 3, None]
    assert split["day.weekday"].to_pylist() == [4, 5, None]
    rebuilt = add_parts(table, split.column_names)
    assert rebuilt.select(split.column_names).equals(split)


def test_a_date_has_the_hour_zero():
    table = add_parts(pa.table({"d": [dt.date(2024, 2, 1)]}), ["d.hour", "d.day"])
    assert table["d.hour"].to_pylist() == [0]
    assert table["d.day"].to_pylist() == [1]


def test_a_column_that_has_the_name_of_a_part_is_rejected(visits):
    (visits / "both.csv").write_text("when,when.day,y\n2024-01-01,1,0\n2024-01-02,2,1\n")
    message = rejected("train", "both.csv", "-t", "y", "-m", "m.sglb", "--dates", *FAST)
    assert "column 'when.day' already exists, but the parts of 'when' need it" in message


def test_years_of_two_digits_are_rejected_with_a_remedy(visits):
    (visits / "short.csv").write_text("when;y\n1.2.24;0\n3.4.25;1\n")
    common = ["train", "short.csv", "-t", "y", "-m", "m.sglb", *FAST]
    assert "years of two digits need --date-format" in rejected(*common, "--dates")
    done(*common, "--date-format", "%d.%m.%y")
    assert load("m.sglb").feature_names_in_[0] == "when.year"
