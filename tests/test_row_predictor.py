"""One row at a time, without the cost of a table."""

import numpy as np
import pytest

from sglb import SGLBClassifier, SGLBRegressor
from small_tables import FAST, IRIS


@pytest.fixture(scope="module")
def iris_row():
    model = SGLBClassifier(**FAST).fit(*IRIS)
    return model.row_predictor(), IRIS[0][0], model.predict_proba(IRIS[0][:1])[0]


def test_a_row_predictor_takes_a_row_in_any_form(iris_row):
    predict_row, row, expected = iris_row
    packed = np.zeros(1, dtype=[("odd", "i1"), ("x", "f8", 4)])
    packed["x"] = row
    wide = np.zeros(8)
    wide[::2] = row
    rows = [row.tolist(), tuple(row), row.astype(object), row.astype(">f8"), packed["x"][0]]
    for single in (*rows, wide[::2], row.astype(np.longdouble)):
        assert np.array_equal(predict_row(single), expected)
    missing = np.array([np.nan, *row[1:]])
    assert np.array_equal(predict_row([None, *row[1:]]), predict_row(missing))


@pytest.mark.parametrize("change", [lambda r: r[:3], lambda r: [*r, 1.0], lambda r: r[None], len])
def test_a_row_predictor_rejects_a_row_of_another_length(iris_row, change):
    predict_row, row, _ = iris_row
    with pytest.raises(ValueError, match=r"a row must be 4 numbers, .*; it has shape \("):
        predict_row(change(row))


@pytest.mark.parametrize("cell", ["1.5", b"1", "x", np.datetime64("2020-01-01"), 1j, [1.0]])
def test_a_row_predictor_rejects_what_is_not_a_number_and_names_the_feature(iris_row, cell):
    predict_row, row, _ = iris_row
    cells = np.array(row, dtype=object)
    cells[2] = cell
    with pytest.raises(ValueError, match="a row must be numbers; feature 2 is "):
        predict_row(cells)


def test_a_row_predictor_gives_what_the_estimator_gives_row_by_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[::7, 1] = np.nan
    for model, target in (
        (SGLBRegressor(**FAST, loss="poisson"), rng.poisson(2.0, 200)),
        (SGLBClassifier(**FAST), rng.integers(0, 2, 200)),
        (SGLBClassifier(**FAST), rng.integers(0, 3, 200)),
    ):
        model.fit(X, target)
        answer = getattr(model, "predict_proba", model.predict)
        predict_row = model.row_predictor()
        result = np.stack([predict_row(row) for row in X])
        np.testing.assert_array_equal(result, answer(X))
