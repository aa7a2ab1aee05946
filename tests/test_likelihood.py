"""The law of residuals: maximum likelihood against SciPy, few rows, rows that are strange."""

import numpy as np
import pytest
from scipy import stats

from sglb.distributions import StudentT
from sglb.likelihood import fit_student


def quantiles_of(law, n):
    """A sample of n rows without noise."""
    return law.ppf((np.arange(n) + 0.5) / n)


@pytest.mark.parametrize("df", [2.6, 4.0, 10.0, 25.0])
def test_the_student_fit_is_that_of_scipy(df):
    residual = 2.0 * quantiles_of(stats.t(df), 20_000)
    fit = fit_student(residual)
    theirs, _, scale = stats.t.fit(residual, floc=0.0)
    assert 1 / fit.df == pytest.approx(1 / theirs, abs=0.006)  # half a step of the grid
    assert fit.factor == pytest.approx(scale, rel=0.01)
    law = StudentT(0.0, fit.factor, fit.df)
    assert fit.log_likelihood == pytest.approx(law.logpdf(residual[:, None]).mean(), abs=1e-12)
    best = stats.t(theirs, 0.0, scale).logpdf(residual).mean()
    assert best - 2e-5 <= fit.log_likelihood <= best + 1e-9


def test_normal_residuals_have_the_normal_law():
    residual = quantiles_of(stats.norm, 100_000)
    scale = np.linspace(0.5, 2.0, len(residual))
    fit = fit_student(scale * residual, scale)
    assert (fit.factor, fit.df) == (pytest.approx(np.sqrt(np.mean(residual**2))), np.inf)
    wanted = stats.norm(scale=fit.factor).logpdf(residual).mean()
    assert fit.log_likelihood == pytest.approx(wanted)
    assert fit_student(quantiles_of(stats.uniform(-1, 2), 10_000)).df == np.inf


def test_the_heaviest_tails_still_have_a_variance():
    fit = fit_student(quantiles_of(stats.cauchy, 5_000))
    assert fit.df == 2.5
    assert np.isfinite(StudentT(0.0, fit.factor, fit.df).variance[0])


def test_scales_divide_and_weights_count_rows():
    noise = np.random.default_rng(0)
    residual, scale = noise.standard_t(4.0, 400), noise.uniform(0.5, 2.0, 400)
    count = noise.integers(0, 4, 400)
    fit = fit_student(residual, scale, count)
    repeated = fit_student(np.repeat(residual / scale, count))
    assert fit.df == repeated.df
    assert fit.factor == pytest.approx(repeated.factor, rel=1e-8)


def test_the_fit_has_the_unit_of_the_residuals_at_any_size():
    residual = np.random.default_rng(1).standard_t(3.0, 300)
    fit = fit_student(residual)
    for unit in (2.0**-300, 2.0**300):
        other = fit_student(unit * residual)
        assert other.df == fit.df
        assert other.factor == pytest.approx(unit * fit.factor, rel=1e-8)


def test_the_fit_does_not_depend_on_the_order_of_rows():
    noise = np.random.default_rng(2)
    residual, order = noise.standard_t(4.0, 277), noise.permutation(277)
    assert fit_student(residual) == fit_student(residual[order])


def test_few_rows_lose_little_against_the_true_law():
    """Mean loss of log score over 40 fits of 20 rows: below .06 nats; the normal loses .16."""
    truth = stats.t(4.0)
    held_out = quantiles_of(truth, 4_000)
    losses = []
    for seed in range(40):
        fit = fit_student(truth.rvs(20, random_state=seed))
        law = StudentT(0.0, fit.factor, fit.df)
        losses.append(truth.logpdf(held_out).mean() - law.logpdf(held_out[:, None]).mean())
    assert np.mean(losses) < 0.06


@pytest.mark.parametrize("n_zeros", [1, 50, 99])
def test_residuals_of_zero_leave_a_positive_scale(n_zeros):
    residual = np.append(np.zeros(n_zeros), np.linspace(1.0, 2.0, 100 - n_zeros))
    fit = fit_student(residual)
    assert 1e-4 < fit.factor < 2.0
    assert np.isfinite(fit.log_likelihood)


def test_an_outlier_hardly_moves_the_fit():
    residual = quantiles_of(stats.norm, 1_000)
    fit = fit_student(np.append(residual, 1e9))
    assert fit.factor == pytest.approx(1.0, rel=0.3)
    assert fit.df < 10


def test_one_row_is_enough():
    assert np.isfinite(fit_student([0.3])).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 0.0],), "zero in every row"),
        (([1.0, 0.0], 1.0, [0.0, 1.0]), "zero in every row"),
        (([],), "zero in every row"),
        (([1.0, np.nan],), "residual must be finite; row 1 is nan"),
        (([1.0, 2.0], [1.0, 0.0]), "scale must be positive and finite; row 1 is 0"),
        (([1.0, 2.0], 1.0, [1.0, -1.0]), "weight must be finite and at least 0; row 1 is -1"),
        (([[1.0]],), "shape"),
    ],
)
def test_invalid_rows_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_student(*arguments)
