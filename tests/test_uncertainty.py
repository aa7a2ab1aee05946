"""Uncertainty from draws: formulas by hand, and what they say on data."""

import tracemalloc
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_breast_cancer

from problems import THREADS, generators, make_table, make_trace
from sglb import SGLBClassifier, SGLBRegressor
from sglb.bins import Bins
from sglb.losses.links import Link
from sglb.posterior import virtual_states
from sglb.samplers import Move
from sglb.structure import Structure
from sglb.trace import Trace
from sglb.uncertainty import Uncertainty, entropy, of_means, of_probabilities

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
def test_a_wrong_number_of_states_is_rejected(wrong):
    X, y = gap_data(50)
    model = SGLBRegressor(**HOT).fit(X, y)
    with pytest.raises(ValueError, match="n_states="):
        model.predict_uncertainty(X, n_states=wrong)


# --- in the core: one traversal, no draws held ---


def draws_of(states, X, name, parameter, n_columns):
    """Predictions of each state, (n_states, n_rows, n_columns), by the link alone."""
    return np.stack([Link(name, parameter).columns(raw, n_columns) for raw in states.predict(X)])


@given(
    generators,
    st.sampled_from([0, 1, 8, 9, 256, 257]),
    st.integers(1, 4),
    st.lists(st.integers(0, 20), min_size=1, max_size=8).map(sorted),
    st.sampled_from([0.01, 1.0, 1e300]),
)
def test_entropies_of_the_core_equal_those_of_the_draws(rng, n_rows, n_outputs, numbers, reach):
    trace = make_trace(rng, 20, n_outputs)
    trace.values[:] *= reach
    X = make_table(rng, n_rows, 6)
    states = trace.states(numbers)
    n_classes = max(n_outputs, 2)
    link = ("sigmoid", 0.5) if n_outputs == 1 else ("softmax", 1.0)
    actual = Uncertainty(*states.entropies(X, *link, n_classes))
    expected = of_probabilities(draws_of(states, X, *link, n_classes))
    np.testing.assert_allclose(actual.mean, expected.mean, rtol=1e-14, atol=1e-300)
    for part in ("knowledge", "data", "total"):
        np.testing.assert_allclose(
            getattr(actual, part), getattr(expected, part), rtol=0, atol=1e-14
        )
        assert (getattr(actual, part) >= 0.0).all()
    assert np.array_equal(actual.total - actual.data, actual.knowledge)


def two_classes_of(scores, width):
    """Mean of both probabilities and of the entropy over states with these scores, by decimals."""
    first = second = of_states = Decimal(0)
    for z in scores:
        t = min(abs(Decimal(float(z)) / Decimal(width)), Decimal(708))
        rare = (-t).exp() / (1 + (-t).exp())
        first += rare if z >= 0 else 1 - rare
        second += 1 - rare if z >= 0 else rare
        of_states += -(1 - rare).ln() + rare * t
    return first / len(scores), second / len(scores), of_states / len(scores)


@pytest.mark.parametrize("width", [1.0, 0.1, 3.7])
@pytest.mark.parametrize(
    "scores",
    [
        [0.0],
        [0.0, 0.0, 0.0],
        [1e-9, -1e-9],
        [0.346],  # just below ln(2) / 2
        [-0.346],
        [0.3, 0.34, 0.347, 0.35],
        [2.0, 3.0, 2.5],
        [-2.0, -3.0, -2.5],
        [-12.0, 9.0, -11.0],
        [30.0, 41.0],
        [-30.0, -41.0],
        [-300.0, 0.5, -290.0],
        [-300.0, -310.0],
        [900.0, 1e9],
        [-900.0, -1e9, 1e9],
        [*np.linspace(-9.0, -4.0, 100)],
        [*np.linspace(4.0, 9.0, 100)],
    ],
)
def test_both_classes_keep_their_digits_however_rare(scores, width):
    X = np.zeros((3, 1))
    trace = Trace(Bins.fit(X, 16), 1, np.zeros(1))
    no_splits = Structure(*(np.zeros(0, kind) for kind in (np.int32, np.uint8, np.uint8)))
    for change in np.diff(scores, prepend=0.0):
        trace.append(no_splits, np.array([[change * width]]), Move(0.1))
    states = trace.states(range(1, len(scores) + 1))
    actual = Uncertainty(*states.entropies(X, "sigmoid", width, 2))
    raw = states.predict(X)[:, 0, 0]
    with localcontext(prec=400):
        expected = two_classes_of(raw, width)
        of_mean = -sum(p * p.ln() for p in expected[:2])
    # A score's last digit moves a probability by t 2^-52, t = |score| / width <= 708.
    longest = min(np.abs(raw).max() / width, 708.0)
    for k in (0, 1):
        np.testing.assert_allclose(
            actual.mean[:, k], float(expected[k]), rtol=1e-15 + longest * 2**-51
        )
    np.testing.assert_allclose(actual.data, float(expected[2]), rtol=0, atol=2e-15)
    np.testing.assert_allclose(actual.total, float(of_mean), rtol=0, atol=2e-15)
    np.testing.assert_allclose(actual.knowledge, float(of_mean - expected[2]), rtol=0, atol=3e-15)


