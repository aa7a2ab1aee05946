"""Members of the distributions, each where it is special: limits, atoms, extreme parameters."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from sglb.distributions import Gamma, Normal, Poisson, Quantiles, StudentT, Tweedie
from sglb.distributions.special import log_poisson
from test_distributions import at, integral


def test_moments_of_student_exist_only_with_enough_degrees_of_freedom():
    law = StudentT(1.0, 2.0, [0.5, 1.0, 1.5, 2.0, 4.0, np.inf])
    np.testing.assert_array_equal(law.mean, [np.nan, np.nan, 1.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(law.variance, [np.nan, np.nan, np.inf, np.inf, 8.0, 4.0])


@pytest.mark.parametrize("df", [0.7, 1.0 - 1e-6, 1.0, 1.0 + 1e-9, 1.3])
@pytest.mark.parametrize("y", [0.0, 2.0, -30.0])
def test_the_crps_of_student_exists_for_more_than_half_a_degree_of_freedom(df, y):
    law = StudentT(0.0, 1.0, df)
    edge = abs(y) + 1.0
    points = np.unique(np.append(np.linspace(-edge, edge, 60), y))
    wanted = integral(lambda x: (at(law.cdf, x) - (x >= y)) ** 2, points)
    # In log x, the two tails beyond the edge.
    tail = integrate.quad(lambda t: law.cdf(-edge * np.exp(t))[0] ** 2 * np.exp(t), 0, 170)[0]
    assert law.crps(y)[0] == pytest.approx(wanted + 2.0 * edge * tail, rel=1e-6)
    assert StudentT(0.0, 1.0, 0.5).crps(y)[0] == np.inf


def test_many_degrees_of_freedom_are_the_normal():
    y = np.array([-8.0, -1.0, 0.0, 0.3, 5.0])
    normal = Normal(1.0, 2.0)
    for df in (1e9, 1e12, 1e300, np.inf):
        student = StudentT(1.0, 2.0, df)
        for method in ("cdf", "logpdf", "crps"):
            wanted = at(getattr(normal, method), y)
            np.testing.assert_allclose(at(getattr(student, method), y), wanted, rtol=1e-6)


def test_a_tiny_scale_does_not_overflow_the_crps():
    for law in (Normal(0.0, 1e-300), StudentT(0.0, 1e-300, 3.0)):
        assert law.crps(1e10)[0] == 1e10
        assert law.logpdf(1e10)[0] == -np.inf or np.isfinite(law.logpdf(1e10)[0])


def test_log_probabilities_keep_their_digits_at_large_means():
    """At the mean the Poisson probability is 1 / sqrt(2 pi m) up to 1 / (12 m)."""
    for mean in (1e4, 1e9, 1e15):
        wanted = -0.5 * math.log(2 * math.pi * mean) - 1 / (12 * mean)
        assert Poisson(mean).logpdf(mean)[0] == pytest.approx(wanted, abs=1e-13)
        # Two standard deviations: exp(-2) but for the skewness, 1 / sqrt(m).
        y = mean + 2 * math.floor(math.sqrt(mean))
        assert Poisson(mean).logpdf(y)[0] - wanted == pytest.approx(-2.0, abs=4 / math.sqrt(mean))
    shape = 1e12
    density = Gamma(1.0, 1 / shape).logpdf(1.0)[0]
    assert density == pytest.approx(0.5 * math.log(shape / (2 * math.pi)), abs=1e-10)


def test_log_poisson_is_the_textbook_formula_in_both_its_ranges():
    k = np.array([0.0, 0.3, 5.0, 14.9, 15.1, 900.0])
    for x in (1e-5, 2.0, 15.0, 400.0):
        wanted = special.xlogy(k, x) - x - special.gammaln(k + 1)
        np.testing.assert_allclose(log_poisson(k, np.full(6, x)), wanted, rtol=1e-12)
        # A single large value sends all of them through the other formula.
        many = log_poisson(np.append(k, 1e5), np.full(7, x))[:6]
        np.testing.assert_allclose(many, wanted, rtol=1e-11, atol=1e-12)
    assert log_poisson(np.array([0.0, 2.0]), np.zeros(2)).tolist() == [0.0, -np.inf]
    large = log_poisson(np.array([0.0, 2.0, 1e4]), np.zeros(3))
    assert large.tolist() == [0.0, -np.inf, -np.inf]


def test_a_poisson_of_mean_zero_is_the_count_zero():
    law = Poisson(0.0)
    assert (law.ppf(0.99)[0], law.crps(0.0)[0], law.crps(3.0)[0]) == (0.0, 0.0, 3.0)
    assert (law.logpdf(0.0)[0], law.logpdf(1.0)[0]) == (0.0, -np.inf)


def test_poisson_quantiles_are_exact_at_every_size():
    mean = np.geomspace(1e-8, 1e12, 60)
    for q in (1e-12, 0.01, 0.5, 0.999, 1 - 1e-9):
        count = Poisson(mean).ppf(q)
        small = mean < 1e6  # SciPy's own inverse is off by thousands, or NaN, beyond
        np.testing.assert_array_equal(count[small], stats.poisson.ppf(q, mean[small]))
        assert (stats.poisson.cdf(count, mean) >= q).all()
        assert (stats.poisson.cdf(count - 1, mean) < q).all()


def series(y, rate, alpha, scale):
    """The density of a compound Poisson-gamma law by its definition, every term."""
    n = np.arange(1, int(rate * 6 + 400))
    terms = stats.poisson.logpmf(n, rate) + stats.gamma.logpdf(y, n * alpha, scale=scale)
    return special.logsumexp(terms)


@pytest.mark.parametrize("power", [1.01, 1.2, 1.5, 1.8, 1.99])
@pytest.mark.parametrize("dispersion", [3.0, 0.3, 0.002])
def test_density_and_cdf_of_tweedie_are_the_sums_over_all_jumps(power, dispersion):
    law = Tweedie(2.0, dispersion, power)
    rate, alpha, scale = law._rate[0], law._alpha[0], law._scale[0]
    assert rate * alpha * scale == pytest.approx(2.0)
    assert rate * alpha * (alpha + 1) * scale**2 == pytest.approx(law.variance[0])
    n = np.arange(1, int(rate * 6 + 400))
    for y in (1e-8, 0.3, 1.9, 2.0, 2.2, 9.0):
        assert law.logpdf(y)[0] == pytest.approx(series(y, rate, alpha, scale), rel=1e-9, abs=1e-8)
        terms = stats.poisson.pmf(n, rate) * special.gammainc(n * alpha, y / scale)
        assert law.cdf(y)[0] == pytest.approx(np.exp(-rate) + terms.sum(), rel=1e-9, abs=1e-14)


def test_tweedie_with_many_jumps_is_nearly_normal():
    """Berry and Esseen: the cdf is off by at most the skewness / 6, 1e-5 of 1e10 jumps."""
    law = Tweedie(1.0, 1e-10, 1.5)
    for z in (-2.0, 0.0, 1.0):
        y = 1.0 + z * law.std[0]
        assert law.cdf(y)[0] == pytest.approx(special.ndtr(z), abs=1e-5)
        assert law.crps(y)[0] == pytest.approx(Normal(1.0, law.std).crps(y)[0], rel=1e-4)
        assert law.ppf(special.ndtr(z))[0] == pytest.approx(y, abs=1e-4 * law.std[0])


def test_tweedie_has_an_atom_at_zero():
    law = Tweedie([0.1, 1.0], 1.0, 1.5)
    jumps = np.array([0.1, 1.0]) ** 0.5 / 0.5  # mean^(2 - p) / (dispersion (2 - p))
    np.testing.assert_allclose(law.cdf(0.0), np.exp(-jumps))
    np.testing.assert_allclose(law.logpdf(0.0), -jumps)
    assert law.ppf(0.5 * np.exp(-jumps)).tolist() == [0.0, 0.0]
    assert law.cdf(-1e-9).tolist() == [0.0, 0.0]
    assert (law.crps(-2.0) == law.crps(0.0) + 2.0).all()


def test_tweedie_quantiles_converge_where_the_density_is_extreme():
    law = Tweedie([1e-6, 1.0, 1e6, 1e-3], [5.0, 50.0, 1e-3, 0.1], [1.9, 1.99, 1.01, 1.5])
    for q in (1e-9, 0.2, 0.5, 0.99, 1 - 1e-10):
        y = law.ppf(q)
        positive = y > 0
        np.testing.assert_allclose(law.cdf(y)[positive], q, rtol=1e-6)
        assert (law.cdf(0.0)[~positive] >= q * (1 - 1e-6)).all() or q < 0.5


def test_quantiles_go_through_their_points_with_exponential_tails():
    law = Quantiles([0.2, 0.6, 0.8], [[1.0, 3.0, 4.0]])
    np.testing.assert_allclose(law.quantiles([0.2, 0.4, 0.6, 0.8]), [[1.0, 2.0, 3.0, 4.0]])
    np.testing.assert_allclose(at(law.cdf, [1.0, 2.0, 3.0, 4.0]), [0.2, 0.4, 0.6, 0.8])
    # Both outer densities are 0.2, so the tails .2 exp(-t) have scale 1.
    np.testing.assert_allclose(
        law.quantiles([0.2 / np.e, 1 - 0.2 / np.e]), [[0.0, 5.0]], atol=1e-12
    )
    np.testing.assert_allclose(np.exp(at(law.logpdf, [0.999999, 1.000001])), 0.2, rtol=1e-5)


def test_equal_quantiles_are_an_atom():
    law = Quantiles([0.2, 0.4, 0.6, 0.8], [[0.0, 0.0, 0.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    assert law.cdf(0.0)[0] == pytest.approx(0.6)
    assert law.cdf([-1e-9, 2.0 - 1e-9]).tolist() == [0.0, 0.0]
    assert law.ppf(0.0).tolist() == [0.0, 2.0]
    assert law.logpdf([0.0, 2.0]).tolist() == [np.inf, np.inf]
    assert law.logpdf([-1.0, 3.0]).tolist() == [-np.inf, -np.inf]
    assert law.crps([0.0, 5.0])[1] == 3.0
    assert law.mean[1] == 2.0
    assert law.std[1] == 0.0


def test_the_crps_of_quantiles_is_twice_the_integral_of_the_pinball_loss():
    law = Quantiles(
        [0.1, 0.25, 0.5, 0.75, 0.9], [[-3.0, -1.0, 0.0, 1.0, 2.0], [5.0, 5.1, 9.0, 9.5, 20.0]]
    )
    q = (np.arange(400_000) + 0.5) / 400_000
    for y in (-5.0, 0.3, 9.2, 30.0):
        u = y - law.ppf(q[:, None])
        pinball = np.maximum(q[:, None] * u, (q[:, None] - 1.0) * u)
        np.testing.assert_allclose(law.crps(y), 2.0 * pinball.mean(axis=0), rtol=1e-4)


def test_scores_agree_with_another_library():
    rules = pytest.importorskip("scoringrules")
    y = np.array([-1.0, 0.4, 3.0])
    normal, student = Normal([0.0, 1.0, 2.0], [1.0, 2.0, 0.3]), StudentT(0.5, 1.5, [3.0, 4.0, 9.0])
    np.testing.assert_allclose(normal.crps(y), rules.crps_normal(y, normal.mean, normal.scale))
    wanted = rules.crps_t(y, student.df, student.location, student.scale)
    np.testing.assert_allclose(student.crps(y), wanted)
    counts, poisson = np.array([0.0, 2.0, 30.0]), Poisson([0.5, 4.0, 20.0])
    np.testing.assert_allclose(poisson.crps(counts), rules.crps_poisson(counts, poisson.mean))
    gamma = Gamma([1.0, 2.0, 30.0], [0.5, 2.0, 0.1])
    shape = 1 / gamma.dispersion
    wanted = rules.crps_gamma(counts + 1, shape, shape / gamma.mean)
    np.testing.assert_allclose(gamma.crps(counts + 1), wanted)


@pytest.mark.parametrize(
    "law",
    [
        Gamma(1.0, [1e-15, 1e-12, 1e3, 1e15]),
        Gamma([1e300, 1e-300], 1.0),
        Poisson([1e-300, 4e15]),
        StudentT(0.0, [1e300, 1e-300], 3.0),
        StudentT(0.0, 1.0, [1e-3, 0.1, 0.5, 0.51, 1e15]),
        Tweedie([1e-30, 1e30], 1.0, 1.5),
        Tweedie(1.0, [1e-14, 1e10], 1.5),
        Quantiles([0.1, 0.9], [[-1e150, 1e150], [0.0, 1e-320]]),
    ],
    ids=repr,
)
def test_extreme_parameters_give_no_nan_and_no_warning(law):
    for y in (-5.0, 0.0, 1.0, 1e200, 1e300):
        for method in (law.cdf, law.logpdf, law.crps):
            assert not np.isnan(method(y)).any()
    for q in (1e-12, 0.3, 0.999):
        assert not np.isnan(law.ppf(q)).any()


def test_narrow_laws_are_normal_in_their_scores():
    """The CRPS of a normal at its median is .2337 of its standard deviation."""
    for law in (Gamma(1.0, 1e-15), Poisson(4e15), Tweedie(1.0, 1e-14, 1.5)):
        assert law.crps(law.ppf(0.5))[0] == pytest.approx(0.23369498 * law.std[0], rel=1e-6)
