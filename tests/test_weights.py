"""Sample weights: multiplicities, without a jump between weights that are whole and weights that
are not.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, make_classification

from sglb import SGLBClassifier, SGLBRegressor
from sglb.target import MOST_REPEATS, weight_unit

CLASSES = make_classification(2000, 10, random_state=0)


def proba(weight, **parameters):
    X, y = CLASSES
    parameters = {"n_estimators": 100, "random_state": 0} | parameters
    return SGLBClassifier(**parameters).fit(X, y, weight).predict_proba(X)[:, 1]


def test_weights_of_ten_and_of_ten_and_a_half_give_nearly_the_same_model():
    # A weight that is not whole used to be divided by the mean: probabilities moved by up to .8.
    difference = np.abs(proba(np.full(2000, 10.0)) - proba(np.full(2000, 10.5)))
    assert difference.max() < 0.1
    assert difference.mean() < 0.01


def test_without_noise_a_weight_of_two_is_a_row_that_is_there_twice():
    X, y = np.round(CLASSES[0], 1), CLASSES[1]  # so few values that each has a bin of its own
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    model = SGLBClassifier(n_estimators=50, sampler="plain", random_state=0)
    by_weight = model.fit(X, y, weight).predict_proba(X)
    by_rows = model.fit(X[repeated], y[repeated]).predict_proba(X)
    np.testing.assert_allclose(by_weight, by_rows, rtol=1e-10)


@pytest.mark.parametrize("total", [1.0, 0.001, 700.0])
def test_weights_normalised_to_a_smaller_sum_mean_what_no_weights_mean(total):
    X, y = load_diabetes(return_X_y=True)
    total = min(total, float(len(y)))
    model = SGLBRegressor(n_estimators=30, sampler="plain", random_state=0)
    wanted = model.fit(X, y).predict(X)
    result = model.fit(X, y, np.full(len(y), total / len(y))).predict(X)
    np.testing.assert_allclose(result, wanted, rtol=1e-6)


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20),
    st.floats(0.99, 1.01),
    st.sampled_from([1, 4]),
)
def test_the_unit_moves_no_faster_than_the_weights(weights, factor, n_copies):
    weight = np.array(weights)
    before, after = weight_unit(weight, n_copies), weight_unit(factor * weight, n_copies)
    assert abs(after / before - 1.0) <= abs(factor - 1.0) + 1e-12


@pytest.mark.parametrize(
    ("weights", "n_copies", "unit"),
    [
        ([1.0, 1.0], 1, 1.0),
        ([1.0, 4.0], 1, 1.0),  # rows of whole weights are multiplicities
        ([1.5, 4.0], 1, 1.0),  # and so are all others with a mean from 1 to 50
        ([0.25, 0.75], 1, 0.5),
        ([100.0, 300.0], 1, 4.0),
        ([0.25, 0.25], 4, 0.25),  # four copies of rows of weight 1
        ([0.5, 1.0], 4, 0.25),  # of rows of weight 2 and 4
    ],
)
def test_the_unit_is_the_weight_of_an_ordinary_row(weights, n_copies, unit):
    assert weight_unit(np.array(weights), n_copies) == pytest.approx(unit, rel=1e-12)


def test_weights_that_can_hardly_be_numbers_of_rows_are_warned_of():
    X, y = load_diabetes(return_X_y=True)
    model = SGLBRegressor(n_estimators=5, random_state=0)
    with pytest.warns(UserWarning, match=r"mean 1000.*of 22,100 rows.*divide them by their mean"):
        model.fit(X, y, np.full(len(y), 1000.0))
    for quiet in (1.0, 3.0, 10.5, MOST_REPEATS):
        model.fit(X, y, np.full(len(y), quiet))  # warnings are errors here
