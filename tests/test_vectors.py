"""Targets and weights on their way in: what they become, what is rejected and how."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from sglb.frame import read_labels, read_numbers, read_weight

NAN = float("nan")
X3 = np.ones((3, 1))


class Reader(BaseEstimator):
    """An estimator for the sake of its name."""


def test_a_regression_target_becomes_float64():
    for y in ([1, 2, 3], np.array([1, 2, 3], "f4"), pd.Series([1, 2, 3]), pl.Series([1, 2, 3])):
        target = read_numbers(Reader(), y, 3)
        assert target.dtype == np.float64
        assert target.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("bad", "word"), [(NAN, "nan"), (np.inf, "inf")])
def test_a_target_that_is_not_finite_is_rejected_with_the_first_row(bad, word):
    with pytest.raises(ValueError, match=f"y must be finite; row 1 is {word}"):
        read_numbers(Reader(), [0.0, bad, bad], 3)
    with pytest.raises(ValueError, match=f"y must be finite; row 1 is {word}"):
        read_labels(Reader(), [0.0, bad, bad], 3)


def test_a_missing_label_is_rejected_with_its_row():
    with pytest.raises(ValueError, match="a label in every row; row 2 is None"):
        read_labels(Reader(), np.array(["a", "b", None], dtype=object), 3)


def test_text_is_rejected_as_a_regression_target():
    with pytest.raises(ValueError, match="y must be numbers; row 0 is"):
        read_numbers(Reader(), ["1", "2"], 2)


DAYS = np.datetime64("2024-02-28") + np.arange(3)


@pytest.mark.parametrize(
    "dates",
    [
        DAYS,
        DAYS - DAYS[0],
        pd.Series(DAYS),
        pd.Series(DAYS).dt.tz_localize("UTC"),
        pl.Series(DAYS),
        DAYS.astype(object),
        np.array(list(DAYS), dtype=object),
        pd.Series(DAYS - DAYS[0]),
    ],
)
def test_dates_are_neither_a_regression_target_nor_weights(dates):
    for name, look in (
        ("y", lambda: read_numbers(Reader(), dates, 3)),
        ("weight of a", lambda: read_weight(dates, X3, "weight of a")),
    ):
        with pytest.raises(
            ValueError, match=f"^{name} (is of type|must be numbers; row 0 is)"
        ) as e:
            look()
        assert "use numbers instead" in str(e.value)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("abc", "'abc'"),
        ("1.5", "'1.5'"),
        (b"1.5", "b'1.5'"),
        (None, "None"),
        (pd.NA, "<NA>"),
        (1j, "1j"),
        ([1, 2], r"\[1, 2\]"),
        (10**400, "1000"),
    ],
)
def test_an_object_that_is_not_a_number_is_rejected_with_its_row(value, word):
    mixed = np.empty(3, dtype=object)
    mixed[:] = [0.5, 1, 2.0]
    mixed[1] = value
    with pytest.raises(ValueError, match=f"^y must be numbers; row 1 is {word}"):
        read_numbers(Reader(), mixed, 3)
    with pytest.raises(ValueError, match=f"^sample_weight must be numbers; row 1 is {word}"):
        read_weight(mixed, X3)


def test_text_in_a_list_of_numbers_is_rejected_with_its_row():
    with pytest.raises(ValueError, match=r"^y must be numbers; row 2 is '3'"):
        read_numbers(Reader(), [1.0, 2.0, "3"], 3)
    with pytest.raises(ValueError, match=r"^sample_weight must be numbers; row 2 is '3'"):
        read_weight([1.0, 2.0, "3"], X3)


def test_numbers_of_any_kind_among_objects_are_read():
    mixed = np.array([True, Decimal("2.5"), np.float32(3), Fraction(1, 4)], dtype=object)
    assert read_numbers(Reader(), mixed, 4).tolist() == [1.0, 2.5, 3.0, 0.25]


def test_a_target_of_another_length_is_rejected():
    with pytest.raises(ValueError, match="X has 3 rows but y has 2"):
        read_numbers(Reader(), [1, 2], 3)


def test_a_missing_target_is_rejected_in_the_words_of_scikit_learn():
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


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, NAN, NAN], "sample_weight must be finite; row 1 is nan"),
        ([1, 1, np.inf], "sample_weight must be finite; row 2 is inf"),
        ([1, 0, -2], "sample_weight must be at least 0; row 2 is -2"),
        ([0, 0, 0], "sample_weight is zero in every row"),
        ([1, 1], r"sample_weight must have shape \(3,\), one number per row of X, not \(2,\)"),
        ([[1], [1], [1]], r"sample_weight must have shape \(3,\)"),
    ],
)
def test_bad_weights_are_rejected_with_the_first_row(weight, message):
    with pytest.raises(ValueError, match=message):
        read_weight(weight, X3)


def test_weights_become_float64_and_rows_without_one_weigh_1():
    assert read_weight(None, X3).tolist() == [1.0, 1.0, 1.0]
    weight = read_weight(pd.Series([1, 2, 3]), X3)
    assert weight.dtype == np.float64
