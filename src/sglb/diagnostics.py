"""Have chains mixed, and how many independent draws are their draws worth?

Draws have shape (n_chains, n_draws, n_rows): a row is any number that a state of a chain has, such
as the prediction for a row of a table or a loss. Diagnostics of trees mean nothing, because equal
functions have many trees. Every function returns an array (n_rows,); draws (n_chains, n_draws) are
one row.

    rhat, ess_bulk, ess_tail, mcse_mean    Vehtari et al. (2021), "Rank-normalization, folding, and
                                           localization: an improved R-hat"
    rhat_nested                            Margossian et al. (2024), "Nested R-hat: assessing the
                                           convergence of Markov chain Monte Carlo when running
                                           many short chains"

A row with a draw that is not finite is NaN, and so is a row whose draws are all equal: it says
nothing about mixing. Chains that are stuck at different values have an R-hat of infinity.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

Floats = NDArray[np.float64]

# Halves of a chain need two draws each for a variance.
LEAST_DRAWS = 4
# Draws that a block of rows holds: 32 MB an array.
BLOCK = 2**22
# Blom's scores (r - 3/8) / (n + 1/4), nearly the means of normal order statistics.
BLOM = 3 / 8
# Levels whose probabilities the tail is judged by.
TAILS = (0.05, 0.95)


class Summary(NamedTuple):
    """Mean, standard deviation and diagnostics of each row, all (n_rows,)."""

    mean: Floats
    std: Floats
    mcse: Floats
    rhat: Floats
    ess_bulk: Floats
    ess_tail: Floats


def rhat(draws: ArrayLike) -> Floats:
    """Return the rank-normalised split R-hat, the larger of its bulk and its tail (folded) form.

    Below 1.01 the chains have mixed. Chains of a single draw have no plain R-hat, because nothing
    can be said about their inner variance: see `rhat_nested`.
    """
    return _by_blocks(_rhat, _read(draws))


def rhat_nested(draws: ArrayLike, superchain: ArrayLike) -> Floats:
    """Return the nested R-hat of many short chains, the larger of its bulk and tail form.

    `superchain` (n_chains,) numbers the chains that began in the same state; all superchains have
    equally many chains. The variance between superchains is compared with all variance inside them,
    so that chains may consist of a single draw; chains of four draws or more are split. With M
    independent chains in a superchain the value tends to sqrt(1 + 1 / M) even where all have mixed:
    choose the limit above that.
    """
    values = _read(draws, least=1)
    names, member = np.unique(np.asarray(superchain), return_inverse=True)
    if member.shape != (len(values),):
        raise ValueError(f"superchain must have shape ({len(values)},), a number for every chain")
    sizes = np.bincount(member)
    if len(names) < 2 or len(set(sizes.tolist())) > 1:
        raise ValueError(
            "superchain must have at least two values, each for equally many chains; the numbers of"
            f" chains are {sizes.tolist()}"
        )
    if sizes[0] == 1 and values.shape[1] == 1:
        raise ValueError(
            "superchains of one chain with one draw have no inner variance: nested R-hat needs"
            " several chains in a superchain, or several draws in a chain"
        )
    order = np.argsort(member, kind="stable")
    return _by_blocks(lambda block: _rhat_nested(block, len(names)), values[order])


def ess_bulk(draws: ArrayLike) -> Floats:
    """Return the number of independent draws that tell as much of the centre of a row's law."""
    return _by_blocks(lambda block: _ess(_rank_normalise(_split(block))), _read(draws))


def ess_tail(draws: ArrayLike) -> Floats:
    """Return the effective number of draws for the probabilities beyond the 5 and 95 % levels."""
    return _by_blocks(_ess_tail, _read(draws))


def ess_mean(draws: ArrayLike) -> Floats:
    """Return the effective number of draws for the mean."""
    return _by_blocks(lambda block: _ess(_split(block)), _read(draws))


