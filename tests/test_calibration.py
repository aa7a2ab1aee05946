"""Scores of probabilities, intervals and uncertainties: by hand, by simulation, at the edges."""

import math

import numpy as np
import pytest

from sglb.calibration import (
    coverage_by_scale,
    expected_calibration_error,
    out_of_domain_auc,
    prediction_rejection_ratio,
    rejection_curve,
    reliability,
)


def test_a_reliability_table_by_hand():
    table = reliability([0.1, 0.3, 0.6, 0.8], [0, 1, 0, 1], n_bins=2)
    np.testing.assert_allclose(table.predicted, [0.2, 0.7])
    np.testing.assert_allclose(table.observed, [0.5, 0.5])
    assert table.n_rows.tolist() == [2, 2]
    np.testing.assert_allclose(table.standard_error, [np.sqrt(0.3) / 2, np.sqrt(0.4) / 2])
    error = expected_calibration_error([0.1, 0.3, 0.6, 0.8], [0, 1, 0, 1], n_bins=2)
    assert error == pytest.approx(0.25)


def test_several_classes_are_judged_by_the_most_probable():
    probability = [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]
    table = reliability(probability, [0, 1, 0], n_bins=1)
    assert table.predicted[0] == pytest.approx((0.5 + 0.8 + 0.6) / 3)
    assert table.observed[0] == pytest.approx(2 / 3)


def test_right_probabilities_are_within_their_standard_errors():
    """20 bins of 1,000 rows: no bin is off by 5 standard errors, 1e-5 by chance."""
    noise = np.random.default_rng(0)
    p = noise.uniform(size=20_000)
    table = reliability(p, noise.uniform(size=20_000) < p, n_bins=20)
    assert (table.n_rows == 1_000).all()
    assert (np.abs(table.observed - table.predicted) < 5 * table.standard_error).all()
    chance = 0.8 * np.average(table.standard_error)
    error = expected_calibration_error(p, noise.uniform(size=20_000) < p, n_bins=20)
    assert 0.5 * chance < error < 1.7 * chance


def test_equal_predictions_share_a_bin():
    p = np.array([0.2] * 50 + [0.7] * 30 + [0.9] * 20)
    y = np.arange(100) % 2
    table = reliability(p, y, n_bins=10)
    np.testing.assert_allclose(table.predicted, [0.2, 0.7, 0.9])
    assert table.n_rows.tolist() == [50, 30, 20]
    assert len(reliability(np.full(9, 0.5), np.arange(9) % 2).predicted) == 1


def test_weights_count_equal_rows():
    noise = np.random.default_rng(1)
    p, count = noise.uniform(size=200).round(2), noise.integers(0, 4, 200)
    y = noise.uniform(size=200) < p**2
    weighted = reliability(p, y, 5, count)
    repeated = reliability(np.repeat(p, count), np.repeat(y, count), 5)
    np.testing.assert_allclose(weighted.predicted, repeated.predicted)
    np.testing.assert_allclose(weighted.observed, repeated.observed)
    wanted = expected_calibration_error(np.repeat(p, count), np.repeat(y, count), 5)
    assert expected_calibration_error(p, y, 5, count) == pytest.approx(wanted)


def test_no_rows_have_no_calibration_error():
    assert math.isnan(expected_calibration_error([], []))


def test_coverage_by_scale_shows_what_the_margin_hides():
    """Intervals of one width for noise of two sizes: 90 % together, neither half apart."""
    noise = np.random.default_rng(2)
    scale = np.repeat([1.0, 3.0], 5_000)
    y = scale * noise.normal(size=10_000)
    half = np.quantile(np.abs(y), 0.9)
    table = coverage_by_scale(y, np.tile([-half, half], (10_000, 1)), scale, n_bins=2)
    assert table.scale.tolist() == [1.0, 3.0]
    assert table.coverage.mean() == pytest.approx(0.9, abs=1e-3)
    assert table.coverage[0] > 0.99
    assert table.coverage[1] < 0.82
    np.testing.assert_allclose(table.width, 2 * half)
    wanted = np.sqrt(table.coverage * (1 - table.coverage) / 5_000)
    np.testing.assert_allclose(table.standard_error, wanted)


