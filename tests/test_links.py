"""Links of the core: raw scores to predictions, alone and at the end of a traversal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from problems import BLOCK_SIZES, THREADS, generators, make_table, make_trace
from reference_losses import LINKS
from sglb import _core
from sglb.losses import LOSSES, Loss, get_loss
from sglb.losses.links import Link

SIZES = st.sampled_from([0, 1, 7, 8, 9, 255, 256, 257])
PARAMETER = {"sigmoid": 0.3, "exponential": 3.0}
HUGE = np.array([-1.7e308, -1e308, -800.0, -709.0, -1e-300, 0.0, 709.0, 800.0, 1e308, 1.7e308])


def columns_of(name, n_outputs):
    """Numbers a row that a link makes of so many scores; None if it cannot."""
    if name == "sigmoid":
        return 2 if n_outputs == 1 else None
    return n_outputs


def apply(name, raw, n_columns, n_threads=1, parameter=None):
    parameter = PARAMETER.get(name, 1.0) if parameter is None else parameter
    out = np.full((raw.shape[1], n_columns), np.nan)
    _core.link(name, parameter, raw, out, n_threads)
    return out


@pytest.mark.parametrize("name", LINKS)
@given(generators, SIZES, st.integers(1, 4), st.sampled_from([0.1, 3.0, 300.0]))
def test_links_equal_their_twins(name, rng, n_rows, n_outputs, width):
    n_outputs = 1 if name == "sigmoid" else n_outputs
    raw = rng.normal(scale=width, size=(n_outputs, n_rows))
    raw = np.maximum(raw, -700.0)  # below, the twin counts in denormal numbers
    expected = LINKS[name](raw, PARAMETER.get(name, 1.0))
    actual = apply(name, raw, columns_of(name, n_outputs))
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-300)


@given(arrays(np.float64, (3, 20), elements=st.floats(-1.7e308, 1.7e308)), st.integers(1, 3))
def test_any_scores_give_probabilities_that_add_up(raw, n_outputs):
    name = "sigmoid" if n_outputs == 1 else "softmax"
    actual = apply(name, raw[:n_outputs].copy(), max(n_outputs, 2))
    assert (actual >= 0.0).all()
    assert (actual <= 1.0).all()
    np.testing.assert_allclose(actual.sum(axis=1), 1.0, rtol=1e-15)


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("parameter", [1e-100, 1.0, 30.0])
def test_the_largest_scores_give_finite_numbers_without_a_warning(name, parameter):
    for raw in (HUGE[None], np.stack([HUGE, HUGE[::-1]])):
        n_columns = columns_of(name, len(raw))
        if n_columns is not None:
            assert np.isfinite(apply(name, raw, n_columns, parameter=parameter)).all()


def test_neither_probability_of_a_sigmoid_loses_its_digits():
    actual = apply("sigmoid", np.array([[-40.0, 40.0]]), 2, parameter=1.0)
    tiny = np.exp(-40.0)
    np.testing.assert_allclose(actual, [[1.0, tiny], [tiny, 1.0]], rtol=1e-14)


@pytest.mark.parametrize("n_rows", [257, *BLOCK_SIZES])
@pytest.mark.parametrize("name", LINKS)
def test_links_do_not_depend_on_threads(name, n_rows):
    raw = np.random.default_rng(0).normal(scale=5, size=(1 if name == "sigmoid" else 3, n_rows))
    expected = apply(name, raw, columns_of(name, len(raw)))
    for n_threads in THREADS:
        actual = apply(name, raw, columns_of(name, len(raw)), n_threads)
        assert np.array_equal(actual, expected)


def test_links_that_do_not_fit_are_rejected():
    raw = np.zeros((2, 5))
    with pytest.raises(ValueError, match="no link 'probit'"):
        apply("probit", raw, 2)
    with pytest.raises(ValueError, match="out"):
        apply("sigmoid", raw, 2)
    with pytest.raises(ValueError, match="out"):
        apply("softmax", raw, 3)
    with pytest.raises(ValueError, match="out"):
        _core.link("identity", 1.0, raw, np.zeros((4, 2)), 1)


# --- at the end of a traversal ---


@pytest.mark.parametrize("name", LINKS)
@given(generators, SIZES, st.integers(1, 3))
def test_a_prediction_is_the_link_of_the_raw_scores_bit_for_bit(name, rng, n_rows, n_outputs):
    n_outputs = 1 if name == "sigmoid" else n_outputs
    trace = make_trace(rng, 20, n_outputs)
    X = make_table(rng, n_rows, 6)
    parameter, n_columns = PARAMETER.get(name, 1.0), columns_of(name, n_outputs)
    actual = trace.states([20]).linked(X, name, parameter, n_columns)
    assert np.array_equal(actual, apply(name, trace.predict(X), n_columns))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_predictions_do_not_depend_on_threads_or_on_the_rows_beside_them(n_outputs):
    rng = np.random.default_rng(5)
    state = make_trace(rng, 100, n_outputs).states([100])
    X = make_table(rng, 9001, 6)
    link = ("sigmoid", 1.0, 2) if n_outputs == 1 else ("softmax", 1.0, 3)
    expected = state.linked(X, *link)
    for n_threads in THREADS:
        assert np.array_equal(state.linked(X, *link, n_threads), expected)
    for first, last in ((0, 1), (5, 12), (100, 109), (300, 600)):
        assert np.array_equal(state.linked(X[first:last], *link), expected[first:last])


def test_predictions_of_several_states_are_rejected_where_one_is_meant():
    states = make_trace(np.random.default_rng(0), 20).states([10, 20])
    with pytest.raises(ValueError, match="one state"):
        states.linked(np.zeros((3, 6)), "identity", 1.0, 1)


# --- links of losses ---


@pytest.mark.parametrize("name", LOSSES)
def test_every_built_in_loss_has_a_link_of_the_core(name):
    assert isinstance(get_loss(name, n_classes=3).link, Link)


def test_a_loss_that_overrides_the_link_with_a_method_keeps_its_own():
    class Halved(type(get_loss("squared"))):
        def link(self, raw):
            return raw / 2

    loss = Halved()
    assert isinstance(loss, Loss)
    assert not isinstance(loss.link, Link)
    assert loss.link(np.array([3.0])).tolist() == [1.5]


def test_a_softmax_is_taken_over_the_last_axis():
    link = get_loss("softmax", n_classes=2).link
    assert link(np.zeros(4)).tolist() == [0.25] * 4
    assert link(np.zeros((3, 2))).tolist() == [[0.5, 0.5]] * 3
    assert link(np.zeros((0, 2))).shape == (0, 2)