def mcse_mean(draws: ArrayLike) -> Floats:
    """Return the Monte Carlo standard error of the mean, std / sqrt(effective draws)."""
    values = _read(draws)
    std = _pool(values).std(axis=0, ddof=1)
    return np.asarray(std / np.sqrt(ess_mean(values)))


def summary(draws: ArrayLike) -> Summary:
    """Return mean, standard deviation and all diagnostics of plain chains."""
    values = _read(draws)
    flat = _pool(values)
    return Summary(
        flat.mean(axis=0),
        flat.std(axis=0, ddof=1),
        mcse_mean(values),
        rhat(values),
        ess_bulk(values),
        ess_tail(values),
    )


def _read(draws: ArrayLike, least: int = LEAST_DRAWS) -> Floats:
    """Return draws as (n_chains, n_draws, n_rows), at least this many in a chain."""
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3 or not values.shape[0]:
        raise ValueError(
            f"draws must have shape (n_chains, n_draws, n_rows), not {np.shape(draws)}"
        )
    if values.shape[1] < least:
        advice = "; rhat_nested compares chains of a single draw" if values.shape[1] else ""
        raise ValueError(
            f"this needs at least {least} draws in every chain, got {values.shape[1]}{advice}"
        )
    return values


def _by_blocks(function: Callable[[Floats], Floats], values: Floats) -> Floats:
    """Apply a function of (n_chains, n_draws, rows) to blocks of the rows that can be judged."""
    n_chains, n_draws, n_rows = values.shape
    result = np.full(n_rows, np.nan)
    size = max(BLOCK // (n_chains * n_draws), 1)
    for start in range(0, n_rows, size):
        block = values[:, :, start : start + size]
        with np.errstate(invalid="ignore"):  # infinity - infinity
            vary = np.ptp(block, axis=(0, 1)) > 0.0
        valid = vary & np.isfinite(block).all(axis=(0, 1))
        if valid.any():
            result[start : start + size][valid] = function(block[:, :, valid])
    return result


def _pool(values: Floats) -> Floats:
    """Return the draws of all chains together, (n_chains * n_draws, n_rows)."""
    return values.reshape(values.shape[0] * values.shape[1], values.shape[2])


def _split(values: Floats) -> Floats:
    """Return the halves of all chains as chains; of an odd number of draws without the middle."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _rank_normalise(values: Floats) -> Floats:
    """Replace the draws of each row by normal scores of their ranks, ties by mean ranks."""
    flat = _pool(values)
    ranks = rankdata(flat, axis=0)
    scores = ndtri((ranks - BLOM) / (len(flat) + 1.0 - 2.0 * BLOM))
    return np.asarray(scores).reshape(values.shape)


def _fold(values: Floats) -> Floats:
    """Return distances from the median, whose mean tells about the tails."""
    return np.abs(values - np.median(values, axis=(0, 1)))


def _rhat(values: Floats) -> Floats:
    halves = _split(values)
    bulk = _plain_rhat(_rank_normalise(halves))
    return np.fmax(bulk, _plain_rhat(_rank_normalise(_fold(halves))))


def _plain_rhat(values: Floats) -> Floats:
    """Return sqrt((between / within + n - 1) / n), n draws in a chain."""
    n_draws = values.shape[1]
    between = n_draws * values.mean(axis=1).var(axis=0, ddof=1)
    within = values.var(axis=1, ddof=1).mean(axis=0)
    return np.asarray(np.sqrt((_ratio(between, within) + n_draws - 1.0) / n_draws))


def _rhat_nested(values: Floats, n_superchains: int) -> Floats:
    if values.shape[1] >= LEAST_DRAWS:
        half = values.shape[1] // 2  # both halves of a chain stay with its superchain
        halves = np.stack([values[:, :half], values[:, -half:]], axis=1)
        values = halves.reshape(-1, half, values.shape[2])
    bulk = _plain_nested(_rank_normalise(values), n_superchains)
    return np.fmax(bulk, _plain_nested(_rank_normalise(_fold(values)), n_superchains))


def _plain_nested(values: Floats, n_superchains: int) -> Floats:
    """Return sqrt(1 + between / within), equations 6 to 8; chains are sorted by superchain."""
    n_chains, n_draws, n_rows = values.shape
    means = values.mean(axis=1).reshape(n_superchains, -1, n_rows)
    within: Floats | float = 0.0
    if n_chains > n_superchains:
        within = means.var(axis=1, ddof=1).mean(axis=0)
    if n_draws > 1:
        within = within + values.var(axis=1, ddof=1).mean(axis=0)
    between = means.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt(1.0 + _ratio(between, np.asarray(within)))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return the quotient: infinite over 0, NaN for 0 over 0 (folded draws that are all equal)."""
    # Means of n equal scores may differ in their last bits.
    zero = denominator <= np.finfo(np.float64).eps ** 2
    quotient = numerator / np.where(zero, 1.0, denominator)
    limit = np.where(numerator > np.finfo(np.float64).eps, np.inf, np.nan)
    return np.where(zero, limit, quotient)


def _ess_tail(values: Floats) -> Floats:
    levels = np.quantile(values, TAILS, axis=(0, 1))
    sizes = []
    for level in levels:
        below = _split((values <= level).astype(np.float64))
        vary = np.ptp(below, axis=(0, 1)) > 0.0  # not where draws tie at the level
        size = np.full(values.shape[2], np.nan)
        if vary.any():
            size[vary] = _ess(below[:, :, vary])
        sizes.append(size)
    return np.asarray(np.fmin(*sizes))


def _autocovariance(values: Floats) -> Floats:
    """Return the autocovariance of every chain at lags 0, 1, ..., divided by n_draws."""
    n_draws = values.shape[1]
    deviation = values - values.mean(axis=1, keepdims=True)
    length = next_fast_len(2 * n_draws, real=True)
    spectrum: NDArray[Any] = rfft(deviation, n=length, axis=1)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    return np.asarray(irfft(power, n=length, axis=1)[:, :n_draws] / n_draws)


def _ess(values: Floats) -> Floats:
    """Return n / tau of all chains together, by Geyer's initial monotone sequence.

    tau = -1 + 2 sum over pairs P_t = rho_2t + rho_2t+1 of autocorrelations, up to the last pair
    before the first that is negative, each pair at most its predecessor. As in Stan, the even
    autocorrelation after the last pair is added once if it is positive, and tau is at least
    1 / log10(n), so that antithetic chains do not have a size without bound. Unlike Stan, the last
    of all pairs counts if no pair is negative: chains that are too short get a smaller size.
    """
    n_chains, n_draws, _ = values.shape
    covariance = _autocovariance(values).mean(axis=0)
    within = covariance[0] * n_draws / (n_draws - 1.0)
    total = covariance[0].copy()
    if n_chains > 1:
        total += values.mean(axis=1).var(axis=0, ddof=1)
    correlation = 1.0 - (within - covariance) / total
    correlation[0] = 1.0
    # Pairs up to lag n_draws - 2, as in Stan; the last lag is a product of two draws.
    n_pairs = max((n_draws - 1) // 2, 1)
    even, odd = correlation[0 : 2 * n_pairs : 2], correlation[1 : 2 * n_pairs : 2]
    pairs = even + odd
    negative = pairs < 0.0
    negative[0] = False
    n_positive = np.where(negative.any(axis=0), negative.argmax(axis=0), n_pairs)
    positive = np.arange(n_pairs)[:, None] < n_positive
    monotone = np.minimum.accumulate(pairs, axis=0)
    next_even = np.take_along_axis(even, np.minimum(n_positive, n_pairs - 1)[None], axis=0)[0]
    next_even = np.where(n_positive < n_pairs, np.maximum(next_even, 0.0), 0.0)
    tau = -1.0 + 2.0 * np.sum(np.where(positive, monotone, 0.0), axis=0) + next_even
    n = n_chains * n_draws
    return np.asarray(n / np.maximum(tau, 1.0 / np.log10(n)))