def test_infinite_intervals_cover_everything():
    table = coverage_by_scale([1.0, 2.0], [[-np.inf, np.inf]] * 2, [1.0, 2.0], n_bins=1)
    assert (table.coverage[0], table.width[0]) == (1.0, np.inf)


def test_a_rejection_curve_by_hand():
    curve = rejection_curve([3.0, 0.0, 1.0], [0.9, 0.1, 0.5])
    np.testing.assert_allclose(curve.share, [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(curve.error, [4 / 3, 1 / 3, 0.0, 0.0])
    assert curve.area == pytest.approx((0.5 * 4 / 3 + 1 / 3) / 3)


def test_the_ratio_is_one_for_the_oracle_zero_for_chance_and_minus_one_for_its_reverse():
    noise = np.random.default_rng(3)
    error = noise.exponential(size=20_000)
    assert prediction_rejection_ratio(error, error) == pytest.approx(1.0)
    assert prediction_rejection_ratio(error, error**3) == pytest.approx(1.0)
    assert prediction_rejection_ratio(error, -error) == pytest.approx(-1.0)
    # The standard error is about 1 / sqrt(n).
    assert abs(prediction_rejection_ratio(error, noise.normal(size=20_000))) < 0.04
    assert prediction_rejection_ratio(error, np.zeros(20_000)) == pytest.approx(0.0, abs=1e-12)


def test_ties_count_as_the_mean_over_their_orders():
    error, uncertainty = np.array([1.0, 0.0, 4.0, 2.0]), np.array([1.0, 1.0, 2.0, 2.0])
    orders = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]]
    areas = [rejection_curve(error[o], np.arange(4)).area for o in orders]
    assert rejection_curve(error, uncertainty).area == pytest.approx(np.mean(areas))


def test_equal_errors_have_no_ratio():
    assert math.isnan(prediction_rejection_ratio(np.full(7, 0.1), np.arange(7)))
    assert math.isnan(prediction_rejection_ratio(np.zeros(7), np.arange(7)))


def test_foreign_rows_that_are_always_more_uncertain_have_auc_one():
    assert out_of_domain_auc([1.0, 2.0], [3.0, 4.0]) == 1.0
    assert out_of_domain_auc([1.0, 2.0], [1.0, 2.0]) == 0.5
    assert out_of_domain_auc([1.0, 2.0], [1.5]) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reliability([0.5, 1.2], [0, 1]), r"probability must be in \[0, 1\]; row 1 is 1.2"),
        (lambda: reliability([0.5, np.nan], [0, 1]), r"row 1 is nan"),
        (lambda: reliability([0.5, 0.5], [0, 2]), r"y must be a class index 0..1; row 1 is 2"),
        (lambda: reliability([0.5], [0, 1]), r"probability has shape \(1,\) and y \(2,\)"),
        (lambda: reliability([0.5], [0], n_bins=0), "n_bins must be at least 1"),
        (lambda: reliability([0.5], [0], weight=[-1.0]), "weight must be finite and at least 0"),
        (lambda: reliability([0.5], [0], weight=[0.0]), "zero in every row"),
        (lambda: coverage_by_scale([0.0], [[0.0, 1.0, 2.0]], [1.0]), "expected"),
        (lambda: rejection_curve([1.0], [1.0, 2.0]), "error has 1 rows, uncertainty 2"),
        (lambda: rejection_curve([1.0, -1.0], [1.0, 2.0]), "error must be at least 0; row 1"),
        (lambda: rejection_curve([], []), "at least a row"),
        (lambda: rejection_curve([1.0], [np.inf]), "uncertainty must be finite; row 0 is inf"),
        (lambda: out_of_domain_auc([], [1.0]), "both kinds"),
        (lambda: out_of_domain_auc([[1.0]], [1.0]), "inside must have shape"),
    ],
)
def test_invalid_arguments_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
