"""Predictive distributions: every member against SciPy, numerical integration and its samples."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from sglb.distributions import (
    Distribution,
    Gamma,
    Normal,
    Poisson,
    Quantiles,
    StudentT,
    Tweedie,
)

LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]

# A new member joins with a few rows of ordinary size.
CASES = [
    Normal([0.0, 3.0, -20.0], [1.0, 0.2, 7.0]),
    StudentT([0.0, 3.0, -20.0, 1.0], [1.0, 0.2, 7.0, 2.0], [2.5, 5.0, 40.0, np.inf]),
    StudentT(2.0, 3.0, [4.0, 1e7]),
    Poisson([0.3, 4.0, 70.0]),
    Gamma([1.0, 30.0, 0.2], [0.1, 1.0, 2.0]),
    Tweedie([1.0, 5.0, 0.3], [1.0, 0.2, 2.0], [1.5, 1.2, 1.8]),
    Tweedie([2.0, 40.0], [0.3, 0.01], 1.05),
    Quantiles(LEVELS, [[-3.0, -1.0, 0.0, 1.0, 2.0], [5.0, 5.1, 9.0, 9.5, 20.0]]),
    Quantiles([0.2, 0.7], [[1.0, 2.0]]),
]
# The same laws in SciPy, as functions of a row.
ORACLES = {
    "normal": lambda d, i: stats.norm(d.location[i], d.scale[i]),
    "student": lambda d, i: stats.t(d.df[i], d.location[i], d.scale[i]),
    "poisson": lambda d, i: stats.poisson(d.mean[i]),
    "gamma": lambda d, i: stats.gamma(1 / d.dispersion[i], scale=d.mean[i] * d.dispersion[i]),
}
every_case = pytest.mark.parametrize("law", CASES, ids=repr)
every_oracle = pytest.mark.parametrize("law", [c for c in CASES if c.name in ORACLES], ids=repr)
INNER = np.array([1e-6, 0.01, 0.2, 0.5, 0.8, 0.99, 1 - 1e-6])


def pieces(law, row, outcome=None):
    """Points between which the cdf of a row is smooth, from far left to far right."""
    ends = law[row].ppf(np.array([1e-13, 1e-6, 0.01, 0.5, 0.99, 1 - 1e-6, 1 - 1e-12])[:, None])
    points = set(ends[:, 0].tolist()) | ({outcome} if outcome is not None else set())
    if law.name == "quantiles":
        points |= set(law.values[row].tolist())
    if law.name == "tweedie":  # a density like y^(alpha - 1), and modes at multiples of a jump
        points |= set(np.geomspace(1e-10, max(points), 30).tolist())
        points |= set(np.linspace(0.0, max(points), 60).tolist())
    if law.discrete:
        points = set(np.arange(-1.0, max(points) + 2).tolist()) | {outcome}
    return np.array(sorted(points - {None}))


def integral(function, points):
    """Gauss-Legendre of 40 nodes on each piece."""
    nodes, weights = special.roots_legendre(40)
    low, high = points[:-1, None], points[1:, None]
    x = low + 0.5 * (high - low) * (nodes + 1.0)
    return float(np.sum(0.5 * (high - low) * weights * function(x.reshape(-1)).reshape(x.shape)))


def at(function, x):
    """A method of a distribution of one row at many points."""
    return function(np.asarray(x)[:, None])[:, 0]


def outcomes(law, row):
    low, high = law[row].ppf([1e-3])[0], law[row].ppf([0.999])[0]
    inside = law[row].ppf(np.array([0.02, 0.5, 0.7])[:, None])[:, 0].tolist()
    return [low - 2.0, *inside, high + 3.0]


def test_every_member_is_tested():
    assert {type(law) for law in CASES} == set(Distribution.__subclasses__())


@every_oracle
def test_a_member_is_the_law_of_scipy(law):
    for i in range(len(law)):
        oracle, row = ORACLES[law.name](law, i), law[i]
        y = np.append(oracle.ppf(INNER), [oracle.ppf(0.3) + 0.25, -1.0, 0.0])
        log_density = oracle.logpmf(y) if law.discrete else oracle.logpdf(y)
        np.testing.assert_allclose(at(row.cdf, y), oracle.cdf(y), rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(at(row.logpdf, y), log_density, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(at(row.ppf, INNER), oracle.ppf(INNER), rtol=1e-8)
        np.testing.assert_allclose(row.mean, oracle.mean(), rtol=1e-12)
        np.testing.assert_allclose(row.variance, oracle.var(), rtol=1e-12)
        np.testing.assert_allclose(row.std, oracle.std(), rtol=1e-12)


@every_case
def test_the_cdf_is_the_integral_of_the_density(law):
    for i in range(len(law)):
        row, (a, b) = law[i], law[i].ppf(np.array([[0.3], [0.8]]))[:, 0]
        if law.discrete:
            mass = np.exp(at(row.logpdf, np.arange(a + 1, b + 1))).sum()
        else:
            points = pieces(law, i)
            points = np.unique(np.clip(points, a, b))
            mass = integral(lambda x, row=row: np.exp(at(row.logpdf, x)), points)
        wanted = float(row.cdf(b)[0] - row.cdf(a)[0])
        assert mass == pytest.approx(wanted, rel=1e-7, abs=1e-10)


@every_case
def test_mean_and_variance_are_integrals_of_the_quantile_function(law):
    """E g(Y) = integral of g(ppf(q)) dq; half-normal levels make the tails smooth."""
    for i in range(len(law)):
        if law.name == "student" and law.df[i] < 5:
            continue  # the second moment converges too slowly to be integrated
        t = np.linspace(-8.0, 8.0, 801 if law.name == "tweedie" else 4_001)
        y, weight = at(law[i].ppf, special.ndtr(t)), np.exp(-0.5 * t * t)
        mean = np.average(y, weights=weight)
        tolerance = 2e-3 if law.discrete or law.name == "tweedie" else 1e-4
        assert law.mean[i] == pytest.approx(mean, rel=tolerance, abs=1e-4)
        variance = np.average((y - mean) ** 2, weights=weight)
        assert law.variance[i] == pytest.approx(variance, rel=1e-2)


@every_case
def test_a_quantile_is_the_lowest_outcome_with_enough_probability(law):
    q = np.linspace(0.001, 0.999, 97)[:, None]
    y = law.ppf(q)
    assert (law.cdf(y) >= q - 1e-10).all()
    below = y - (1.0 if law.discrete else 1e-6 * law.std)
    assert (law.cdf(below) <= q + 1e-10).all()
    assert (np.diff(y, axis=0) >= 0.0).all()


@every_case
def test_the_crps_is_the_integral_of_the_squared_error_of_the_cdf(law):
    for i in range(len(law)):
        row = law[i]
        for y in outcomes(law, i):
            points = pieces(law, i, y)

            def square(x, row=row, y=y):
                return (row.cdf(np.reshape(x, (-1, 1)))[:, 0] - (x >= y)) ** 2

            def tail(x, square=square):
                return square(np.array([x]))[0]

            wanted = integral(square, points)
            if law.name == "student":  # tails of power 2 df - 1 on both sides
                ends = points[0], points[-1]
                wanted += integrate.quad(tail, -np.inf, ends[0])[0]
                wanted += integrate.quad(tail, ends[1], np.inf)[0]
            assert row.crps(y)[0] == pytest.approx(wanted, rel=1e-6), (i, y)


@every_case
def test_the_crps_is_the_fair_estimate_from_samples(law):
    """E|Y - y| - E|Y - Y'| / 2 of 200,000 independent pairs; 5 standard errors, 6e-7 each."""
    law = law[:3]
    first, second = law.sample(200_000, 1), law.sample(200_000, 2)
    y = law.ppf(0.8)
    terms = 0.5 * (np.abs(first - y) + np.abs(second - y) - np.abs(first - second))
    error = terms.std(axis=0) / np.sqrt(len(terms))
    assert (np.abs(law.crps(y) - terms.mean(axis=0)) <= 5.0 * error + 1e-12).all()


