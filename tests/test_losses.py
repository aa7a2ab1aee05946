"""The formulas and kernels of all losses: a new loss joins by a line in `loss_cases.CASES`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_losses
from loss_cases import (
    CASES,
    LOG_LINK,
    every_loss,
    fill,
    make_raw,
    make_targets,
    one_output,
    output_major,
    targets_for,
)
from sglb import _core
from sglb.losses import LOSSES, Huber, Logistic, Softmax

ROWS = [0, 1, 31, 33, 8191, 8193]


def numbers_of(loss):
    """The parameters in the formula of a loss."""
    return {name: value for name, value in loss.parameters().items() if name != "absolute"}


def slope(function, raw, step=1e-3):
    """Central differences of sixth order in each output of raw."""
    result = np.empty_like(raw)
    for k in range(1 if raw.ndim == 1 else raw.shape[1]):
        e = np.ones_like(raw) if raw.ndim == 1 else np.eye(raw.shape[1])[k] * np.ones_like(raw)
        values = {
            j: np.asarray(function(raw + j * step * e)).reshape(len(raw), -1)
            for j in (-3, -2, -1, 1, 2, 3)
        }
        derivative = sum(
            c * (values[j] - values[-j]) for j, c in ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))
        )
        # A function of several outputs (the gradient): its own output is the diagonal.
        column = derivative[:, k if derivative.shape[1] > 1 else 0] / step
        result[(...,) if raw.ndim == 1 else (..., k)] = column
    return result


def grid_for(loss, n=200_001):
    """Raw scores around targets, fine enough to hit every extreme to four digits."""
    z = np.linspace(-20, 20, n)
    targets = (0.0, 1.0) if loss.task == "binary" else targets_for(loss, 0.0, 2.0)
    return [(np.full(n, y), z) for y in targets]


def test_the_cases_cover_every_registered_loss_of_rows():
    of_rows = {name for name, kind in LOSSES.items() if not kind.by_group}
    assert {loss.name for loss in CASES} == of_rows
    assert all(LOSSES[loss.name] is type(loss) for loss in CASES)


@every_loss
def test_the_gradient_is_the_derivative_of_the_loss(loss):
    rng = np.random.default_rng(1)
    y, raw = make_targets(loss, 500, rng), make_raw(loss, 500, rng)
    expected = slope(lambda z: loss.loss(y, z), raw)
    smooth = away_from_bends(loss, y, raw)
    np.testing.assert_allclose(
        loss.gradient(y, raw)[smooth], expected[smooth], rtol=1e-7, atol=1e-9
    )


@every_loss
def test_the_hessian_is_the_derivative_of_the_gradient(loss):
    rng = np.random.default_rng(2)
    y, raw = make_targets(loss, 500, rng), make_raw(loss, 500, rng)
    expected = slope(lambda z: loss.gradient(y, z), raw)
    smooth = away_from_bends(loss, y, raw)
    np.testing.assert_allclose(loss.hessian(y, raw)[smooth], expected[smooth], rtol=1e-6, atol=1e-7)


def away_from_bends(loss, y, raw):
    """Finite differences do not see Huber's third derivative, which is infinite at delta."""
    if loss.name != "huber":
        return np.ones(len(y), dtype=bool)
    return np.abs(np.abs(raw - y) - loss.delta) > 0.01


@one_output
def test_the_loss_is_least_where_the_gradient_changes_its_sign(loss):
    for y, z in grid_for(loss):
        value, gradient = loss.loss(y, z), loss.gradient(y, z)
        assert value.min() >= 0.0
        best = int(np.argmin(value))
        if 0 < best < len(z) - 1:
            assert gradient[best - 1] <= 0.0 <= gradient[best + 1]
        else:  # the minimum is at infinity
            assert gradient[best] * z[best] <= 0.0


@every_loss
def test_a_loss_that_calls_itself_convex_or_offers_newton_steps_has_no_negative_curvature(loss):
    rng = np.random.default_rng(3)
    y, raw = make_targets(loss, 20_000, rng), make_raw(loss, 20_000, rng, 5.0)
    never_negative = bool((loss.hessian(y, raw) >= 0.0).all())
    assert loss.convex == loss.has_hessian == never_negative


