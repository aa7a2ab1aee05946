"""Diagnostics of draws: against ArviZ, against chains whose answer is known, and their limits."""

import numpy as np
import pytest
from scipy.signal import lfilter

from sglb.diagnostics import (
    ess_bulk,
    ess_mean,
    ess_tail,
    mcse_mean,
    rhat,
    rhat_nested,
    summary,
)

PLAIN = [ess_bulk, ess_mean, ess_tail, mcse_mean, rhat]
every_function = pytest.mark.parametrize("function", PLAIN, ids=lambda f: f.__name__)


def autoregressive(shape, correlation, seed=0):
    """Stationary chains x_t = correlation x_{t-1} + noise of unit variance."""
    noise = np.random.default_rng(seed).normal(size=shape)
    noise[:, 0] /= np.sqrt(1.0 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], noise, axis=1)


@pytest.mark.parametrize("shape", [(4, 100, 5), (4, 101, 5), (2, 500, 5), (8, 64, 5)])
@pytest.mark.parametrize("correlation", [0.0, 0.5, -0.6])
def test_every_diagnostic_is_that_of_arviz(shape, correlation):
    arviz = pytest.importorskip("arviz_stats.base").array_stats
    draws = autoregressive(shape, correlation, seed=1)
    draws[:, :, 3] = np.round(draws[:, :, 3])  # ties
    draws[0, :, 4] += 1.0  # a chain elsewhere
    axes = {"chain_axis": 0, "draw_axis": 1}

    def theirs(function, **options):
        return [function(draws[:, :, row], **axes, **options) for row in range(shape[2])]

    np.testing.assert_allclose(rhat(draws), theirs(arviz.rhat), rtol=1e-9)
    chain = np.arange(shape[0]) % 2
    nested = theirs(arviz.rhat_nested, superchain_ids=chain)
    np.testing.assert_allclose(rhat_nested(draws, chain), nested, rtol=1e-9)
    for ours, function, options in (
        (ess_bulk, arviz.ess, {"method": "bulk"}),
        (ess_mean, arviz.ess, {"method": "mean"}),
        (ess_tail, arviz.ess, {"method": "tail", "prob": (0.05, 0.95)}),
        (mcse_mean, arviz.mcse, {"method": "mean"}),
    ):
        values, wanted = ours(draws), theirs(function, **options)
        np.testing.assert_allclose(values[:4], wanted[:4], rtol=1e-9)
        # No pair of autocorrelations of the last row is negative, and ours counts all of them.
        np.testing.assert_allclose(values[4], wanted[4], rtol=0.05)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, -0.5])
def test_the_size_of_an_autoregressive_chain_is_known(correlation):
    """n (1 - c) / (1 + c); the mean of 50 estimates, whose standard errors are below 2 %."""
    draws = autoregressive((4, 4_000, 50), correlation)
    wanted = 16_000 * (1 - correlation) / (1 + correlation)
    assert np.mean(ess_mean(draws)) == pytest.approx(wanted, rel=0.08)
    assert np.mean(ess_bulk(draws)) == pytest.approx(wanted, rel=0.08)


def test_the_standard_error_is_that_of_repeated_means():
    """1,000 rows as repetitions: the deviation of their means is known to 2.2 %, 4 of them."""
    draws = autoregressive((4, 400, 1_000), 0.7, seed=2)
    deviation = draws.mean(axis=(0, 1)).std()
    assert np.mean(mcse_mean(draws)) == pytest.approx(deviation, rel=0.09)


def test_chains_that_agree_have_rhat_near_one_and_others_do_not():
    draws = autoregressive((4, 500, 3), 0.3)
    draws[0, :, 1] += 1.0  # another centre
    draws[0, :, 2] *= 4.0  # the same centre, wider: only the folded form sees it
    values = rhat(draws)
    assert values[0] < 1.01
    assert values[1] > 1.1
    assert values[2] > 1.1


def test_a_trend_is_seen_in_a_single_chain():
    draws = np.random.default_rng(0).normal(size=(1, 400, 1))
    assert rhat(draws)[0] < 1.02
    assert rhat(draws + np.linspace(0.0, 3.0, 400)[:, None])[0] > 1.3


def test_ranks_make_heavy_tails_harmless():
    draws = np.random.default_rng(0).standard_cauchy((4, 1_000, 2))
    assert (rhat(draws) < 1.01).all()
    np.testing.assert_allclose(rhat(draws), rhat(np.arctan(draws)), atol=0.005)
    np.testing.assert_allclose(ess_bulk(draws), ess_bulk(np.arctan(draws)))


