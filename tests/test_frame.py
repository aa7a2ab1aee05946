"""Tables on their way in: what passes untouched, what is rejected and how."""

import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

from sglb import SGLBClassifier, SGLBRegressor
from sglb.bins import Bins
from sglb.columns import BLOCK_COLUMNS, Columns
from sglb.frame import read_features

NAN = float("nan")


class Reader(BaseEstimator):
    """An estimator that only reads."""

    def __init__(self, categorical="from_dtype"):
        self.categorical = categorical

    def fit(self, X, y=None):
        self.features_ = read_features(self, X, reset=True, categorical=self.categorical)
        self.values_ = self.features_.matrix()
        return self

    def read_all(self, X):
        mask = self.features_.is_categorical
        return read_features(self, X, reset=False, categorical=mask)

    def read(self, X):
        return self.read_all(X).matrix()


def read(X, categorical="from_dtype"):
    return Reader(categorical).fit(X).values_


def words(X, categorical="from_dtype"):
    """The labels of every categorical column, row by row."""
    return [labels_of(column) for column in Reader(categorical).fit(X).features_.labels]


def labels_of(column):
    return [([*column.labels, None])[index] for index in column.index]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_an_array_of_numbers_passes_untouched(dtype):
    x = np.ones((3, 2), dtype=dtype)
    assert read(x) is x
    strided = np.ones((6, 4), dtype=dtype)[::2, ::2]
    assert np.shares_memory(read(strided), strided)


def packed(n_rows, kind):
    """Records that lie without a gap behind a byte: no field is where its type should be."""
    records = np.zeros(n_rows, dtype=[("odd", "i1"), ("x", kind, 2), ("y", kind), ("weight", kind)])
    records["x"] = np.arange(2 * n_rows).reshape(n_rows, 2)
    records["y"] = np.arange(n_rows) % 2
    records["weight"] = 1 + np.arange(n_rows) % 3
    return records


@pytest.mark.parametrize("kind", ["f4", "f8", "i2", "i4", "i8", "u8"])
@pytest.mark.parametrize("spec", ["from_dtype", [1]])
def test_fields_of_packed_records_are_copied(kind, spec):
    x = packed(5, kind)["x"]
    assert not x.flags.aligned
    assert x.strides[0] % x.itemsize
    fitted = Reader(spec).fit(x)
    for values, labels in (
        (fitted.values_, fitted.features_.labels),
        (fitted.read(x), fitted.read_all(x).labels),
    ):
        assert values.flags.aligned
        assert values.dtype == x.dtype
        assert np.array_equal(values, x[:, : values.shape[1]])
        assert [labels_of(column) for column in labels] == [["1", "3", "5", "7", "9"]][
            : len(labels)
        ]


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("estimator", [SGLBClassifier, SGLBRegressor])
def test_fields_of_packed_records_give_the_model_of_their_copies(estimator, kind):
    records = packed(60, kind)
    x, y, weight = records["x"], records["y"], records["weight"]
    assert not any(field.flags.aligned for field in (x, y, weight))
    plain = x.copy()
    make = functools.partial(estimator, n_estimators=5, random_state=0)
    crooked = make().fit(x, y, weight, eval_set=[(x, y, weight)])
    straight = make().fit(plain, y.copy(), weight.copy(), eval_set=[(plain, y.copy())])
    expected = straight.predict_raw(plain)
    assert np.array_equal(crooked.predict_raw(x), expected)
    assert np.array_equal(crooked.predict_raw(x[:1]), expected[:1])
    assert np.array_equal(crooked.predict(x), straight.predict(plain))
    staged = (list(model.staged_predict_raw(X)) for model, X in ((crooked, x), (straight, plain)))
    assert np.array_equal(*staged)
    for first, second in zip(
        crooked.predict_uncertainty(x), straight.predict_uncertainty(plain), strict=True
    ):
        assert np.array_equal(first, second)


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
    "table", [pl.DataFrame, pa.table, pd.DataFrame], ids=lambda t: t.__module__
)
def test_columns_of_a_table_are_read_where_they_lie_and_few_are_copied_at_a_time(table):
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.normal(size=500).round(1).astype(np.float32) for i in range(11)}
    columns["c3"] = rng.integers(0, 9, 500)  # of another type, lest pandas holds one block
    values = Reader().fit(table(columns)).features_.values
    assert isinstance(values, Columns)
    sizes = [block.shape[1] for _, block in values.blocks()]
    assert max(sizes) <= BLOCK_COLUMNS
    assert sum(sizes) == 11
    whole = np.column_stack(list(columns.values()))
    assert values[:].tolist() == whole.tolist()
    assert values[7:20:3].tolist() == whole[7:20:3].tolist()
    apart, together = Bins.fit(values, 20), Bins.fit(whole, 20)
    assert apart.thresholds.tobytes() == together.thresholds.tobytes()
    assert apart.encode(values).tobytes() == together.encode(whole).tobytes()


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