@every_case
def test_samples_have_the_cdf(law):
    """Shares below three quantiles of 100,000 samples; 5 standard errors, 6e-7 each."""
    samples = law.sample(100_000, np.random.default_rng(3))
    assert samples.shape == (100_000, len(law))
    for q in (0.1, 0.5, 0.95):
        y = law.ppf(q)
        share, expected = (samples <= y).mean(axis=0), law.cdf(y)
        error = np.sqrt(expected * (1 - expected) / len(samples))
        assert (np.abs(share - expected) <= 5.0 * error).all()


@every_case
def test_samples_follow_their_seed(law):
    assert (law.sample(4, 7) == law.sample(4, 7)).all()
    assert (law.sample(4, 7) != law.sample(4, 8)).any()
    older = np.random.RandomState
    assert (law.sample(4, older(1)) == law.sample(4, older(1))).all()


@every_case
def test_rows_are_selected_as_in_numpy(law):
    n = len(law)
    y = law.ppf(0.6)
    for rows in (slice(None, None, -1), [n - 1, 0], np.arange(n) % 2 == 0):
        np.testing.assert_allclose(law[rows].crps(y[rows]), law.crps(y)[rows], rtol=1e-11)
    assert len(law[n - 1]) == len(law[np.int64(-1)]) == 1
    assert law[0:0].mean.shape == (0,)
    assert law[0:0].ppf(0.5).shape == law[0:0].crps([]).shape == (0,)
    assert type(law).__name__ in repr(law)
    assert f"n_rows={n}" in repr(law)