@one_output
def test_stated_lipschitz_and_smoothness_constants_hold_and_are_attained(loss):
    gradient = np.array([np.abs(loss.gradient(y, z)).max() for y, z in grid_for(loss)]).max()
    hessian = np.array([np.abs(loss.hessian(y, z)).max() for y, z in grid_for(loss)]).max()
    for stated, seen in ((loss.lipschitz, gradient), (loss.smoothness, hessian)):
        if stated is not None:
            assert 0.99 * stated <= seen <= stated * (1 + 1e-12)


def test_softmax_attains_its_constants_in_the_corners():
    y, raw = np.zeros(1), np.array([[-40.0, 40.0, -40.0]])
    loss = Softmax(3)
    assert np.linalg.norm(loss.gradient(y, raw)) == pytest.approx(loss.lipschitz)
    p = loss.link(np.array([0.0, 0.0, -40.0]))
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() == pytest.approx(loss.smoothness)


@every_loss
def test_unbounded_gradients_have_no_lipschitz_constant(loss):
    y = make_targets(loss, 10, np.random.default_rng(4))
    raw = np.full(10 if loss.n_outputs == 1 else (10, loss.n_outputs), 1e4)
    steepest = max(np.abs(loss.gradient(y, side * raw)).max() for side in (-1, 1))
    assert (loss.lipschitz is None) == (steepest > 1e3)


@every_loss
def test_extreme_scores_give_finite_numbers_without_a_warning(loss):
    reach = 1e4 if loss.name in LOG_LINK else 1e150 if loss.name == "squared" else 1e300
    scores = np.array([-reach, -1e4, -750.0, -30.0, 0.0, 1e-300, 30.0, 750.0, 1e4, reach])
    for target in targets_for(loss, 0.0, 1.0):
        for other in scores[: 1 if loss.n_outputs == 1 else None]:
            raw = scores.copy()
            if loss.n_outputs > 1:
                raw = np.tile(scores[:, None], (1, loss.n_outputs))
                raw[:, 0] = other
            y = np.full(len(scores), target)
            for method in (loss.loss, loss.gradient, loss.hessian):
                assert np.isfinite(method(y, raw)).all()
            assert np.isfinite(loss.link(raw)).all()


@one_output
def test_a_bounded_gradient_keeps_its_limit_up_to_the_largest_scores(loss):
    if loss.lipschitz is not None:
        for y in np.zeros(2), np.ones(2):
            near, far = np.array([[-1e9, 1e9], [-1e300, 1e300]])
            limit = loss.gradient(y, near)
            np.testing.assert_allclose(loss.gradient(y, far), limit, atol=1e-6)


@every_loss
def test_a_score_that_is_not_finite_makes_the_largest_gradient_infinite(loss):
    for bad in (np.nan, np.inf, -np.inf):
        for row in (0, 32):
            rng = np.random.default_rng(5)
            y, raw = make_targets(loss, 33, rng), make_raw(loss, 33, rng)
            raw[row, ...] = raw[row, ...] if loss.n_outputs > 1 else bad
            if loss.n_outputs > 1:
                raw[row, -1] = bad
            assert fill(loss, y, raw)[0] == np.inf
            assert fill(loss, y, raw, with_hessian=False)[0] == np.inf


@every_loss
@pytest.mark.parametrize("n", ROWS)
def test_the_largest_gradient_is_returned(loss, n):
    rng = np.random.default_rng(n)
    largest, gradient, _ = fill(loss, make_targets(loss, n, rng), make_raw(loss, n, rng), 2)
    assert largest == np.abs(gradient).max(initial=0.0)


