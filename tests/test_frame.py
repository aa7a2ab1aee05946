"""Tables, targets and weights on their way in: what passes untouched, what is refused and how."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from sglb.frame import read_features, read_labels, read_numbers, read_weight

NAN = float("nan")


class Reader(BaseEstimator):
    """An estimator that only reads."""

    def fit(self, X, y=None):
        self.values_ = read_features(self, X, reset=True)
        return self

    def read(self, X):
        return read_features(self, X, reset=False)


def read(X):
    return Reader().fit(X).values_


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_an_array_of_numbers_passes_untouched(dtype):
    x = np.ones((3, 2), dtype=dtype)
    assert read(x) is x
    strided = np.ones((6, 4), dtype=dtype)[::2, ::2]
    assert np.shares_memory(read(strided), strided)


@pytest.mark.parametrize(
    ("dtype", "becomes"), [("f2", "f4"), (np.longdouble, "f8"), (">f8", "f8"), (">i4", "i4")]
)
def test_other_numbers_become_what_the_kernels_read(dtype, becomes):
    values = read(np.array([[1, 2], [3, 4]], dtype=dtype))
    assert values.dtype == np.dtype(becomes)
    assert values.dtype.isnative
    assert values.tolist() == [[1, 2], [3, 4]]


def test_lists_and_objects_holding_numbers_become_floats():
    assert read([[1, 2.5], [3, 4]]).tolist() == [[1, 2.5], [3, 4]]
    values = read(np.array([[1, None], [True, 2.5]], dtype=object))
    np.testing.assert_array_equal(values, [[1, NAN], [1, 2.5]])


COLUMNS = {"f": [1.5, 2.5], "i": [1, 2], "b": [True, False]}


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_of_mixed_numbers_gives_values_and_names(table):
    reader = Reader().fit(table(COLUMNS))
    assert reader.values_.tolist() == [[1.5, 1, 1], [2.5, 2, 0]]
    assert reader.feature_names_in_.tolist() == ["f", "i", "b"]
    assert reader.n_features_in_ == 3


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [
        ({"a": np.ones(2, "f4"), "b": np.ones(2, "f4")}, "f4"),
        ({"a": np.ones(2, "f4"), "b": np.ones(2, "?")}, "f4"),
        ({"a": np.ones(2, "i1"), "b": np.ones(2, "i4")}, "i4"),
        ({"a": np.ones(2, "?"), "b": np.ones(2, "?")}, "?"),
    ],
)
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_a_table_takes_the_narrowest_type_that_holds_its_columns(table, columns, dtype):
    assert read(table(columns)).dtype == np.dtype(dtype)


def test_a_table_of_one_type_in_pandas_is_not_copied():
    x = np.ones((3, 2), dtype=np.float32)
    assert np.shares_memory(read(pd.DataFrame(x, columns=["a", "b"], copy=False)), x)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"i": pd.array([1, None], dtype="Int64"), "b": pd.array([None, True])}),
        pd.DataFrame({"i": [1.0, NAN], "b": [NAN, 1.0]}),
        pl.DataFrame({"i": [1, None], "b": [None, True]}),
        pa.table({"i": pa.array([1, None]), "b": pa.array([None, True])}),
    ],
    ids=["pandas nullable", "pandas", "polars", "arrow"],
)
def test_nulls_become_missing_values(table):
    np.testing.assert_array_equal(read(table).astype(float), [[1, NAN], [NAN, 1]])


NOT_NUMBERS = {
    "text": pd.Series(["x", "y"]),
    "category": pd.Series(["x", "y"], dtype="category"),
    "date": pd.to_datetime(pd.Series(["2020-01-01", "2020-01-02"])),
    "objects": pd.Series([1, "y"], dtype=object),
}


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_a_column_that_is_not_numbers_is_refused_by_name_with_advice(kind):
    table = pd.DataFrame({"good": [1.0, 2.0], "town": NOT_NUMBERS[kind]})
    # Polars has no columns of mixed objects.
    tables = [table] if kind == "objects" else [table, pl.from_pandas(table)]
    for one in tables:
        with pytest.raises(ValueError, match=r"column 'town'.*not supported yet.*OrdinalEncoder"):
            read(one)


def test_text_in_an_array_of_objects_is_refused_even_if_it_looks_like_a_number():
    with pytest.raises(ValueError, match="column 1 holds text"):
        read(np.array([[1.0, 2.0], [3.0, "4.0"]], dtype=object))
    with pytest.raises(ValueError, match="numeric"):
        read([["1", "2"]])


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"]),
        pa.table([[1], [2], [3]], names=["a", "b", "a"]),
    ],
    ids=["pandas", "arrow"],
)
def test_duplicate_column_names_are_refused_and_named(table):
    with pytest.raises(ValueError, match=r"unique; more than once: \['a'\]"):
        read(table)


def test_infinity_is_refused_with_its_column_and_row_and_nan_is_welcome():
    x = np.ones((4, 3))
    x[1, 0] = NAN
    assert np.isnan(read(x)[1, 0])
    x[2, 1] = -np.inf
    with pytest.raises(ValueError, match="infinity in column 1, row 2"):
        read(x)
    with pytest.raises(ValueError, match="infinity in column 'b', row 2"):
        read(pd.DataFrame(x, columns=["a", "b", "c"]))


def test_a_sparse_matrix_is_refused_with_advice():
    with pytest.raises(TypeError, match="toarray"):
        read(scipy.sparse.eye_array(3).tocsr())


def test_complex_numbers_are_refused():
    with pytest.raises(ValueError, match="Complex data not supported"):
        read(np.ones((2, 2), dtype=complex))


def test_a_lazy_table_is_refused_with_advice():
    with pytest.raises(TypeError, match="collect"):
        read(pl.DataFrame(COLUMNS).lazy())


def test_a_vector_is_refused_as_a_table():
    with pytest.raises(ValueError, match="Reshape your data"):
        read(np.ones(3))


def test_fit_needs_a_row_and_a_column_but_prediction_does_not_need_a_row():
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        read(np.ones((0, 2)))
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        read(np.ones((2, 0)))
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        read(pd.DataFrame(index=[0, 1]))
    assert Reader().fit(np.ones((3, 2))).read(np.ones((0, 2))).shape == (0, 2)
    table = pd.DataFrame(COLUMNS)
    assert Reader().fit(table).read(table[:0]).shape == (0, 3)


def test_columns_in_another_order_are_refused_and_the_first_one_is_named():
    reader = Reader().fit(pd.DataFrame(COLUMNS))
    with pytest.raises(ValueError, match=r"same order.*\s*Column 1 is 'b'; in fit it was 'i'"):
        reader.read(pd.DataFrame(COLUMNS)[["f", "b", "i"]])


def test_other_columns_are_refused_and_named():
    reader = Reader().fit(pd.DataFrame(COLUMNS))
    with pytest.raises(ValueError, match="missing:\n- b"):
        reader.read(pd.DataFrame(COLUMNS)[["f", "i"]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- z"):
        reader.read(pl.DataFrame({**COLUMNS, "z": [1, 2]}))
    with pytest.raises(ValueError, match="X has 2 features, but Reader is expecting 3"):
        Reader().fit(np.ones((2, 3))).read(np.ones((2, 2)))


def test_tables_of_another_library_are_welcome_if_names_agree():
    reader = Reader().fit(pd.DataFrame(COLUMNS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reader.read(pa.table(COLUMNS)).tolist() == reader.values_.tolist()


def test_a_regression_target_becomes_float64():
    for y in ([1, 2, 3], np.array([1, 2, 3], "f4"), pd.Series([1, 2, 3]), pl.Series([1, 2, 3])):
        target = read_numbers(Reader(), y, 3)
        assert target.dtype == np.float64
        assert target.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("bad", "word"), [(NAN, "nan"), (np.inf, "inf")])
def test_a_target_that_is_not_finite_is_refused_with_the_first_row(bad, word):
    with pytest.raises(ValueError, match=f"y must be finite; row 1 is {word}"):
        read_numbers(Reader(), [0.0, bad, bad], 3)
    with pytest.raises(ValueError, match=f"y must be finite; row 1 is {word}"):
        read_labels(Reader(), [0.0, bad, bad], 3)


def test_a_missing_label_is_refused_with_its_row():
    with pytest.raises(ValueError, match="a label in every row; row 2 is None"):
        read_labels(Reader(), np.array(["a", "b", None], dtype=object), 3)


def test_a_target_of_text_is_no_regression_target():
    with pytest.raises(ValueError, match="y must be numbers; row 0 is"):
        read_numbers(Reader(), ["1", "2"], 2)


def test_a_target_of_another_length_is_refused():
    with pytest.raises(ValueError, match="X has 3 rows but y has 2"):
        read_numbers(Reader(), [1, 2], 3)


def test_a_missing_target_is_refused_in_the_words_of_scikit_learn():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        read_numbers(Reader(), None, 3)


def test_a_target_of_one_column_is_read_with_a_warning():
    with pytest.warns(DataConversionWarning):
        assert read_numbers(Reader(), [[1], [2]], 2).tolist() == [1, 2]
    with pytest.raises(ValueError, match="1d array"):
        read_numbers(Reader(), [[1, 2], [2, 3]], 2)


def test_a_continuous_target_has_no_labels():
    with pytest.raises(ValueError, match="Unknown label type"):
        read_labels(Reader(), [0.5, 1.5, 2.25], 3)


X3 = np.ones((3, 1))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, NAN, NAN], "sample_weight must be finite; row 1 is nan"),
        ([1, 1, np.inf], "sample_weight must be finite; row 2 is inf"),
        ([1, 0, -2], "sample_weight must be at least 0; row 2 is -2"),
        ([0, 0, 0], "sample_weight must not be zero in every row"),
        ([1, 1], r"sample_weight must have shape \(3,\), one number a row of X; it has \(2,\)"),
        ([[1], [1], [1]], r"sample_weight must have shape \(3,\)"),
    ],
)
def test_bad_weights_are_refused_with_the_first_row(weight, message):
    with pytest.raises(ValueError, match=message):
        read_weight(weight, X3)


def test_weights_become_float64_and_none_stays_none():
    assert read_weight(None, X3) is None
    weight = read_weight(pd.Series([1, 2, 3]), X3)
    assert weight is not None
    assert weight.dtype == np.float64


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?", ">f8", "f2"])
def test_prediction_reads_an_array_as_fit_does(dtype):
    x = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    fitted = Reader().fit(x)
    for row in (x[:1], x, x[::2], np.asfortranarray(x)):
        found = fitted.read(row)
        assert found.dtype == fitted.values_.dtype
        assert np.array_equal(found, row.astype(float))
        assert np.shares_memory(found, row) == (dtype not in (">f8", "f2"))


def test_prediction_checks_an_array_that_looks_ready():
    fitted = Reader().fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="expecting 2 features"):
        fitted.read(np.ones((1, 3)))
    with pytest.raises(ValueError, match="infinity in column 1, row 0"):
        fitted.read(np.array([[1.0, np.inf]]))
    with pytest.raises(ValueError, match="infinity in column 0, row 1"):
        fitted.read(np.array([[1.0, NAN], [-np.inf, np.inf]]))
    assert np.isnan(fitted.read(np.array([[1.0, NAN]]))[0, 1])
    largest = np.full((100, 2), np.finfo(np.float64).max)
    assert fitted.read(largest) is largest
    named = Reader().fit(pd.DataFrame({"a": [1.0], "b": [2.0]}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.read(np.ones((1, 2)))