@every_case
def test_shapes_are_those_of_broadcasting_against_rows(law):
    n = len(law)
    assert law.interval(0.9).shape == (n, 2)
    assert law.quantiles([0.1, 0.5, 0.9]).shape == (n, 3)
    np.testing.assert_allclose(law.quantiles([0.05, 0.95]), law.interval(0.9), rtol=1e-12)
    assert law.cdf(np.zeros((5, 1))).shape == (5, n)
    assert law.logpdf(1.0).shape == (n,)
    with pytest.raises(ValueError, match="does not match"):
        law.cdf(np.zeros(n + 1))


@every_case
def test_an_interval_contains_its_share(law):
    low, high = law.interval(0.8).T
    inside = law.cdf(high) - law.cdf(np.nextafter(low, -np.inf))
    assert (inside >= 0.8 - 1e-9).all()
    for coverage in (0.0, 1.0, 1.5):
        with pytest.raises(ValueError, match="coverage"):
            law.interval(coverage)


@every_case
def test_extreme_arguments_give_limits_and_no_nan(law):
    y = np.array([-np.inf, -1e300, -1e30, 0.0, 1e30, 1e300, np.inf])[:, None]
    cdf, log_density, crps = law.cdf(y), law.logpdf(y), law.crps(y)
    for values in (cdf, log_density, crps):
        assert not np.isnan(values).any()
    assert (cdf[[0, 1]] < 1e-9).all()
    assert (cdf[[5, 6]] > 1 - 1e-9).all()
    assert (log_density[[0, 6]] == -np.inf).all()
    np.testing.assert_allclose(crps[[1, 5]], 1e300)
    assert (crps[[0, 6]] == np.inf).all()
    low, high = law.support
    np.testing.assert_array_equal(law.ppf(0.0), np.broadcast_to(low, len(law)))
    np.testing.assert_array_equal(law.ppf(1.0), np.broadcast_to(high, len(law)))
    assert np.isfinite(law.ppf([[1e-300], [1 - 1e-16]])).all()


@every_case
def test_levels_and_outcomes_that_are_none_are_rejected(law):
    with pytest.raises(ValueError, match=r"levels must be in \[0, 1\], got 1.5"):
        law.ppf(1.5)
    with pytest.raises(ValueError, match="levels"):
        law.ppf(np.nan)
    y = np.zeros(len(law))
    y[-1] = np.nan
    for method in (law.cdf, law.logpdf, law.crps):
        with pytest.raises(ValueError, match=f"NaN; row {len(law) - 1}"):
            method(y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal([0.0, np.nan], 1.0), "location of Normal must be finite; row 1 is nan"),
        (lambda: Normal(0.0, [1.0, 0.0]), "scale of Normal must be positive .* row 1 is 0"),
        (lambda: Normal([0.0, 1.0], [1.0, 1.0, 1.0]), "location 2, scale 3"),
        (lambda: Normal([[0.0]], 1.0), "shape"),
        (lambda: StudentT(0.0, np.inf, 3.0), "scale of StudentT .* row 0 is inf"),
        (lambda: StudentT(0.0, 1.0, [3.0, -1.0]), "df of StudentT must be positive; row 1 is -1"),
        (lambda: StudentT(0.0, 1.0, np.nan), "df of StudentT"),
        (lambda: Poisson([1.0, -1.0]), "mean of Poisson .* row 1"),
        (lambda: Poisson(np.inf), "mean of Poisson"),
        (lambda: Gamma([1.0, 0.0], 1.0), "mean of Gamma .* row 1"),
        (lambda: Gamma(1.0, [1.0, 0.0]), "dispersion of Gamma .* row 1"),
        (lambda: Tweedie(1.0, 1.0, [1.5, 2.0]), r"power of Tweedie must be in \(1, 2\); row 1"),
        (lambda: Tweedie([1.0, -1.0], 1.0), "mean of Tweedie .* row 1"),
        (lambda: Tweedie(1.0, [1.0, 1e-40]), "dispersion of Tweedie .* row 1"),
        (lambda: Quantiles([0.5], [[1.0]]), "at least two"),
        (lambda: Quantiles([0.5, 0.5], [[1.0, 1.0]]), "increase strictly"),
        (lambda: Quantiles([0.0, 0.5], [[1.0, 1.0]]), "increase strictly"),
        (lambda: Quantiles([0.1, 0.5], [[1.0, 2.0], [2.0, 1.0]]), "cross in row 1"),
        (lambda: Quantiles([0.1, 0.5], [[1.0, 2.0], [2.0, np.inf]]), "finite, .* row 1"),
        (lambda: Quantiles([0.1, 0.5], [1.0, 2.0]), "shape"),
    ],
)
def test_invalid_parameters_are_rejected_by_name_and_row(make, message):
    with pytest.raises(ValueError, match=message):
        make()
