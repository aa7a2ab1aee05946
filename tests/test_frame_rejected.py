"""Tables that cannot be read are rejected, with the column and the remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from sglb import SGLBRegressor
from test_frame import NAN, Reader, labels_of, read, words

DATES = ["2020-01-01", "2020-01-02"]


@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(pd.Series(DATES)),
        pd.to_datetime(pd.Series(DATES)) - pd.Timestamp("2019-01-01"),
        pl.Series(DATES).str.to_date(),
        pl.Series(["10:00", "11:00"]).str.to_time("%H:%M"),
    ],
)
@pytest.mark.parametrize("spec", ["from_dtype", None, ["when"]])
def test_dates_and_times_are_rejected_by_name_with_advice(column, spec):
    table = (pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame)({"when": column})
    with pytest.raises(ValueError, match=r"column 'when' .* days since a date"):
        read(table, spec)


@pytest.mark.parametrize("dtype", ["datetime64[D]", "datetime64[ns]", "timedelta64[s]"])
def test_an_array_of_dates_is_rejected_with_advice(dtype):
    dates = np.arange(6).reshape(3, 2).astype(dtype)
    fitted = Reader().fit(np.ones((3, 2)))
    for look in (read, fitted.read):
        with pytest.raises(ValueError, match=r"^X is of type \w+64\[.*use numbers instead"):
            look(dates)


def test_dates_among_objects_are_rejected_by_column():
    table = np.array([["a", pd.Timestamp("2020-01-01")], ["b", pd.Timestamp("2020-01-02")]], object)
    with pytest.raises(ValueError, match="column 1 cannot be categorical"):
        read(table, [0, 1])


def test_a_column_of_lists_is_rejected_by_name():
    with pytest.raises(
        ValueError, match=r"column 'a' is of type .*, which is neither a number nor text"
    ):
        read(pl.DataFrame({"a": [[1], [2, 3]]}))
    table = np.empty((2, 1), dtype=object)
    table[:, 0] = [["x"], ["y"]]
    with pytest.raises(ValueError, match=r"column 0 cannot be categorical: .*unhashable"):
        read(table, [0])


def test_objects_that_are_not_numbers_are_rejected_by_name():
    with pytest.raises(ValueError, match="column 'a' holds a value that is not a number"):
        read(pd.DataFrame({"a": [1, {}]}, dtype=object))


def test_a_column_of_numbers_that_became_text_is_rejected_by_name():
    reader = Reader().fit(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    advice = "it held numbers in fit: convert it to numbers"
    with pytest.raises(ValueError, match=f"column 'a' is of type String, .*{advice}"):
        reader.read(pd.DataFrame({"a": ["1", "2"], "b": ["x", "y"]}))
    array = Reader().fit(np.ones((2, 2)))
    with pytest.raises(ValueError, match=f"column 0 holds text, not numbers; {advice}"):
        array.read(np.array([["1", "2"]]))
    assert labels_of(reader.read_all(pl.DataFrame({"a": [1], "b": [3]})).labels[0]) == ["3"]


SPELLED = [["1.5", "2"], ["-3", " 4e1 "], ["0", ".5"]]


@pytest.mark.parametrize(
    "table",
    [
        np.array(SPELLED),
        np.array(SPELLED).astype("S"),
        np.array(SPELLED, dtype=object),
        SPELLED,
        np.array([[1.0, "2"], [2.0, None]], dtype=object),
        np.array([["Rom", "2"], ["Bern", "3"]]),  # NumPy made text of all
    ],
    ids=["text", "bytes", "objects", "lists", "beside numbers", "beside text"],
)
def test_an_array_of_numbers_as_text_is_rejected_with_advice(table):
    with pytest.raises(
        ValueError, match=r"column [01] holds numbers as text, .*astype\(float\), or"
    ):
        read(table)
    assert words(table, [0, 1])[1][0].strip() == "2"


@pytest.mark.parametrize(
    "table",
    [
        [["Rom", "2"], ["Bern", "3"]],  # few numbers among objects
        np.array([["007"], ["012"]]),
        np.array([["1"], ["2"], ["x"]]),
        np.array([["nan"], ["inf"]]),
        np.array([["1_0"], ["٣"]]),
    ],
)
def test_text_that_may_be_codes_is_categorical(table):
    assert len(words(table)) == len(table[0])


def frames_of(column):
    yield pd.DataFrame({"x": column, "n": range(len(column))})
    yield pd.DataFrame({"x": pd.Series(column, dtype=object), "n": range(len(column))})
    yield pl.DataFrame({"x": column, "n": range(len(column))})
    yield pa.table({"x": column, "n": range(len(column))})


def test_a_column_of_many_numbers_as_text_becomes_categories_with_a_warning():
    column = [str(0.5 * number) for number in range(40)]
    column[3] = None
    for frame in frames_of(column):
        with pytest.warns(UserWarning, match=r"numbers as text .*: 'x'; convert") as caught:
            SGLBRegressor(n_estimators=1).fit(frame, np.arange(40))
        assert [warning.filename for warning in caught] == [__file__]
        # Named, it is meant; prediction says nothing.
        model = SGLBRegressor(n_estimators=1, categorical_features=["x"])
        model.fit(frame, np.arange(40)).predict(frame)
    objects = np.array([[text, "town"] for text in column], dtype=object)
    with pytest.warns(UserWarning, match=r"numbers as text .*: 0; convert"):
        read(objects)


def test_few_numbers_as_text_codes_and_categories_do_not_warn():
    few = [str(number % 31) for number in range(40)]
    codes = [f"{number:03}" for number in range(40)]
    for frame in (*frames_of(few), *frames_of(codes)):
        assert len(words(frame)) == 1
    many = pl.DataFrame({"x": pl.Series(map(str, range(40)), dtype=pl.Categorical)})
    assert len(words(many)) == len(words(many.to_pandas())) == 1


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"]),
        pa.table([[1], [2], [3]], names=["a", "b", "a"]),
    ],
    ids=["pandas", "arrow"],
)
def test_duplicate_column_names_are_rejected_and_named(table):
    with pytest.raises(ValueError, match=r"unique; these occur more than once: \['a'\]"):
        read(table)


def test_infinity_is_rejected_with_its_column_and_row_and_nan_is_welcome():
    x = np.ones((4, 3))
    x[1, 0] = NAN
    assert np.isnan(read(x)[1, 0])
    x[2, 1] = -np.inf
    with pytest.raises(ValueError, match="infinity in column 1, row 2"):
        read(x)
    with pytest.raises(ValueError, match="infinity in column 'b', row 2"):
        read(pd.DataFrame(x, columns=["a", "b", "c"]))


def test_a_sparse_matrix_is_rejected_with_advice():
    with pytest.raises(TypeError, match="toarray"):
        read(scipy.sparse.eye_array(3).tocsr())


def test_complex_numbers_are_rejected():
    with pytest.raises(ValueError, match="Complex data not supported"):
        read(np.ones((2, 2), dtype=complex))
