"""Conformal sets: by hand, against brute force, and their coverage in repeated experiments."""

import math

import numpy as np
import pytest
from scipy import stats

from sglb.conformal import (
    ConformalClasses,
    ConformalQuantiles,
    ConformalResiduals,
    CrossConformal,
    rows_needed,
)
from sglb.conformal.ranks import rank

ignore_few = pytest.mark.filterwarnings("ignore:.* calibration rows are too few:UserWarning")


@pytest.mark.parametrize(
    ("n_rows", "coverage", "k"),
    [(9, 0.9, 9), (10, 0.9, 10), (19, 0.9, 18), (19, 0.95, 19), (99, 0.29, 29), (999, 0.999, 999)],
)
def test_the_rank_is_the_ceiling_without_rounding_errors(n_rows, coverage, k):
    assert rank(n_rows, coverage) == k


@pytest.mark.parametrize(
    ("coverage", "n_rows"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99), (0.999, 999)]
)
def test_the_rows_needed_are_the_least_with_a_finite_interval(coverage, n_rows):
    assert rows_needed(coverage) == n_rows
    few = ConformalResiduals(np.zeros(n_rows - 1), np.ones(n_rows - 1))
    with pytest.warns(UserWarning, match=f"{n_rows - 1} calibration rows .* needs {n_rows}: "):
        assert few.interval([0.0], coverage=coverage).bounds.tolist() == [[-np.inf, np.inf]]
    enough = ConformalResiduals(np.zeros(n_rows), np.ones(n_rows))
    assert enough.interval([0.0], coverage=coverage).bounds.tolist() == [[-1.0, 1.0]]


def test_residual_intervals_by_hand():
    law = ConformalResiduals([1.0, -2.0, 3.0, -4.0], np.zeros(4), [1.0, 1.0, 2.0, 2.0])
    # Scores 1, 1.5, 2, 2; k = ceil(5 * .6) = 3.
    result = law.interval([10.0, 0.0], [1.0, 3.0], coverage=0.6)
    assert result.bounds.tolist() == [[8.0, 12.0], [-6.0, 6.0]]
    assert (result.coverage, result.guarantee, result.n_rows) == (0.6, 0.6, 4)
    assert result.mean_width == 8.0
    assert len(result) == 2


def test_quantile_intervals_by_hand():
    # Misses: 2 above, 1 below, -1 and -3 inside.
    law = ConformalQuantiles([6.0, -1.0, 1.0, 5.0], [0.0, 0.0, 0.0, 2.0], [4.0, 4.0, 4.0, 8.0])
    assert law.interval([0.0], [1.0], coverage=0.6).bounds.tolist() == [[-1.0, 2.0]]
    assert law.interval([0.0], [1.0], coverage=0.8).bounds.tolist() == [[-2.0, 3.0]]
    # Shrunk by 3 on either side: the second interval is empty and becomes its middle.
    shrunk = law.interval([0.0, 0.0], [10.0, 1.0], coverage=0.2)
    assert shrunk.bounds.tolist() == [[3.0, 7.0], [0.5, 0.5]]


def coverage_counts(make, n_rows, n_new, n_repetitions):
    """How many of n_new new rows are covered, in each of many repeated experiments."""
    noise = np.random.default_rng(0)
    return np.array([make(noise, n_rows, n_new) for _ in range(n_repetitions)])


def split_residuals(noise, n_rows, n_new):
    x = noise.normal(size=n_rows + n_new)
    y = x**2 + (1.0 + np.abs(x)) * noise.standard_t(3.0, len(x))
    mean, scale = x, 1.0 + 0.5 * np.abs(x)  # a poor model
    law = ConformalResiduals(y[:n_rows], mean[:n_rows], scale[:n_rows])
    low, high = law.interval(mean[n_rows:], scale[n_rows:], coverage=0.9).bounds.T
    return int(((low <= y[n_rows:]) & (y[n_rows:] <= high)).sum())


def split_quantiles(noise, n_rows, n_new):
    x = noise.normal(size=n_rows + n_new)
    y = x + noise.gamma(1.0, size=len(x))
    law = ConformalQuantiles(y[:n_rows], x[:n_rows] - 1.0, x[:n_rows] + 1.0)
    low, high = law.interval(x[n_rows:] - 1.0, x[n_rows:] + 1.0, coverage=0.9).bounds.T
    return int(((low <= y[n_rows:]) & (y[n_rows:] <= high)).sum())


