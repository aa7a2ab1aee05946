"""Small frames read in one go: the same as column by column, and as strict."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

from sglb import SGLBClassifier
from sglb.frame import read_features
from sglb.layouts import MOST_ROWS, KnownLayout

NAN = float("nan")


class Reader(BaseEstimator):
    """An estimator that only reads."""

    def __init__(self, categorical="from_dtype"):
        self.categorical = categorical

    def fit(self, X):
        self.mask_ = read_features(self, X, reset=True, categorical=self.categorical).is_categorical
        self.layout_ = KnownLayout()
        return self

    def read(self, X, *, known=True):
        layout = self.layout_ if known else None
        return read_features(self, X, reset=False, categorical=self.mask_, layout=layout)


def content(features):
    """Numbers as float64 and labels row by row."""
    labels = [[([*c.labels, None])[index] for index in c.index] for c in features.labels]
    return np.asarray(features.matrix(), dtype=np.float64), labels


def assert_same(features, others):
    (numbers, labels), (expected, expected_labels) = content(features), content(others)
    np.testing.assert_array_equal(numbers, expected)
    assert labels == expected_labels
    np.testing.assert_array_equal(features.is_categorical, others.is_categorical)


def arrow(columns):
    return pa.table({name: pa.array(values) for name, values in columns.items()})


LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": arrow}
NUMBER_TYPES = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_of_any_two_number_types_are_read_as_one_by_one(library):
    for first, second in itertools.product(NUMBER_TYPES, NUMBER_TYPES):
        frame = LIBRARIES[library](
            {
                "a": np.array([1, 0, 1], dtype=first),
                "b": np.array([0, 3, 100], dtype=second),
                "c": np.array([0.1, 0.5, -7], dtype="f4"),
            }
        )
        reader = Reader().fit(frame)
        expected = reader.read(frame)
        assert reader.layout_.read(frame) is not None
        assert_same(reader.read(frame), expected)


FRAMES = {
    "pandas": pd.DataFrame({"a": [1.5, NAN], "t": ["x", None], "i": [1, 2]}),
    "pandas category": pd.DataFrame(
        {"a": [1.5, NAN], "t": pd.Categorical(["x", None]), "i": [True, False]}
    ),
    "pandas nullable": pd.DataFrame(
        {"a": pd.array([1, 2], dtype="Int64"), "t": pd.array(["x", "y"], dtype="string")}
    ),
    "pandas arrow": pd.DataFrame(
        {"a": [1.0, 2.0], "t": pd.array(["x", None], dtype=pd.ArrowDtype(pa.string()))}
    ),
    "pandas arrow dictionary": pd.DataFrame(
        {
            "a": [1.0, 2.0],
            "t": pd.array(
                pa.array(["x", None]).dictionary_encode(),
                dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
            ),
        }
    ),
    "polars": pl.DataFrame({"a": [1.5, None], "t": ["x", None], "i": [1, None]}),
    "polars categorical": pl.DataFrame(
        {"a": [1, None], "t": pl.Series(["x", None], dtype=pl.Categorical)}
    ),
    "polars enum": pl.DataFrame({"a": [1, 2], "t": pl.Series(["x", None], dtype=pl.Enum("xyz"))}),
    "arrow": pa.table({"a": [1.5, None], "t": ["x", None], "i": [1, None]}),
    "arrow dictionary": pa.table({"a": [1, 2], "t": pa.array(["x", None]).dictionary_encode()}),
    "arrow chunks": pa.concat_tables([pa.table({"a": [1], "t": ["x"]})] * 2),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_text_categories_and_missing_values_are_read_as_one_by_one(kind):
    frame = FRAMES[kind]
    reader = Reader().fit(frame)
    expected = reader.read(frame)
    assert reader.layout_.read(frame) is not None
    for rows in (frame, frame[:1], frame[1:], frame[:0]):
        assert_same(reader.read(rows), reader.read(rows, known=False))
    assert_same(reader.read(frame), expected)


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers_that_stand_for_categories_keep_their_labels(library):
    for number in (3, 2**53 - 1, 2**53 + 1, 2**62 + 1):
        frame = LIBRARIES[library]({"a": np.array([0.5]), "k": np.array([number])})
        reader = Reader(["k"]).fit(frame)
        reader.read(frame)
        assert content(reader.read(frame))[1] == [[str(number)]]


def test_nulls_of_pandas_are_missing_values():
    frame = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [0.5, 1.5]})
    reader = Reader().fit(frame)
    reader.read(frame)
    null = pd.DataFrame({"a": pd.array([None, 2], dtype="Int64"), "b": [0.5, 1.5]})
    np.testing.assert_array_equal(content(reader.read(null))[0], [[NAN, 0.5], [2, 1.5]])


def test_a_type_with_other_categories_is_the_same_layout():
    frame = pd.DataFrame({"a": [1.0], "t": pd.Categorical(["x"])})
    other = pd.DataFrame({"a": [1.0], "t": pd.Categorical(["new"])})
    reader = Reader().fit(frame)
    reader.read(frame)
    assert reader.layout_.read(other) is not None
    assert content(reader.read(other))[1] == [["new"]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_another_layout_is_checked_in_full(library):
    make = LIBRARIES[library]
    columns = {"a": np.array([1.0]), "b": np.array([2.0])}
    reader = Reader().fit(make(columns))
    reader.read(make(columns))
    assert reader.layout_.read(make(columns)) is not None
    with pytest.raises(ValueError, match="Column 0 is 'b'; in fit it was 'a'"):
        reader.read(make({"b": columns["b"], "a": columns["a"]}))
    with pytest.raises(ValueError, match="missing:\n- b"):
        reader.read(make({"a": columns["a"]}))
    with pytest.raises(ValueError, match="unseen at fit time:\n- z"):
        reader.read(make(columns | {"z": columns["a"]}))
    with pytest.raises(ValueError, match="column 'b' is of type String"):
        reader.read(make(columns | {"b": ["2.0"]}))
    with pytest.raises(ValueError, match="column 'b' is of type Datetime"):
        reader.read(make(columns | {"b": np.array(["2020-01-01"], dtype="datetime64[us]")}))
    with pytest.raises(ValueError, match="infinity in column 'b', row 0"):
        reader.read(make(columns | {"b": np.array([-np.inf])}))


def test_a_layout_that_is_valid_only_because_of_its_values_is_not_remembered():
    nothing = pl.DataFrame({"a": pl.Series([None], dtype=pl.String), "b": [1.0]})
    reader = Reader().fit(pl.DataFrame({"a": [0.5], "b": [1.0]}))
    reader.read(nothing)
    with pytest.raises(ValueError, match="column 'a' is of type String"):
        reader.read(nothing.with_columns(a=pl.lit("x")))
    objects = pd.DataFrame({"a": pd.Series([1], dtype=object), "b": [1.0]})
    reader.read(objects)
    with pytest.raises(ValueError, match="column 'a' is of type String"):
        reader.read(pd.DataFrame({"a": pd.Series(["x"], dtype=object), "b": [1.0]}))


def test_a_column_may_be_called_as_an_attribute_of_its_frame():
    for name in ("schema", "dtypes", "columns", "shape"):
        frame = pd.DataFrame({name: [1.0, 2.0], "b": [1, 2]})
        reader = Reader().fit(frame)
        reader.read(frame)
        assert reader.layout_.read(frame) is not None
        assert content(reader.read(frame))[0].tolist() == [[1, 1], [2, 2]]


class Elsewhere(pd.DataFrame):
    """A frame whose library does not let NumPy see its memory."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion to a NumPy array is not allowed")


