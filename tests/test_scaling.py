"""Calibration of raw scores: against SciPy, never worse than none, and extreme classes."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from sglb.scaling import ProbabilityScaling


def log_loss(raw, y, weight=None):
    if raw.ndim == 1:
        losses = np.logaddexp(0.0, raw) - y * raw
    else:
        losses = logsumexp(raw, axis=1) - raw[np.arange(len(y)), y]
    return np.average(losses, weights=weight)


def two_classes(n, slope, bias, seed=0):
    noise = np.random.default_rng(seed)
    raw = noise.normal(0, 2, n)
    return raw, (noise.uniform(size=n) < expit(slope * raw + bias)).astype(int)


def several_classes(n, slope, seed=0):
    noise = np.random.default_rng(seed)
    raw = noise.normal(0, 2, (n, 4))
    return raw, (slope * raw + noise.gumbel(size=(n, 4))).argmax(axis=1)


@pytest.mark.parametrize(("slope", "bias"), [(0.4, 0.5), (1.0, 0.0), (2.5, -1.0)])
def test_the_true_slope_and_bias_are_found(slope, bias):
    """100,000 rows; standard errors are below .03, 4 of them."""
    raw, y = two_classes(100_000, slope, bias)
    fit = ProbabilityScaling.fit(raw, y)
    assert fit.slope == pytest.approx(slope, abs=0.12)
    assert fit.bias == pytest.approx(bias, abs=0.12)
    raw, y = several_classes(100_000, slope)
    fit = ProbabilityScaling.fit(raw, y)
    assert fit.slope == pytest.approx(slope, abs=0.12)
    assert fit.bias == 0.0


def test_the_fit_is_the_minimum_by_scipy():
    raw, y = two_classes(200, 0.3, 1.0)
    weight = np.random.default_rng(1).uniform(0, 2, 200)
    strength = min(1.0, np.average(raw**2, weights=weight))

    def objective(x):
        penalty = 0.5 * (strength * (x[0] - 1) ** 2 + x[1] ** 2)
        return weight.sum() * log_loss(x[0] * raw + x[1], y, weight) + penalty

    fit = ProbabilityScaling.fit(raw, y, weight)
    wanted = minimize(objective, [1.0, 0.0], tol=1e-12).x
    np.testing.assert_allclose([fit.slope, fit.bias], wanted, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [1, 2, 5, 50])
def test_a_fit_is_never_worse_than_no_change_on_its_rows(n, seed):
    noise = np.random.default_rng(seed)
    spread = noise.choice([1e-3, 1.0, 30.0])
    weight = noise.uniform(0.1, 3, n)
    for raw, y in (
        (spread * noise.normal(size=n), noise.integers(0, 2, n)),
        (spread * noise.normal(size=(n, 3)), noise.integers(0, 3, n)),
    ):
        fit = ProbabilityScaling.fit(raw, y, weight)
        assert log_loss(fit.apply(raw), y, weight) <= log_loss(raw, y, weight) + 1e-12
        assert fit.slope >= 0.0


def test_classes_that_are_separable_have_a_finite_slope():
    raw = np.linspace(-1.0, 1.0, 100)
    fit = ProbabilityScaling.fit(raw, raw > 0)
    assert 1.0 < fit.slope < 50.0
    several = np.eye(3)[np.arange(60) % 3]
    assert 1.0 < ProbabilityScaling.fit(several, np.arange(60) % 3).slope < 50.0


def test_raw_scores_that_are_worse_than_none_are_switched_off():
    raw, y = two_classes(1_000, 1.0, 0.7)
    fit = ProbabilityScaling.fit(-raw, y)
    assert fit.slope == 0.0
    assert expit(fit.bias) == pytest.approx(y.mean(), abs=1e-3)
    raw, y = several_classes(1_000, 1.0)
    assert ProbabilityScaling.fit(-raw, y) == ProbabilityScaling(0.0)


def test_a_single_class_and_equal_scores_move_the_bias_alone():
    fit = ProbabilityScaling.fit(np.zeros(50), np.ones(50))
    assert fit.slope == 1.0
    assert 1.0 < fit.bias < 10.0


def test_scores_of_a_small_unit_are_stretched():
    raw, y = two_classes(5_000, 1.0, 0.0)
    assert ProbabilityScaling.fit(1e-3 * raw, y).slope == pytest.approx(1_000, rel=0.1)


def test_huge_scores_do_not_overflow():
    raw = np.array([1e90, -1e90, 1e90, 0.0])
    fit = ProbabilityScaling.fit(raw, [1, 0, 0, 1])
    assert np.isfinite([fit.slope, fit.bias]).all()
    table = np.array([[1e5, 0.0], [0.0, 1e5], [1e5, 0.0]])
    assert 0.0 <= ProbabilityScaling.fit(table, [0, 1, 1]).slope < 1e-3


def test_weights_count_equal_rows_and_order_does_not_matter():
    raw, y = two_classes(300, 0.5, 0.3)
    count = np.random.default_rng(2).integers(0, 4, 300)
    fit = ProbabilityScaling.fit(raw, y, count)
    repeated = ProbabilityScaling.fit(np.repeat(raw, count), np.repeat(y, count))
    assert fit.slope == pytest.approx(repeated.slope, rel=1e-6)
    order = np.random.default_rng(3).permutation(300)
    assert ProbabilityScaling.fit(raw[order], y[order], count[order]) == fit


def test_applying_keeps_the_shape():
    scaling = ProbabilityScaling(2.0, 1.0)
    assert scaling.apply([1.0, -1.0]).tolist() == [3.0, -1.0]
    assert scaling.apply(np.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, np.nan], [0, 1]), r"raw must be numbers of at most 1e\+100; row 1 is nan"),
        (([0.0, 1.0], [0, 2]), "y must be a class 0..1; row 1 is 2"),
        (([[0.0, 1.0, 2.0]], [3]), "y must be a class 0..2; row 0 is 3"),
        (([0.0], [0, 1]), "raw has shape"),
        (([], []), "at least a row"),
        (([0.0], [0], [-1.0]), "weight must be finite and at least 0; row 0 is -1"),
        (([0.0], [0], [0.0]), "zero in every row"),
        (([0.0], [0], [1.0, 1.0]), r"weight must have shape \(1,\)"),
    ],
)
def test_invalid_rows_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        ProbabilityScaling.fit(*arguments)
