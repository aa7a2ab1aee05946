"""Fitted estimators with guaranteed coverage.

The coverage of intervals from n calibration rows is Beta distributed: mean .9 to .9 + 1 / (n + 1),
standard deviation sqrt(.09 / n) about; with m test rows it is sqrt(.09 / n + .09 / m). Bounds are 4
of these, so that a right method fails with a probability below 1e-4; seeds are fixed.
"""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sglb import SGLBClassifier, SGLBRegressor

N, M = 600, 4000
BOUND = 4.0 * np.sqrt(0.09 / N + 0.09 / M)
FAST = {"n_estimators": 60, "max_depth": 3, "random_state": 0}


def table(seed, n_rows):
    """Noise whose scale is small on the left and large on the right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n_rows, 3))
    scale = np.where(X[:, 0] < 0.0, 0.2, 2.0)
    return X, X[:, 1] + scale * rng.normal(size=n_rows)


TRAINING, CALIBRATION, TEST = table(0, 1500), table(1, N), table(2, M)


def coverage_of(intervals, y):
    return np.mean((intervals.bounds[:, 0] <= y) & (y <= intervals.bounds[:, 1]))


@pytest.fixture(scope="module")
def plain():
    return SGLBRegressor(**FAST).fit(*TRAINING)


@pytest.fixture(scope="module")
def with_scale():
    return SGLBRegressor(uncertainty=True, **FAST).fit(*TRAINING)


@pytest.fixture(scope="module")
def two_quantiles():
    return [
        SGLBRegressor(loss="quantile", quantile=level, **FAST).fit(*TRAINING)
        for level in (0.1, 0.9)
    ]


@pytest.fixture(scope="module")
def several_quantiles():
    levels = [0.05, 0.5, 0.95]
    return SGLBRegressor(loss="quantile", quantile=levels, **FAST).fit(*TRAINING)


def test_intervals_of_all_methods_cover_what_they_promise(plain, with_scale, two_quantiles):
    low, high = two_quantiles
    predictors = {
        "residuals": plain.conformalize(*CALIBRATION),
        "scaled residuals": with_scale.conformalize(*CALIBRATION),
        "quantiles": low.conformalize(*CALIBRATION, upper=high),
    }
    widths = {}
    for method, predictor in predictors.items():
        assert predictor.method == method
        intervals = predictor.predict_interval(TEST[0], 0.9)
        assert coverage_of(intervals, TEST[1]) == pytest.approx(0.9, abs=BOUND)
        assert intervals.guarantee == 0.9
        assert intervals.n_rows == predictor.n_rows == N
        widths[method] = intervals.bounds[:, 1] - intervals.bounds[:, 0]
        assert f"{intervals.mean_width:.4g}" in str(intervals)
        assert "at least 0.9, on average over rows" in str(intervals)
    left = TEST[0][:, 0] < 0.0
    assert np.ptp(widths["residuals"]) == pytest.approx(0.0, abs=1e-12)
    for method in ("scaled residuals", "quantiles"):
        assert widths[method][left].mean() < 0.5 * widths[method][~left].mean()
        assert widths[method].mean() < widths["residuals"].mean()


def test_coverage_holds_in_both_halves_where_the_scale_is_known(plain, with_scale):
    left = TEST[0][:, 0] < 0.0
    shares = []
    for model in (plain, with_scale):
        intervals = model.conformalize(*CALIBRATION).predict_interval(TEST[0])
        inside = (intervals.bounds[:, 0] <= TEST[1]) & (TEST[1] <= intervals.bounds[:, 1])
        shares.append((inside[left].mean(), inside[~left].mean()))
    assert shares[0][0] > 0.97  # one width is too much on the left
    assert shares[0][1] < 0.85
    assert shares[1] == pytest.approx((0.9, 0.9), abs=0.07)


def test_one_model_of_several_quantiles_has_intervals_between_the_outermost(several_quantiles):
    predictor = several_quantiles.conformalize(*CALIBRATION)
    assert predictor.method == "quantiles"
    bounds = {}
    for coverage in (0.9, 0.6):
        intervals = predictor.predict_interval(TEST[0], coverage)
        assert intervals.guarantee == coverage
        assert coverage_of(intervals, TEST[1]) == pytest.approx(coverage, abs=1.7 * BOUND)
        bounds[coverage] = intervals.bounds
    # One number is added on both sides of what the model predicts.
    predicted = several_quantiles.predict(TEST[0])[:, [0, 2]]
    margin = (bounds[0.9] - predicted) * [-1.0, 1.0]
    assert np.ptp(margin) == pytest.approx(0.0, abs=1e-9)
    assert (bounds[0.6][:, 0] >= bounds[0.9][:, 0]).all()


def test_the_mean_coverage_over_calibration_samples_is_at_least_that_asked_for(plain):
    # 40 samples of 60 rows: coverage has mean .9 to .9165 and standard deviation .006 over them,
    # so that 4 of these on either side are passed with a probability above 1 - 1e-4.
    shares = [
        coverage_of(plain.conformalize(*table(100 + k, 60)).predict_interval(TEST[0]), TEST[1])
        for k in range(40)
    ]
    assert 0.9 - 0.025 < np.mean(shares) < 0.9165 + 0.025


def test_counts_are_never_below_zero():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(1200, 2))
    y = rng.poisson(np.exp(2.0 * X[:, 0] - 1.0))
    model = SGLBRegressor(loss="poisson", uncertainty=True, **FAST).fit(X[:600], y[:600])
    intervals = model.conformalize(X[600:], y[600:]).predict_interval(X, 0.8)
    assert intervals.bounds.min() == 0.0
    assert coverage_of(intervals, y) >= 0.75


def test_sets_of_classes_cover_each_class():
    rng = np.random.default_rng(4)

    def rows(n_rows):
        label = rng.choice(3, p=[0.7, 0.2, 0.1], size=n_rows)
        return rng.normal(size=(n_rows, 2)) + 1.2 * label[:, None], np.array(["a", "b", "c"])[label]

    model = SGLBClassifier(**FAST).fit(*rows(1000))
    predictor = model.conformalize(*rows(2000))
    X, y = rows(M)
    sets = predictor.predict_set(X, 0.9)
    for index, name in enumerate("abc"):
        # 4 standard deviations of n calibration and m test rows of the class
        n, m = predictor.n_rows[index], np.sum(y == name)
        bound = 4.0 * np.sqrt(0.09 / n + 0.09 / m)
        assert sets.members[y == name, index].mean() == pytest.approx(0.9, abs=bound)
    assert 1.0 < sets.mean_size < 3.0
    assert "among the rows of each class" in str(sets)
    assert repr(predictor) == f"ConformalClassifier(n_rows={predictor.n_rows.tolist()})"


def test_what_cannot_be_calibrated_says_why(plain, two_quantiles, several_quantiles):
    X, y = CALIBRATION
    with pytest.raises(ValueError, match="X has 600 rows but y has 3"):
        plain.conformalize(X, y[:3])
    with pytest.raises(ValueError, match="no calibration rows"):
        plain.conformalize(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"higher level than that of this one; the levels are 0.9"):
        two_quantiles[1].conformalize(X, y, upper=two_quantiles[0])
    with pytest.raises(ValueError, match="the levels are None and None"):
        plain.conformalize(X, y, upper=plain)
    with pytest.raises(ValueError, match="a model of several needs no upper"):
        several_quantiles.conformalize(X, y, upper=two_quantiles[1])
    with pytest.raises(NotFittedError):
        SGLBRegressor().conformalize(X, y)
    with pytest.raises(ValueError, match=r"coverage must be in \(0, 1\), got 1.5"):
        plain.conformalize(X, y).predict_interval(X, 1.5)
    single = SGLBClassifier(n_estimators=5).fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="a single class"):
        single.conformalize(X, np.ones(len(X)))


def test_too_few_calibration_rows_are_infinite_intervals(plain):
    predictor = plain.conformalize(CALIBRATION[0][:5], CALIBRATION[1][:5])
    with pytest.warns(UserWarning, match="5 calibration rows are too few"):
        assert predictor.predict_interval(TEST[0], 0.9).mean_width == np.inf