@settings(max_examples=150, deadline=None)
@given(
    loss=st.sampled_from(CASES),
    n=st.sampled_from(ROWS) | st.integers(0, 600),
    n_threads=st.integers(1, 4),
    scale=st.sampled_from([0.0, 0.1, 1.0, 10.0, 100.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_kernel_equals_its_numpy_twin(loss, n, n_threads, scale, seed):
    rng = np.random.default_rng(seed)
    y, raw = make_targets(loss, n, rng), make_raw(loss, n, rng, scale)
    twin = getattr(reference_losses, loss.name)(y, raw, **numbers_of(loss))
    _, *kernel = fill(loss, y, raw, n_threads)
    for got, wanted in zip(kernel, twin, strict=True):
        tolerance = 1e-12 * max(1.0, np.abs(wanted).max(initial=0.0) if loss.lipschitz else 1.0)
        np.testing.assert_allclose(got, output_major(wanted), rtol=1e-12, atol=tolerance)


@every_loss
@pytest.mark.parametrize("n", [8191, 50_001])
def test_threads_and_the_wish_for_a_hessian_do_not_change_a_bit(loss, n):
    rng = np.random.default_rng(6)
    y, raw = make_targets(loss, n, rng), make_raw(loss, n, rng)
    largest, gradient, hessian = fill(loss, y, raw, 1)
    assert fill(loss, y, raw, 1, with_hessian=False)[1].tobytes() == gradient.tobytes()
    for n_threads in (2, 3, 8):
        again = fill(loss, y, raw, n_threads)
        assert again[0] == largest
        assert again[1].tobytes() == gradient.tobytes()
        assert again[2].tobytes() == hessian.tobytes()


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0, 300.0])
@pytest.mark.parametrize("n", [0, 1, 37, 511, 513, 5000])
def test_cross_entropy_is_minus_the_log_probability_of_the_class(n, scale):
    rng = np.random.default_rng(n)
    for loss in (Logistic(), Softmax(2), Softmax(7)):
        y, raw = make_targets(loss, n, rng), make_raw(loss, n, rng, scale)
        scores = raw if raw.ndim == 2 else np.stack([np.zeros(n), raw], axis=1)
        ours = scores[np.arange(n), y.astype(int)]
        wanted = np.logaddexp.reduce(scores - ours[:, None], axis=1)
        np.testing.assert_allclose(loss.loss(y, raw), wanted, rtol=1e-14, atol=3e-15)


def test_huber_is_a_parabola_up_to_its_width_and_including_it():
    z = np.array([-0.5, -0.25, 0.0, 0.25, 0.5])
    _, gradient, hessian = fill(Huber(0.25), np.zeros(5), z)
    assert gradient.tolist() == [[-0.25, -0.25, 0.0, 0.25, 0.25]]
    assert hessian.tolist() == [[0.0, 1.0, 1.0, 1.0, 0.0]]


def test_a_small_logistic_loss_keeps_its_digits():
    z = np.geomspace(0.1, 700.0, 2001)
    wanted = np.log1p(np.exp(-z))
    np.testing.assert_allclose(Logistic().loss(np.ones_like(z), z), wanted, rtol=1e-15)


@pytest.mark.parametrize("loss", [Logistic(), Softmax(4)], ids=repr)
def test_a_score_that_is_no_number_makes_the_cross_entropy_none(loss):
    y, raw = np.zeros(9), np.zeros((9, loss.n_outputs)).squeeze()
    raw[3] = np.nan
    assert np.isnan(loss.loss(y, raw)).tolist() == [False] * 3 + [True] + [False] * 5


@every_loss
def test_a_row_has_the_same_bits_wherever_it_stands(loss):
    """The body of a vector loop and its tail must agree."""
    rng = np.random.default_rng(7)
    y, raw = make_targets(loss, 37, rng), make_raw(loss, 37, rng)
    whole = fill(loss, y, raw)[1]
    for first in range(1, 9):
        part = fill(loss, y[first:], raw[first:])[1]
        assert part.tobytes() == np.ascontiguousarray(whole[:, first:]).tobytes()


@every_loss
def test_the_kernel_rejects_what_it_does_not_know(loss):
    y, raw = np.zeros(3), np.zeros((2, 3))
    if loss.n_outputs == 1:
        with pytest.raises(ValueError, match="one output"):
            loss.fill(y, raw, np.empty_like(raw), None, 1)
    with pytest.raises(ValueError, match="'unheard'"):
        _core.gradient("unheard", (0.0, 0.0), y, raw, np.empty_like(raw), None, 1)