@every_function
def test_what_says_nothing_is_nan_and_the_other_rows_are_not(function):
    draws = autoregressive((4, 50, 4), 0.2)
    alone = function(draws[:, :, 3:])
    draws[:, :, 0] = 7.0
    draws[2, 10, 1] = np.nan
    draws[2, 10, 2] = np.inf
    with np.errstate(invalid="ignore"):
        values = function(draws)
    assert np.isnan(values).tolist() == [True, True, True, False]
    np.testing.assert_allclose(values[3:], alone)


def test_chains_stuck_at_different_values_have_rhat_infinity():
    draws = np.tile(np.arange(4.0)[:, None, None], (1, 20, 1))
    assert rhat(draws)[0] == np.inf
    assert rhat_nested(draws, [0, 0, 1, 1])[0] > 1.1


@every_function
def test_chains_need_four_draws(function):
    assert function(np.random.default_rng(0).normal(size=(3, 4, 2))).shape == (2,)
    for n_draws in (1, 3):
        with pytest.raises(ValueError, match=f"at least 4 draws in every chain, got {n_draws}; rh"):
            function(np.zeros((3, n_draws, 2)))
    with pytest.raises(ValueError, match=r"shape \(n_chains, n_draws, n_rows\)"):
        function(np.zeros(5))


@every_function
def test_a_table_of_draws_is_one_row_and_no_row_is_none(function):
    draws = autoregressive((3, 40, 1), 0.1)
    np.testing.assert_array_equal(function(draws[:, :, 0]), function(draws))
    assert function(np.zeros((3, 40, 0))).shape == (0,)


@every_function
def test_rows_in_many_blocks_are_those_of_one(function, monkeypatch):
    draws = autoregressive((3, 40, 7), 0.1)
    wanted = function(draws)
    monkeypatch.setattr("sglb.diagnostics.BLOCK", 250)
    np.testing.assert_allclose(function(draws), wanted)


def test_nested_rhat_of_single_draws_compares_superchains():
    """Eight superchains of 64 draws: sqrt(1 + 1 / 64) = 1.008 where all have mixed."""
    draws = np.random.default_rng(3).normal(size=(512, 1, 2))
    superchain = np.repeat(np.arange(8), 64)
    draws[superchain == 3, :, 1] += 1.0
    values = rhat_nested(draws, superchain)
    assert 1.0 <= values[0] < 1.025
    assert values[1] > 1.04
    order = np.random.default_rng(4).permutation(512)
    np.testing.assert_allclose(rhat_nested(draws[order], superchain[order]), values)


def test_nested_rhat_of_raw_variances_by_hand():
    """Ranks 1..4 have normal scores a, b, -b, -a with superchains {1, 2} and {3, 4}."""
    from scipy.special import ndtri

    a, b = -ndtri((1 - 3 / 8) / 4.25), -ndtri((2 - 3 / 8) / 4.25)
    draws = np.array([[1.0], [2.0], [3.0], [4.0]])
    between, within = (a + b) ** 2 / 2, (a - b) ** 2 / 2
    assert rhat_nested(draws, [0, 0, 1, 1])[0] == pytest.approx(np.sqrt(1 + between / within))


@pytest.mark.parametrize(
    ("superchain", "message"),
    [
        ([0, 0, 1], r"shape \(4,\)"),
        ([0, 0, 0, 1], r"equally many chains; the numbers of chains are \[3, 1\]"),
        ([0, 0, 0, 0], "at least two values"),
        ([0, 1, 2, 3], "no inner variance"),
    ],
)
def test_superchains_that_are_none_are_rejected(superchain, message):
    with pytest.raises(ValueError, match=message):
        rhat_nested(np.zeros((4, 1, 1)), superchain)


def test_short_chains_with_memory_are_not_worth_more_than_their_draws():
    draws = autoregressive((50, 4, 20), 0.95)
    assert (ess_mean(draws) < 100).all()


def test_the_summary_has_every_diagnostic():
    draws = autoregressive((4, 60, 3), 0.4)
    table = summary(draws)
    np.testing.assert_allclose(table.mean, draws.mean(axis=(0, 1)))
    np.testing.assert_array_equal(table.rhat, rhat(draws))
    np.testing.assert_array_equal(table.ess_tail, ess_tail(draws))
    np.testing.assert_allclose(table.mcse, table.std / np.sqrt(ess_mean(draws)))
