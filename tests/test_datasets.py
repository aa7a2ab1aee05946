import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import stats
from sklearn.utils import Bunch

from sglb import datasets


def test_synthetic_labels_follow_the_papers_law():
    x, y = datasets.synthetic(200_000, seed=1)
    assert x.shape == (200_000, 3)
    assert set(np.unique(y)) == {0, 1}
    assert np.abs(x.mean(axis=0)).max() < 0.012  # five standard errors
    assert np.abs(np.cov(x.T) - np.eye(3)).max() < 0.02
    # P(y = 1 | x) = Phi(sin(x1 x2 x3)); residuals have mean zero whatever they are weighed with.
    signal = np.sin(x.prod(axis=1))
    residual = y - stats.norm.cdf(signal)
    for weight in (np.ones_like(signal), signal, x[:, 0], np.abs(x[:, 1])):
        score = np.sum(residual * weight) / np.sqrt(np.sum(residual**2 * weight**2))
        assert abs(score) < 4.0  # fails once in 15,000 seeds; the seed is fixed


def test_synthetic_data_repeat_with_the_seed_and_differ_without():
    first, again, other = (datasets.synthetic(50, seed)[0] for seed in ([3, 1], [3, 1], [3, 2]))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SGLB_DATA", str(tmp_path))
    return tmp_path


def write(folder, name, **columns):
    pa.parquet.write_table(pa.table(columns), folder / f"{name}.parquet")


def test_target_weight_group_and_splits_of_a_stored_table_are_not_features(folder):
    write(
        folder,
        "mine",
        a=[1.0, 2.0, None],
        split=["train", "test", "train"],
        catboost_split=[0, 1, 0],
        row_id=[0, 1, 2],
        weight=[1.0, 2.0, 3.0],
        group=["q1", "q1", "q2"],
        target=pa.array([0, 1, 1], pa.int8()),
    )
    table = datasets.load_table("mine")
    assert table.X.column_names == ["a"]
    assert table.y.tolist() == [0, 1, 1]
    assert table.task == "binary"
    assert table.weight.tolist() == [1.0, 2.0, 3.0]
    assert table.group.tolist() == ["q1", "q1", "q2"]


@pytest.mark.parametrize(
    ("name", "target", "task"),
    [
        ("a", [0, 1, 1], "binary"),
        ("b", [1, 2, 3], "multiclass"),
        ("c", [0.5, 1.0, 1.0], "regression"),
        ("mq2008", [0, 1, 2], "ranking"),
    ],
)
def test_the_task_follows_from_the_target(folder, name, target, task):
    write(folder, name, x=[1.0, 2.0, 3.0], target=target)
    assert datasets.load_table(name).task == task


def test_an_unknown_table_is_rejected_with_the_known_ones(folder):
    write(folder, "mine", target=[0])
    with pytest.raises(ValueError, match=r"unknown table 'no such'.*SGLB_DATA.*adult.*mine"):
        datasets.load_table("no such")


def test_a_data_folder_that_does_not_exist_is_rejected(monkeypatch):
    monkeypatch.setenv("SGLB_DATA", "/no/such/folder")
    with pytest.raises(FileNotFoundError, match="SGLB_DATA"):
        datasets.load_table("adult")


def test_the_folder_beside_the_repository_is_found_from_the_current_one(tmp_path, monkeypatch):
    beside, working = tmp_path / "shared" / "data", tmp_path / "repository"
    beside.mkdir(parents=True)
    working.mkdir()
    monkeypatch.delenv("SGLB_DATA", raising=False)
    monkeypatch.chdir(working)
    write(beside, "mine", x=[1.0], target=[0.5])
    assert datasets.load_table("mine").X.column_names == ["x"]


def test_a_table_that_is_not_stored_comes_from_openml(folder, monkeypatch):
    asked = []

    def fetch(**options):
        asked.append(options["data_id"])
        frame = pd.DataFrame({"x": [1.0, 2.0], "class": pd.Categorical(["<=50K", ">50K"])})
        return Bunch(frame=frame, target=frame["class"])

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    table = datasets.load_table("adult")
    assert asked == [1590]
    assert table.X.column_names == ["x"]
    assert table.y.tolist() == ["<=50K", ">50K"]
    assert table.task == "binary"


def test_columns_that_openml_does_not_explain_are_not_features(folder, monkeypatch):
    frame = pd.DataFrame({"IDpol": [1], "ClaimNb": [2], "Exposure": [0.5], "Area": [3.0]})
    bunch = Bunch(frame=frame, target=None)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    table = datasets.load_table("fremtpl2_freq")
    assert table.X.column_names == ["Area"]
    assert (table.y.tolist(), table.weight.tolist()) == ([2.0], [0.5])


def test_a_fetch_that_fails_says_what_was_tried(folder, monkeypatch):
    def fail(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
    with pytest.raises(OSError, match=r"'adult'.*OpenML \(number 1590\).*no network"):
        datasets.load_table("adult")
