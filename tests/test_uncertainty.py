"""Uncertainty from draws: formulas by hand, and what they say on data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sglb import SGLBClassifier, SGLBRegressor
from sglb.posterior import virtual_states
from sglb.uncertainty import entropy, of_means, of_probabilities

LOG2 = np.log(2.0)


def test_entropy_of_certainty_is_zero_and_of_a_coin_log_two():
    np.testing.assert_allclose(entropy(np.array([[1.0, 0.0], [0.5, 0.5]])), [0.0, LOG2])


def test_states_that_agree_leave_no_knowledge_to_be_gained():
    parts = of_probabilities(np.array([[[0.5, 0.5]], [[0.5, 0.5]]]))
    assert (parts.knowledge[0], parts.data[0], parts.total[0]) == (0.0, LOG2, LOG2)


def test_states_that_contradict_with_certainty_leave_no_noise_in_the_data():
    parts = of_probabilities(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
    assert (parts.knowledge[0], parts.data[0], parts.total[0]) == (LOG2, 0.0, LOG2)
    assert parts.mean.tolist() == [[0.5, 0.5]]


@given(arrays(np.float64, (3, 4, 2), elements=st.floats(0.0, 1.0)))
def test_the_parts_of_an_entropy_are_not_negative_and_add_up(weights):
    draws = (weights + 1e-9) / (weights + 1e-9).sum(axis=2, keepdims=True)
    parts = of_probabilities(draws)
    assert (parts.knowledge >= 0).all()
    assert (parts.data >= 0).all()
    np.testing.assert_allclose(parts.knowledge + parts.data, parts.total, atol=1e-12)
    assert (parts.total <= LOG2 + 1e-12).all()


def test_the_parts_of_a_variance_add_up():
    parts = of_means(np.array([[1.0, 5.0], [3.0, 5.0]]), 0.5)
    assert parts.mean.tolist() == [2.0, 5.0]
    assert parts.knowledge.tolist() == [1.0, 0.0]
    assert parts.data.tolist() == [0.5, 0.5]
    assert parts.total.tolist() == [1.5, 0.5]


def test_without_a_variance_of_the_noise_only_knowledge_is_known():
    parts = of_means(np.array([[1.0], [3.0]]), None)
    assert parts.knowledge.tolist() == [1.0]
    assert parts.data is None
    assert parts.total is None


@pytest.mark.parametrize(
    ("n_steps", "n_states", "states"),
    [
        (100, 2, [51, 100]),
        (100, 6, [51, 61, 71, 80, 90, 100]),
        (4, 10, [3, 4]),
        (2, 10, [2]),
        (1, 10, [1]),
        (0, 10, [0]),
        (100, 1, [100]),
    ],
)
def test_states_are_even_over_the_second_half_and_end_with_the_last(n_steps, n_states, states):
    assert virtual_states(n_steps, n_states).tolist() == states


@given(st.integers(0, 5000), st.integers(1, 100))
def test_states_are_distinct_and_of_the_second_half(n_steps, n_states):
    states = virtual_states(n_steps, n_states)
    assert 1 <= len(states) <= n_states
    assert (np.diff(states) > 0).all()
    assert states[-1] == n_steps
    assert states[0] >= n_steps / 2


def gap_data(n=600):
    """A line with noise of variance .25 and no rows between 0.3 and 0.7."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 0.6, n)
    x[x > 0.3] += 0.4
    return x[:, None], 3 * x + rng.normal(scale=0.5, size=n)


HOT = {"n_estimators": 300, "max_depth": 2, "learning_rate": 0.1, "random_state": 0, "n_jobs": 1}


def test_the_mean_is_the_mean_of_the_states_read_one_by_one():
    X, y = gap_data()
    model = SGLBRegressor(**HOT, temperature=1.0, shrink_rate=0.01).fit(X, y)
    parts = model.predict_uncertainty(X[:5], n_states=4)
    staged = list(model.staged_predict(X[:5]))
    one_by_one = np.stack([staged[k - 1] for k in virtual_states(300, 4)])
    np.testing.assert_allclose(parts.mean, one_by_one.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(parts.knowledge, one_by_one.var(axis=0), atol=1e-9)


def test_data_uncertainty_is_the_mean_squared_residual_of_the_training_rows():
    X, y = gap_data()
    weight = np.arange(len(y)) % 3.0
    model = SGLBRegressor(**HOT).fit(X, y, sample_weight=weight)
    residual = np.average((y - model.predict(X)) ** 2, weights=weight)
    np.testing.assert_allclose(model.predict_uncertainty(X[:3]).data, residual)
    assert 0.15 < residual < 0.25  # the noise's variance is .25, seen through a close fit


def test_losses_that_do_not_predict_a_mean_have_no_data_uncertainty():
    X, y = gap_data()
    parts = SGLBRegressor(**HOT, loss="quantile").fit(X, y).predict_uncertainty(X[:3])
    assert parts.data is None
    assert (parts.knowledge >= 0).all()


def test_the_states_of_a_warmer_chain_lie_further_apart():
    X, y = gap_data()
    cold = SGLBRegressor(**HOT, temperature=1e-4, shrink_rate=0.01).fit(X, y)
    warm = SGLBRegressor(**HOT, temperature=10.0, shrink_rate=0.01).fit(X, y)
    assert (
        warm.predict_uncertainty(X).knowledge.mean()
        > 10 * cold.predict_uncertainty(X).knowledge.mean()
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_have_entropies_that_add_up(n_classes):
    X, y = gap_data()
    labels = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = SGLBClassifier(**HOT, temperature=0.1, shrink_rate=0.01).fit(X, labels)
    parts = model.predict_uncertainty(X, n_states=7)
    assert parts.mean.shape == (len(y), n_classes)
    np.testing.assert_allclose(parts.mean.sum(axis=1), 1.0)
    np.testing.assert_allclose(parts.knowledge + parts.data, parts.total)
    assert parts.knowledge.max() > 0


@pytest.mark.parametrize("wrong", [1, 0, 2.5, "all"])
def test_a_wrong_number_of_states_is_refused(wrong):
    X, y = gap_data(50)
    model = SGLBRegressor(**HOT).fit(X, y)
    with pytest.raises(ValueError, match="n_states="):
        model.predict_uncertainty(X, n_states=wrong)