TOWNS = ["Rom", None, "Bern", "Rom"]


class Stream:
    """A table of a library nobody knows, that speaks Arrow."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


ARROW_TEXT = pd.ArrowDtype(pa.string())
TEXT_TABLES = {
    "pandas objects": pd.DataFrame({"x": [1.0, 2, 3, 4], "town": pd.Series(TOWNS, dtype=object)}),
    "pandas text": pd.DataFrame({"x": [1.0, 2, 3, 4], "town": pd.Series(TOWNS, dtype="string")}),
    "pandas arrow": pd.DataFrame({"x": [1.0, 2, 3, 4], "town": pd.Series(TOWNS, dtype=ARROW_TEXT)}),
    "pandas category": pd.DataFrame(
        {
            "x": [1.0, 2, 3, 4],
            "town": pd.Categorical(TOWNS, categories=["Rom", "Oslo", "Bern"]),
        }
    ),
    "polars text": pl.DataFrame({"x": [1.0, 2, 3, 4], "town": TOWNS}),
    "polars categorical": pl.DataFrame(
        {"x": [1.0, 2, 3, 4], "town": pl.Series(TOWNS, dtype=pl.Categorical)}
    ),
    "polars enum": pl.DataFrame(
        {"x": [1.0, 2, 3, 4], "town": pl.Series(TOWNS, dtype=pl.Enum(["Oslo", "Rom", "Bern"]))}
    ),
    "polars lazy": pl.DataFrame({"x": [1.0, 2, 3, 4], "town": TOWNS}).lazy(),
    "arrow text": pa.table({"x": [1.0, 2, 3, 4], "town": TOWNS}),
    "arrow large text": pa.table({"x": [1.0, 2, 3, 4], "town": pa.array(TOWNS, pa.large_string())}),
    "arrow dictionary": pa.table(
        {"x": [1.0, 2, 3, 4], "town": pa.array(TOWNS).dictionary_encode()}
    ),
    "arrow chunks": pa.concat_tables(
        [
            pa.table({"x": [1.0, 2], "town": pa.array(TOWNS[:2]).dictionary_encode()}),
            pa.table({"x": [3.0, 4], "town": pa.array(TOWNS[2:]).dictionary_encode()}),
        ]
    ),
    "arrow stream": Stream(pa.table({"x": [1.0, 2, 3, 4], "town": TOWNS})),
    "objects": np.array([[1.0, "Rom"], [2, None], [3, "Bern"], [4, "Rom"]], dtype=object),
    "lists": [[1.0, "Rom"], [2, None], [3, "Bern"], [4, "Rom"]],
}


@pytest.mark.parametrize("kind", TEXT_TABLES)
def test_text_and_categories_become_labels_whatever_holds_them(kind):
    features = Reader().fit(TEXT_TABLES[kind]).features_
    assert features.is_categorical.tolist() == [False, True]
    assert features.matrix().tolist() == [[1], [2], [3], [4]]
    assert [labels_of(column) for column in features.labels] == [TOWNS]


@pytest.mark.parametrize("spec", [["town"], [1], [False, True], np.array([False, True]), ("town",)])
def test_categorical_columns_can_be_named_counted_or_masked(spec):
    assert words(TEXT_TABLES["polars text"], spec) == [TOWNS]


@pytest.mark.parametrize("kind", ["pandas text", "pandas category", "polars enum", "objects"])
@pytest.mark.parametrize("spec", [None, [0]])
def test_text_that_is_not_said_to_be_categorical_is_rejected_with_advice(kind, spec):
    with pytest.raises(ValueError, match=r"column ('town'|1) .*categorical_features"):
        read(TEXT_TABLES[kind], spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (["city"], r"categorical_features names 'city', but the columns of X are: \['x', 'town'\]"),
        ([2], "categorical_features names column 2, but X has 2 columns"),
        ([-1], "categorical_features names column -1"),
        ([True], r"mask of shape \(1,\), but X has 2 columns"),
    ],
)
def test_missing_categorical_columns_are_rejected_by_name(spec, message):
    with pytest.raises(ValueError, match=message):
        read(TEXT_TABLES["polars text"], spec)
    with pytest.raises(ValueError, match="names 'town', but the columns of X are: no names"):
        read(np.ones((2, 2)), ["town"])


NUMBERS = [
    np.array([[1, 1], [2, 0]]),
    np.array([[1.0, 1.0], [2.0, 0.0]], dtype=np.float32),
    pd.DataFrame({"a": pd.array([1, 2], dtype="Int8"), "b": [True, False]}),
    pl.DataFrame({"a": [1, 2], "b": [True, False]}),
    pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Decimal(5, 1)), "b": [1, 0]}),
    pl.DataFrame({"a": ["1", "2"], "b": ["1", "0"]}),
    pa.table({"a": [1.0, 2.0], "b": [True, False]}),
    np.array([[1, True], [2.0, False]], dtype=object),
    np.array([["1", "1"], ["2", "0"]]),
    np.array([[b"1", b"1"], [b"2", b"0"]]),
]


@pytest.mark.parametrize("table", NUMBERS, ids=range(len(NUMBERS)))
def test_equal_numbers_of_any_type_have_one_label(table):
    assert words(table, [0, 1]) == [["1", "2"], ["1", "0"]]


def test_numbers_that_are_not_whole_and_very_large_ones_keep_their_labels():
    large = 2**62 + 1
    assert words(np.array([[0.5], [NAN], [-0.0]]), [0]) == [["0.5", None, "0"]]
    for table in (
        pl.DataFrame({"a": [large, None, large + 1]}),
        pd.DataFrame({"a": pd.array([large, None, large + 1], dtype="Int64")}),
        pa.table({"a": [large, None, large + 1]}),
    ):
        assert words(table, [0]) == [[str(large), None, str(large + 1)]]
    assert words(pl.DataFrame({"a": [True, None, False]}), [0]) == [["1", None, "0"]]


def test_a_fraction_that_float32_rounds_has_the_label_of_what_it_became():
    single = np.array([[0.1], [0.5], [2**24]], dtype=np.float32)
    labels = [["0.10000000149011612", "0.5", str(2**24)]]
    for table in (
        single,
        single.astype(np.float64),
        np.array([[value] for value in single[:, 0]], dtype=object),
        pl.DataFrame({"a": single[:, 0]}),
        pd.DataFrame({"a": single[:, 0]}),
        pd.DataFrame({"a": pd.Categorical(single[:, 0])}),
        pa.table({"a": single[:, 0]}),
    ):
        assert words(table, [0]) == labels
    assert words([[0.1], [0.5], [2**24]], [0]) == [["0.1", "0.5", str(2**24)]]


def test_text_is_not_a_missing_value_whatever_it_says():
    assert words([["None"], ["nan"], [""], [None], [NAN]]) == [["None", "nan", "", None, None]]


def test_a_column_without_any_value_is_numbers_or_labels_as_needed():
    for table in (pl.DataFrame({"a": [None, None]}), pa.table({"a": pa.nulls(2)})):
        assert np.isnan(read(table)).all()
    text = pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String)})
    assert words(text) == [[None, None]]
    assert np.isnan(read(text, None)).all()
    reader = Reader().fit(pd.DataFrame({"a": [1.0, 2.0]}))
    assert np.isnan(reader.read(pd.DataFrame({"a": [None, None]}, dtype=object))).all()


def test_rows_are_taken_with_their_labels():
    features = Reader().fit(TEXT_TABLES["arrow text"]).features_.take(np.array([0, 3]))
    assert features.matrix().tolist() == [[1], [4]]
    assert labels_of(features.labels[0]) == ["Rom", "Rom"]


def test_numbers_beside_categories_are_not_widened():
    table = pl.DataFrame(
        {"a": pl.Series([1, 2], dtype=pl.Float32), "b": pl.Series([1, None], dtype=pl.Int8)}
    ).with_columns(c=pl.lit("x"))
    assert read(table).dtype == np.float32
    assert read(table.to_arrow()).dtype == np.float32


def test_a_lazy_table_is_collected():
    assert read(pl.DataFrame(COLUMNS).lazy()).tolist() == read(pl.DataFrame(COLUMNS)).tolist()


def test_a_vector_is_rejected_as_a_table():
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


def test_columns_in_another_order_are_rejected_and_the_first_one_is_named():
    reader = Reader().fit(pd.DataFrame(COLUMNS))
    with pytest.raises(ValueError, match=r"same order.*\s*Column 1 is 'b'; in fit it was 'i'"):
        reader.read(pd.DataFrame(COLUMNS)[["f", "b", "i"]])


def test_other_columns_are_rejected_and_named():
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


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?", ">f8", "f2"])
def test_prediction_reads_an_array_as_fit_does(dtype):
    x = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    fitted = Reader().fit(x)
    for row in (x[:1], x, x[::2], np.asfortranarray(x)):
        values = fitted.read(row)
        assert values.dtype == fitted.values_.dtype
        assert np.array_equal(values, row.astype(float))
        assert np.shares_memory(values, row) == (dtype not in (">f8", "f2"))


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