@pytest.mark.parametrize("make", [split_residuals, split_quantiles])
@pytest.mark.parametrize("n_rows", [19, 25, 100])
def test_coverage_has_its_exact_law(make, n_rows):
    """Covered rows are beta-binomial(k, n + 1 - k); 2,000 experiments.

    The chi-square test of the law rejects by chance once in 10^5; the mean is within 5 standard
    errors, 6e-7.
    """
    n_new, n_repetitions, k = 20, 2_000, rank(n_rows, 0.9)
    counts = coverage_counts(make, n_rows, n_new, n_repetitions)
    law = stats.betabinom(n_new, k, n_rows + 1 - k)
    assert abs(counts.mean() - law.mean()) <= 5.0 * law.std() / np.sqrt(n_repetitions)
    assert law.mean() / n_new >= 0.9
    values = np.arange(12, n_new + 1)
    observed = np.append((counts < 12).sum(), [(counts == value).sum() for value in values])
    expected = n_repetitions * np.append(law.cdf(11), law.pmf(values))
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-5


def test_sets_of_classes_by_hand():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    second = np.array([0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.2])
    law = ConformalClasses(y, second)
    # k = ceil(5 * .6) = 3: class 0 needs p >= .7, class 1 p >= .7.
    result = law.sets([0.2, 0.5, 0.75], coverage=0.6)
    assert result.members.tolist() == [[True, False], [False, False], [False, True]]
    assert result.mean_size == pytest.approx(2 / 3)
    # k = 4: p >= .4 and p >= .2.
    assert law.sets([0.5, 0.1], coverage=0.8).members.tolist() == [[True, True], [True, False]]
    assert result.n_rows.tolist() == [4, 4]
    table = np.column_stack([1 - second, second])
    members = ConformalClasses(y, table).sets(table, 0.6).members
    assert (members == law.sets(second, 0.6).members).all()


def test_classes_are_covered_each_by_itself():
    """A rare class and a poor model: 300 experiments, each class within 5 standard errors."""
    noise = np.random.default_rng(3)
    covered = [[], [], []]
    for _ in range(300):
        y = noise.choice(3, size=600, p=[0.8, 0.15, 0.05])
        raw = noise.normal(size=(600, 3)) + 0.7 * np.eye(3)[y]
        probability = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
        law = ConformalClasses(y[:400], probability[:400])
        members = law.sets(probability[400:], coverage=0.8).members
        for index in range(3):
            mine = y[400:] == index
            covered[index].extend(members[mine, index])
    for index, n_rows in enumerate((320, 60, 20)):
        # Repetitions share calibration rows: the variance between them is that of the beta law.
        error = math.sqrt(0.16 / n_rows / 300 + 0.16 / len(covered[index]))
        assert 0.8 - 5 * error <= np.mean(covered[index]) <= 0.8 + 1 / n_rows + 0.01 + 5 * error


def test_a_class_with_too_few_rows_is_in_every_set():
    y, probability = np.array([0] * 20 + [1] * 3), np.linspace(0.0, 1.0, 23)
    law = ConformalClasses(y, probability)
    with pytest.warns(UserWarning, match="3 calibration rows .* needs 9: class 1 is in every set"):
        assert law.sets([0.0, 0.5]).members[:, 1].all()
    nothing = ConformalClasses([], np.zeros((0, 3)))
    with pytest.warns(UserWarning, match="classes 0, 1, 2 are in every set"):
        assert nothing.sets(np.full((1, 3), 1 / 3)).members.all()


def brute_force(y, mean, fold, new_mean, coverage, scale=1.0, new_scale=None):
    n = len(y)
    new_scale = np.ones_like(new_mean) if new_scale is None else new_scale
    spread = np.abs(y - mean)[:, None] / np.reshape(scale, (-1, 1)) * new_scale[fold]
    k = rank(n, coverage)
    upper = np.sort(new_mean[fold] + spread, axis=0)[k - 1]
    lower = np.sort(new_mean[fold] - spread, axis=0)[n - k]
    return np.column_stack([lower, upper])


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_cross_conformal_is_the_definition(coverage):
    noise = np.random.default_rng(4)
    y, mean, scale = noise.normal(size=83), noise.normal(size=83), noise.uniform(0.5, 2.0, 83)
    fold = np.arange(83) % 5
    new_mean, new_scale = noise.normal(0, 3, (5, 40)), noise.uniform(0.5, 2.0, (5, 40))
    result = CrossConformal(y, mean, fold).interval(new_mean, coverage=coverage)
    wanted = brute_force(y, mean, fold, new_mean, coverage)
    np.testing.assert_allclose(result.bounds, wanted, rtol=1e-12)
    scaled = CrossConformal(y, mean, fold, scale).interval(new_mean, new_scale, coverage)
    wanted = brute_force(y, mean, fold, new_mean, coverage, scale, new_scale)
    np.testing.assert_allclose(scaled.bounds, wanted, rtol=1e-12)


def test_residuals_of_zero_give_intervals_of_width_zero():
    law = CrossConformal(np.ones(20), np.ones(20), np.arange(20) % 2)
    assert law.interval(np.zeros((2, 1))).bounds.tolist() == [[0.0, 0.0]]
    huge = CrossConformal(np.full(20, 1e300), np.zeros(20), np.arange(20) % 2)
    np.testing.assert_allclose(huge.interval(np.zeros((2, 1))).bounds, [[-1e300, 1e300]])


