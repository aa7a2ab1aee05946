"""Parquet files larger than memory give the model of the same rows in memory, bit for bit."""

import errno
import importlib
import os
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sglb import (
    BaseCallback,
    ParquetTable,
    SGLBClassifier,
    SGLBRanker,
    SGLBRegressor,
    archive,
    pages,
)
from sglb.errors import ChangedTable, PageError
from sglb.pages import PageFile
from sglb.parquet import files
from small_tables import FAST


def model_bytes(estimator):
    return archive.dumps(estimator._fitted())


def make_frame(n_rows=600):
    """Numbers of several types, missing values in some parts only, text and categories."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "float": rng.normal(size=n_rows).astype(np.float32),
            "double": rng.normal(size=n_rows),
            "whole": pd.array(rng.integers(0, 9, n_rows), dtype="Int32"),
            "large": rng.integers(2**53, 2**62, n_rows),
            "flag": rng.random(n_rows) < 0.3,
            "few": rng.choice(["a", "b", "c"], n_rows),
            "many": rng.integers(0, 90, n_rows).astype(str),
        }
    )
    frame["many"] = ["level " + text for text in frame["many"]]
    frame.loc[n_rows // 2 :: 7, "double"] = np.nan
    frame.loc[n_rows - 3, "whole"] = None
    frame.loc[::50, "few"] = None
    which = rng.integers(0, 6, n_rows)
    for column in range(5):
        frame[f"is {column}"] = which == column
    frame["y"] = frame["float"] + frame["double"].fillna(2.0) + rng.normal(size=n_rows)
    return frame


def write(folder, frame, ends=(0, 100, 100, 377, 600), row_group_size=64):
    """Write a frame as files of uneven numbers of rows, one of them empty."""
    folder.mkdir(exist_ok=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for number, (begin, end) in enumerate(pairwise(ends)):
        part = table.slice(begin, end - begin)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=row_group_size)
    return folder


@pytest.fixture
def frame():
    return make_frame()


@pytest.fixture
def folder(tmp_path, frame, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_VALUES", 500)
    monkeypatch.setattr(pages, "BLOCK_CODES", 1000)
    return write(tmp_path / "table", frame)


def both(kind, folder, labels=None, *, drop=(), fit=None, **parameters):
    """The bytes of a model of the files, and of one of the same rows in memory."""
    parameters = FAST | {"n_estimators": 6} | parameters
    held, table = ParquetTable(folder), pq.read_table(folder)
    y = table["y"].to_numpy() if labels is None else labels
    models = []
    for X in (held.drop("y", *drop), table.drop_columns(["y", *drop])):
        options = {} if fit is None else fit(X)
        models.append(model_bytes(kind(**parameters).fit(X, y, **options)))
    return models


def test_numbers_of_several_types_and_files(folder):
    held, in_memory = both(SGLBRegressor, folder, drop=("few", "many"))
    assert held == in_memory


def test_a_sample_of_the_rows_and_many_threads(folder):
    expected, _ = both(SGLBRegressor, folder, drop=("few", "many"), structure_sample=0.3)
    held, in_memory = both(
        SGLBRegressor, folder, drop=("few", "many"), structure_sample=0.3, n_jobs=3
    )
    assert held == in_memory
    assert len(held) == len(expected)


@pytest.mark.parametrize("bundled", [False, True])
def test_categories_weights_classes_and_evaluation_sets(folder, frame, bundled):
    rng = np.random.default_rng(0)
    drop = () if bundled else tuple(name for name in frame if name.startswith("is "))
    labels = rng.choice(["x", "y", "z"], len(frame))

    def fit(X):
        eval_set = (X, labels)  # the evaluation set is held as the training rows are
        return {"sample_weight": rng_weight.copy(), "eval_set": eval_set}

    rng_weight = rng.integers(0, 3, len(frame)).astype(float)
    held, in_memory = both(
        SGLBClassifier, folder, labels, drop=drop, fit=fit, early_stopping_rounds=2
    )
    assert held == in_memory


def test_means_by_level_in_copies_of_the_rows(folder):
    held, in_memory = both(SGLBRegressor, folder)
    assert held == in_memory
    assert archive.loads(held).recipe.encoding.tables


def test_rankings_error_bars_and_continued_models(folder, frame):
    group = np.random.default_rng(1).integers(0, 50, len(frame))
    held, in_memory = both(
        SGLBRanker, folder, (frame["y"] > 0).to_numpy(float), fit=lambda X: {"group": group}
    )
    assert held == in_memory
    held, in_memory = both(SGLBRegressor, folder, uncertainty=True)
    assert held == in_memory
    for n_rows in (600, 350):  # the rows of the model, and others
        X = pq.read_table(folder).drop_columns(["y"])[:n_rows]
        first = SGLBRegressor(**FAST).fit(X, frame["y"][:n_rows])
        fit = {"init_model": first}
        held, in_memory = both(SGLBRegressor, folder, fit=lambda X, fit=fit: fit)
        assert held == in_memory


def test_predictions_block_by_block(folder):
    X = ParquetTable(folder).drop("y")
    table = pq.read_table(folder)
    for drop in ([], ["few", "many"]):
        in_memory = table.drop_columns(["y", *drop])
        model = SGLBRegressor(**FAST).fit(in_memory, table["y"].to_numpy())
        assert np.array_equal(model.predict(X.drop(*drop)), model.predict(in_memory))
    with pytest.raises(ValueError, match="takes some of them"):
        model.cross_conformalize(X.drop("few", "many"), table["y"].to_numpy())


def test_columns_are_chosen_and_read(folder, frame):
    table = ParquetTable(folder)
    assert len(table) == len(frame)
    assert table.columns == list(frame.columns)
    assert table[["few", "float"]].drop("few").columns == ["float"]
    assert ParquetTable(folder, ["float"]).columns == ["float"]
    assert np.array_equal(table["y"], frame["y"])
    assert np.array_equal(table["many"], frame["many"])
    assert table["few"][0] is None
    for bad in (lambda: table.drop("other"), lambda: table["other"], lambda: table[["other"]]):
        with pytest.raises(ValueError, match="no column 'other'; the columns are"):
            bad()


def test_a_file_that_changes_between_the_passes_is_an_error(folder, frame, monkeypatch):
    y = frame["y"].to_numpy()
    X = ParquetTable(folder, ["float", "double"])
    sample = files.ParquetFiles.blocks

    def then(change):
        calls = []

        def blocks(self, names):
            yield from sample(self, names)
            if not calls:
                change()
            calls.append(names)

        return blocks

    last = folder / "3.parquet"
    other = frame[377:].assign(float=0.0)

    def rewrite():
        write(folder, pd.concat([frame[:377], other]))

    def touch():
        os.utime(last, ns=(1, 1))

    for change in (rewrite, touch, last.unlink):
        with monkeypatch.context() as patch:
            patch.setattr(files.ParquetFiles, "blocks", then(change))
            with pytest.raises(ValueError, match=r"(0|3)\.parquet(: no such file| has changed)"):
                SGLBRegressor(**FAST).fit(X, y)
        write(folder, frame)
        X = ParquetTable(folder, ["float", "double"])
    # Another footer behind the same size and time of change.
    monkeypatch.setattr(files, "_state", lambda path: (0, 0, 0))
    X = ParquetTable(folder, ["float", "double"])
    rewrite()
    with pytest.raises(ChangedTable, match="open the table again"):
        SGLBRegressor(**FAST).fit(X, y)


def test_a_damaged_page_is_an_error(folder, frame, monkeypatch):
    write_page = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda f, data, at: write_page(f, bytes(len(data)), at))
    X = ParquetTable(folder, ["float"], folder=folder)
    with pytest.raises(PageError, match=f"codes written to {folder} are not what is read back"):
        SGLBRegressor(**FAST).fit(X, frame["y"].to_numpy())


def test_a_full_disk_and_a_folder_that_cannot_be_written(folder, frame, monkeypatch, tmp_path):
    y = frame["y"].to_numpy()
    with pytest.raises(PageError, match=r"nowhere: No such file.*state another folder"):
        SGLBRegressor(**FAST).fit(ParquetTable(folder, ["float"], folder=tmp_path / "nowhere"), y)

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(PageError, match="No space left on device; state another folder"):
        SGLBRegressor(**FAST).fit(ParquetTable(folder, ["float"], folder=tmp_path), y)


def test_pages_leave_nothing_behind(folder, frame, tmp_path):
    page_folder = tmp_path / "pages"
    page_folder.mkdir()
    X = ParquetTable(folder, folder=page_folder).drop("y")
    names = []

    class Look(BaseCallback):
        def step(self, info):
            names.extend(page_folder.iterdir())

    SGLBRegressor(**FAST).fit(X, frame["y"].to_numpy(), callbacks=[Look()])
    assert names == list(page_folder.iterdir()) == []


def test_a_page_file_is_written_in_pieces(tmp_path, monkeypatch):
    file = PageFile(tmp_path, 5)
    write_page = os.pwrite  # a system may write less than it is asked to
    monkeypatch.setattr(os, "pwrite", lambda f, data, at: write_page(f, data[:2], at))
    expected = np.arange(15, dtype=np.uint8).reshape(3, 5)
    file.reserve(2)
    file.write(0, 0, expected[0])
    file.write(1, 0, expected[1, :2])
    file.write(1, 2, expected[1, 2:])
    assert np.array_equal(file.map(), expected[:2])
    file.reserve(1)
    file.write(2, 0, expected[2])
    assert np.array_equal(file.map(), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.rename(columns={"float": "other"}), "other columns than .*float"),
        (lambda frame: frame[list(frame.columns)[::-1]], "other columns than .*their order"),
        (lambda frame: frame.assign(float=1), "column 'float' is int64 in .* and float in"),
    ],
)
def test_files_with_other_columns_are_rejected(folder, frame, change, message):
    pq.write_table(pa.Table.from_pandas(change(frame)), folder / "9.parquet")
    with pytest.raises(ValueError, match=message):
        ParquetTable(folder)


def test_paths_that_hold_no_table_are_rejected(tmp_path):
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    for path, message in (
        (tmp_path / "missing.parquet", r"missing\.parquet: no such file"),
        (tmp_path / "text.parquet", r"text\.parquet: not a readable Parquet file"),
        ([], "the list is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            ParquetTable(path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="holds no file whose name ends in"):
        ParquetTable(tmp_path / "folder")


def test_infinity_is_named_by_column_and_row(folder, frame):
    frame.loc[431, "double"] = np.inf
    write(folder, frame)
    with pytest.raises(ValueError, match="X contains infinity in column 'double', row 431"):
        SGLBRegressor(**FAST).fit(ParquetTable(folder, ["float", "double"]), frame["y"].to_numpy())


def test_columns_come_in_the_order_that_is_asked_for(folder, frame):
    names = ["many", "double", "float", "few"]
    y = frame["y"].to_numpy()
    held = SGLBRegressor(**FAST).fit(ParquetTable(folder)[names], y)
    in_memory = SGLBRegressor(**FAST).fit(pq.read_table(folder).select(names), y)
    assert model_bytes(held) == model_bytes(in_memory)


def test_what_to_install_is_said_where_pyarrow_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "sglb.parquet")
    with pytest.raises(ImportError, match=r"pip install \"sglb\[parquet\]\""):
        importlib.import_module("sglb.parquet")


def test_files_are_in_the_order_of_the_numbers_in_their_names(tmp_path):
    frame = pd.DataFrame({"x": np.arange(12.0)})
    for part in range(12):
        frame[part : part + 1].to_parquet(tmp_path / f"part.{part}.parquet")
    assert ParquetTable(tmp_path)["x"].tolist() == frame["x"].tolist()


@pytest.mark.parametrize("name", [None, "id"])
def test_the_index_of_a_frame_is_no_feature(tmp_path, name):
    frame = pd.DataFrame({"x": np.arange(3.0)}, index=pd.Index([7, 5, 9], name=name))
    frame.to_parquet(tmp_path / "table.parquet")
    table = ParquetTable(tmp_path)
    assert table.columns == ["x"]
    assert table[name or "__index_level_0__"].tolist() == [7, 5, 9]
    assert ParquetTable(tmp_path, ["x", name or "__index_level_0__"]).empty.num_columns == 2