@given(
    generators,
    st.sampled_from([0, 1, 8, 9, 256, 257]),
    st.integers(1, 3),
    st.lists(st.integers(0, 20), min_size=1, max_size=8).map(sorted),
    st.sampled_from(["identity", "exponential"]),
)
def test_moments_of_the_core_equal_those_of_the_draws(rng, n_rows, n_outputs, numbers, name):
    states = make_trace(rng, 20, n_outputs).states(numbers)
    X = make_table(rng, n_rows, 6)
    mean, variance = states.moments(X, name, 3.0)
    draws = draws_of(states, X, name, 3.0, n_outputs)
    np.testing.assert_allclose(mean, draws.mean(axis=0), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(variance, draws.var(axis=0), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_more_states_than_a_product_can_hold_are_added_up_in_groups(n_outputs):
    rng = np.random.default_rng(0)
    states = make_trace(rng, 20, n_outputs).states([20] * 1501)
    X = make_table(rng, 10, 6)
    link = ("sigmoid", 1e6, 2) if n_outputs == 1 else ("softmax", 1.0, 3)
    mean, knowledge, data, total = states.entropies(X, *link)
    np.testing.assert_allclose(mean, draws_of(states, X, *link)[0], rtol=1e-12)
    np.testing.assert_allclose(data, entropy(mean), rtol=1e-12)
    np.testing.assert_allclose(total, entropy(mean), rtol=1e-12)
    np.testing.assert_allclose(knowledge, 0.0, atol=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_uncertainty_does_not_depend_on_threads(n_outputs):
    rng = np.random.default_rng(1)
    states = make_trace(rng, 60, n_outputs).states([31, 40, 50, 55, 60])
    X = make_table(rng, 9001, 6)
    link = ("sigmoid", 1.0, 2) if n_outputs == 1 else ("softmax", 1.0, 3)
    entropies = states.entropies(X, *link)
    moments = states.moments(X, "identity", 1.0)
    for n_threads in THREADS:
        for again, once in zip(states.entropies(X, *link, n_threads), entropies, strict=True):
            assert np.array_equal(again, once)
        for again, once in zip(states.moments(X, "identity", 1.0, n_threads), moments, strict=True):
            assert np.array_equal(again, once)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_estimators_give_what_their_draws_say(n_classes):
    X, y = gap_data()
    labels = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = SGLBClassifier(**HOT, temperature=0.1, shrink_rate=0.01).fit(X, labels)
    staged = list(model.staged_predict_proba(X))
    draws = np.stack([staged[k - 1] for k in virtual_states(300, 5)])
    for part, expected in zip(
        model.predict_uncertainty(X, n_states=5), of_probabilities(draws), strict=True
    ):
        np.testing.assert_allclose(part, expected, atol=1e-9)


def test_a_users_own_link_is_followed():
    class Squared:
        def loss(self, y, raw):
            return 0.5 * (raw - y) ** 2

        def gradient(self, y, raw):
            return raw - y

        def link(self, raw):
            return 2.0 * raw

    X, y = gap_data(100)
    model = SGLBRegressor(**HOT, loss=Squared()).fit(X, y)
    assert np.array_equal(model.predict(X), 2.0 * model.predict_raw(X))
    staged = list(model.staged_predict(X))
    draws = np.stack([staged[k - 1] for k in virtual_states(300, 3)])
    parts = model.predict_uncertainty(X, n_states=3)
    np.testing.assert_allclose(parts.mean, draws.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(parts.knowledge, draws.var(axis=0), atol=1e-9)


def test_the_draws_of_many_states_are_never_held():
    X, y = gap_data()
    model = SGLBClassifier(**HOT).fit(X, y > 1)
    rows = np.repeat(X, 50, axis=0)
    model.predict_uncertainty(rows[:10], n_states=100)
    tracemalloc.start()
    model.predict_uncertainty(rows, n_states=100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # NumPy reports its arrays: five numbers a row are returned; draws would be 200.
    assert peak < 10 * 8 * len(rows)


@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan, 1e-308])
def test_a_width_that_is_none_is_rejected(width):
    states = make_trace(np.random.default_rng(0), 5, 1).states([5])
    with pytest.raises(ValueError, match="width must be between"):
        states.entropies(np.zeros((3, 6)), "sigmoid", width, 2)


def test_what_is_no_probability_has_no_entropy():
    states = make_trace(np.random.default_rng(0), 5, 2).states([5])
    with pytest.raises(ValueError, match="probabilities"):
        states.entropies(np.zeros((3, 6)), "identity", 1.0, 2)
    with pytest.raises(ValueError, match="mean must be"):
        states.entropies(np.zeros((3, 6)), "softmax", 1.0, 3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "its temperature was chosen for accuracy"),
        ({"temperature": 0.0}, "the chain has no noise"),
        ({"sampler": "plain"}, "the chain has no noise"),
        ({"temperature": 1.0}, "Newton leaves"),
        ({"temperature": 1.0, "leaf_method": "gradient"}, "its 20 steps are .* relaxation times"),
    ],
    ids=["default", "cold", "plain", "newton", "short"],
)
def test_states_that_cannot_be_draws_are_warned_of(changes, reason):
    X, y = load_breast_cancer(return_X_y=True)
    model = SGLBClassifier(n_estimators=20, random_state=0, **changes).fit(X, y)
    with pytest.warns(
        UserWarning, match=f"not draws.*{reason}.*or rank rows by 'total'"
    ) as message:
        model.predict_uncertainty(X[:3])
    assert message[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_a_hot_chain_that_has_forgotten_its_start_is_not_warned_of():
    X, y = load_breast_cancer(return_X_y=True)
    rates = {"learning_rate": 0.3, "shrink_rate": 0.1, "temperature": 1.0}
    model = SGLBClassifier(n_estimators=200, leaf_method="gradient", random_state=0, **rates)
    model.fit(X, y).predict_uncertainty(X[:3])