def test_the_guarantee_of_cross_conformal_is_the_theorem():
    fold = np.arange(100)
    jackknife = CrossConformal(np.zeros(100), np.ones(100), fold)
    assert jackknife.guarantee(0.9) == pytest.approx(0.8)
    five = CrossConformal(np.zeros(1_000), np.ones(1_000), np.arange(1_000) % 5)
    assert five.guarantee(0.9) == pytest.approx(0.8 - 2 * 0.8 / 201)
    assert five.interval(np.zeros((5, 2))).guarantee == five.guarantee(0.9)
    assert five.guarantee(0.4) == 0.0


def test_a_guarantee_for_equal_folds_is_not_claimed_of_others():
    """Of few rows the second bound of the theorem is the better one, and needs equal folds."""
    equal = CrossConformal(np.zeros(20), np.ones(20), np.arange(20) % 5)
    assert equal.guarantee(0.9) == pytest.approx(0.8 - (1 - 5 / 20) / 6)
    unequal = CrossConformal(np.zeros(22), np.ones(22), np.arange(22) % 5)
    assert unequal.guarantee(0.9) == pytest.approx(0.8 - 2 * (1 - 1 / 5) / (22 / 5 + 1))


def test_cross_conformal_covers_with_least_squares():
    """400 experiments of 60 rows, 10 new ones: at least .9 - 5 standard errors (stable models)."""
    noise = np.random.default_rng(5)
    covered = []
    for _ in range(400):
        X = noise.normal(size=(70, 5))
        y = X @ np.ones(5) + noise.standard_t(4.0, 70)
        fold, oof, new = np.arange(60) % 5, np.empty(60), np.empty((5, 10))
        for k in range(5):
            train = np.flatnonzero(fold != k)
            weight = np.linalg.lstsq(X[train], y[train], rcond=None)[0]
            oof[fold == k], new[k] = X[:60][fold == k] @ weight, X[60:] @ weight
        low, high = CrossConformal(y[:60], oof, fold).interval(new).bounds.T
        covered.append(((low <= y[60:]) & (y[60:] <= high)).mean())
    error = np.std(covered) / np.sqrt(len(covered))
    assert 0.9 - 5 * error <= np.mean(covered) <= 0.96


def test_cross_conformal_with_too_few_rows_is_infinite():
    law = CrossConformal(np.zeros(6), np.ones(6), np.arange(6) % 2)
    with pytest.warns(UserWarning, match="6 calibration rows .* needs 9: intervals are infinite"):
        result = law.interval(np.zeros((2, 3)))
    assert np.isinf(result.bounds).all()
    assert result.mean_width == np.inf


def test_no_new_rows_are_no_intervals():
    result = ConformalResiduals(np.zeros(3), np.ones(3)).interval([])
    assert result.bounds.shape == (0, 2)
    assert math.isnan(result.mean_width)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ConformalResiduals([1.0, np.nan], [0.0, 0.0]), "y must be finite; row 1 is nan"),
        (lambda: ConformalResiduals([1.0], [0.0, 0.0]), r"mean must have shape \(1,\), not \(2,\)"),
        (lambda: ConformalResiduals([1.0], [0.0], [0.0]), "scale must be positive; row 0"),
        (lambda: ConformalResiduals([1.0], [0.0]).interval([0.0], coverage=1.0), "coverage"),
        (lambda: ConformalQuantiles([1.0], [2.0], [1.0]), "high must be at least low; row 0"),
        (lambda: rows_needed(0.0), "coverage must be in"),
        (lambda: ConformalClasses([2], [[0.5, 0.5]]), r"y must be a class index 0..1; row 0 is 2"),
        (lambda: ConformalClasses([0], [[0.5, 0.6]]), "probability must be of sum 1; row 0"),
        (lambda: ConformalClasses([0], [1.5]), r"probability must be in \[0, 1\]; row 0"),
        (lambda: ConformalClasses([0, 1], [0.5]), r"y must have shape \(1,\)"),
        (lambda: ConformalClasses([0], [0.5]).sets([[0.2, 0.3, 0.5]]), "has 3 classes"),
        (
            lambda: CrossConformal([1.0, 1.0], [0.0, 0.0], [0, 2]),
            r"numbers of rows are \[1, 0, 1\]",
        ),
        (lambda: CrossConformal([1.0], [0.0], [0]), "at least two folds"),
        (lambda: CrossConformal([1.0, 1.0], [0.0, 0.0], [0, 0.5]), "fold must be .* row 1 is 0.5"),
        (
            lambda: CrossConformal([1.0, 1.0], [0.0, 0.0], [0, 1]).interval([[0.0]]),
            r"mean must have shape \(2, n_rows\)",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