def test_a_frame_that_numpy_cannot_read_is_read_column_by_column():
    frame = Elsewhere({"a": [1.0, 2.0], "b": [1, 2]})
    reader = Reader().fit(frame)
    for _ in range(2):
        assert content(reader.read(frame))[0].tolist() == [[1, 1], [2, 2]]


def test_large_and_lazy_frames_are_read_column_by_column():
    large = pl.DataFrame({"a": np.ones(MOST_ROWS + 1), "b": np.ones(MOST_ROWS + 1)})
    reader = Reader().fit(large)
    reader.read(large.lazy())
    assert reader.layout_.read(large[:1]) is None
    reader.read(large)
    assert reader.layout_.read(large[:1]) is not None
    assert reader.layout_.read(large) is None


def test_a_model_without_names_warns_of_names_at_every_frame():
    model = SGLBClassifier(n_estimators=2).fit(np.eye(4), [0, 1, 0, 1])
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    for _ in range(3):
        with pytest.warns(UserWarning, match="was fitted without feature names"):
            model.predict(frame)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_model_predicts_one_row_as_it_predicts_many(library):
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=300), "b": rng.integers(0, 5, 300)}
    columns["t"] = rng.choice(["x", "y", "z"], 300).tolist()
    frame = LIBRARIES[library](columns)
    model = SGLBClassifier(n_estimators=20, random_state=0).fit(frame, columns["a"] > 0)
    expected = model.predict_proba(frame)
    before = dict(vars(model))
    for row in range(20):
        np.testing.assert_array_equal(
            model.predict_proba(frame[row : row + 1]), expected[row : row + 1]
        )
    assert vars(model) == before
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(frame[:1]), expected[:1])


def test_a_model_fitted_again_forgets_the_layout_of_its_frames():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    model = SGLBClassifier(n_estimators=2).fit(frame, [0, 1])
    model.predict(frame)
    model.fit(frame.rename(columns={"b": "c"}), [0, 1])
    with pytest.raises(ValueError, match="unseen at fit time:\n- b"):
        model.predict(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame.rename(columns={"b": "c"}))
