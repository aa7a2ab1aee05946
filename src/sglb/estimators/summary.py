"""Whether draws can be trusted, with advice where they cannot."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from sglb import diagnostics, sums
from sglb.posterior import AnyPosterior, ChainPosterior, LongChains, PosteriorPlan
from sglb.posterior.drawing import RELAXATIONS
from sglb.posterior.frozen import BATCH

Floats = NDArray[np.float64]

# R-hat of a row is too large above LARGEST_RHAT, or where chance makes it so only RARELY. Draws of
# a batch share their partitions, so that chance does so more often: up to 4 % of the rows of chains
# that are long enough. More than MANY of them are a sign of short chains.
LARGEST_RHAT, RARELY, MANY = 1.01, 0.01, 0.1
# Nested R-hat of batches of sixteen draws whose batch is worth five of them: the variance between
# batches is R-hat^2 - 1 = .21 of that inside, a fifth, and would be a sixteenth.
LARGEST_NESTED = 1.1
# Change of the variance that chains which are long enough do not show.
STILL = 0.1
# Fewer draws, or effective draws as a share of the draws, are worth a word.
FEW_DRAWS, FEW_EFFECTIVE = 50, 0.5


@dataclass(frozen=True, repr=False)
class PosteriorSummary:
    """Whether draws can be trusted, measured at up to 500 training rows.

    rhat          R-hat, one value a row and output. Of short chains the draws halfway are compared
                  with those at the end: near 1 where the chains have forgotten their start. Of long
                  chains (kind "paper") the second halves of the chains are compared
    rhat_nested   of short chains: nested R-hat of batches of draws whose chains took their steps on
                  the same trees, compared with the draws in a batch: near 1.03 where they might
                  all have taken other steps. None with fewer than two batches
    relaxations   relaxation times that each chain lasts, of the mean over all rows: short chains
                  that last fewer than five have hardly moved, and R-hat cannot tell, as they are
                  where they were halfway. None of a file that does not tell
    share_converged    share of the rows with an R-hat below 1.01, or below what is chance for so
                  many draws
    ess_bulk, ess_tail      effective draws a row, for the centre of its law and for both tails; a
                  draw and its mirror image (kind "laplace") count once
    knowledge     mean variance of the raw scores over draws
    change        of that variance in the second half of short chains, relative: near 0 where they
                  are long enough; more sensitive than R-hat, as it is over all rows. None of others
    between_chains     variance of the raw scores over the chains of the model, None of one chain
    cost          Monte Carlo error of the mean raw score of all draws at such rows, at most, in the
                  unit of the loss: bound of its curvature / 2 * variance of the mean, summed over
                  outputs. None of a loss whose curvature has no bound
    """

    plan: PosteriorPlan
    n_draws: int
    rhat: Floats
    share_converged: float
    ess_bulk: Floats
    ess_tail: Floats
    knowledge: float
    cost: float | None
    relaxations: float | None = None
    rhat_nested: Floats | None = None
    change: float | None = None
    between_chains: float | None = None
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        plan, between, cost = self.plan, self.between_chains, self.cost
        lasts = "" if self.relaxations is None else f"{self.relaxations:.2g} relaxation times"
        rows = [
            ("kind", plan.kind),
            ("draws", f"{self.n_draws}"),
            ("steps of a chain", f"{plan.n_steps:,}"),
            ("they last", lasts),
            ("prior variance", f"{plan.prior_variance:g}"),
            ("temperature", f"{plan.temperature:.4g}"),
            ("variance of raw scores", f"{self.knowledge:.4g}"),
            ("its change, second half", "" if self.change is None else f"{self.change:+.1%}"),
            ("variance between chains", "" if between is None else f"{between:.4g}"),
            ("error of a mean", "" if cost is None else f"{cost:.2g} in the loss, at most"),
            ("R-hat, median and 99 %", _quantiles(self.rhat)),
            ("nested R-hat, the same", _quantiles(self.rhat_nested)),
            ("effective draws, bulk", f"{_quantile(self.ess_bulk, 0.5):.0f} (median)"),
            ("effective draws, tails", f"{_quantile(self.ess_tail, 0.5):.0f} (median)"),
        ]
        rows = [(name, value) for name, value in rows if value]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    __repr__ = __str__


def _quantiles(values: Floats | None) -> str:
    if values is None:
        return ""
    return f"{_quantile(values, 0.5):.3f}, {_quantile(values, 0.99):.3f}"


def _quantile(values: Floats, level: float) -> float:
    """Return a quantile over the rows that can be judged, NaN where draws are equal everywhere."""
    numbers = values[~np.isnan(values)]
    return float(np.quantile(numbers, level)) if len(numbers) else math.nan


def summarise(posterior: AnyPosterior, curvature: float | None) -> PosteriorSummary:
    """Summarise draws; `curvature` bounds the second derivative of the loss, None without bound.

    The mean of n draws of variance v has a loss that is too large by at most curvature v / (2 n).
    """
    if isinstance(posterior, LongChains):
        return _of_long_chains(posterior, curvature)
    return _of_short_chains(posterior, curvature)


def _cost(variance: float, n_outputs: int, curvature: float | None) -> float | None:
    """Return the bound of what a mean of raw scores costs whose outputs have this mean variance."""
    return None if curvature is None else 0.5 * curvature * n_outputs * variance


def _of_short_chains(posterior: ChainPosterior, curvature: float | None) -> PosteriorSummary:
    plan, stages = posterior.plan, posterior.draws.stages
    _, n_outputs, n_rows, n_draws = stages.shape
    draws = np.moveaxis(stages, 3, 1).reshape(2, n_draws, n_outputs * n_rows)
    if posterior.draws.mirror:  # a draw and its mirror image are one draw to a test of a law
        draws = draws[:, : n_draws // 2]
    if draws.shape[1] < diagnostics.LEAST_DRAWS:
        least = diagnostics.LEAST_DRAWS * n_draws // draws.shape[1]
        raise ValueError(f"{n_draws} draws are too few for a summary; use {least} or more")
    halfway, knowledge = (sums.mean(sums.variance(stage, 2, n_lost=0)) for stage in stages)
    change = knowledge / halfway - 1.0 if halfway > 0.0 else 0.0
    rhat = diagnostics.rhat(draws)
    converged = _share_below(rhat, _rhat_by_chance(4, draws.shape[1] // 2))
    nested, alike = _nested(draws[1])
    relaxations = posterior.draws.relaxations
    warnings = []
    if relaxations is not None and relaxations < RELAXATIONS:
        share = relaxations / RELAXATIONS
        needed = f"n_steps={_at_least(plan.n_steps / share)} or more" if share else "more steps"
        warnings.append(
            f"the chains last {relaxations:.2g} relaxation times and are still near their start, a"
            f" draw from the prior; use {needed}"
        )
    if converged < 1.0 - MANY:
        warnings.append(
            f"R-hat is too large at {1.0 - converged:.1%} of the rows: the chains have not"
            f" forgotten their start; use more than n_steps={plan.n_steps}"
        )
    if abs(change) > STILL:
        warnings.append(
            f"the variance of the draws changed by {change:.0%} in the second half of their"
            f" chains; use more than n_steps={plan.n_steps}"
        )
    if alike > MANY:
        warnings.append(
            f"nested R-hat is too large at {alike:.1%} of the rows: draws of a batch of {BATCH} are"
            f" alike; use more than n_steps={plan.n_steps}, or more draws"
        )
    between = posterior.between_chains
    if between is not None and between > knowledge:
        warnings.append(
            f"the chains of the model differ more ({between:.2g}) than the draws do: another noise"
            " would have led to another model; use a larger prior_variance, or more n_chains"
        )
    return PosteriorSummary(
        plan=plan,
        n_draws=n_draws,
        rhat=rhat,
        share_converged=converged,
        ess_bulk=diagnostics.ess_bulk(draws[1:]),
        ess_tail=diagnostics.ess_tail(draws[1:]),
        knowledge=knowledge,
        relaxations=relaxations,
        cost=_cost(knowledge / n_draws, n_outputs, curvature),
        rhat_nested=nested,
        change=change,
        between_chains=between,
        warnings=[*warnings, *_few_draws(n_draws)],
    )


def _nested(draws: Floats) -> tuple[Floats | None, float]:
    """Return the nested R-hat of batches of draws (n_draws, n_rows), and the share too large."""
    n_batches = len(draws) // BATCH
    if n_batches < 2:
        return None, 0.0
    whole = draws[: n_batches * BATCH, None]
    nested = diagnostics.rhat_nested(whole, np.repeat(np.arange(n_batches), BATCH))
    # R-hat^2 is 1 + F / BATCH for a ratio F of mean squares, the larger of two such numbers.
    degrees = n_batches - 1, n_batches * (BATCH - 1)
    by_chance = math.sqrt(1.0 + f.ppf(1.0 - RARELY / 2.0, *degrees) / BATCH)
    return nested, 1.0 - _share_below(nested, max(LARGEST_NESTED, by_chance))


def _of_long_chains(chains: LongChains, curvature: float | None) -> PosteriorSummary:
    plan, watched = chains.plan, chains.watched
    states = watched.reshape(*watched.shape[:2], -1)
    knowledge = sums.mean(sums.variance(states.reshape(-1, states.shape[2]), 0, n_lost=0))
    rhat = diagnostics.rhat(states)
    bulk, tail = diagnostics.ess_bulk(states), diagnostics.ess_tail(states)
    # As far as chance goes if the draws were independent: then they are worth their number.
    n_halves = 2 * len(states)
    converged = _share_below(rhat, _rhat_by_chance(n_halves, plan.n_draws // n_halves))
    effective = _quantile(np.fmin(bulk, tail), 0.5)
    reasons = []
    if converged < 1.0 - MANY:
        reasons.append(f"R-hat is too large at {1.0 - converged:.1%} of the rows")
    if effective < FEW_EFFECTIVE * plan.n_draws:
        reasons.append(f"the {plan.n_draws} draws are worth about {effective:.0f} independent ones")
    warnings = _few_draws(plan.n_draws)
    if reasons:
        warnings.append(
            f"{' and '.join(reasons)}: the chains have not mixed. They last"
            f" {chains.n_relaxations:.2g} relaxation times, and {len(states)} chains need about one"
            f" for each draw; use n_steps={_enough_steps(chains)} or more, a smaller"
            " prior_variance, or kind='laplace', whose draws need not mix"
        )
    return PosteriorSummary(
        plan=plan,
        n_draws=plan.n_draws,
        rhat=rhat,
        share_converged=converged,
        ess_bulk=np.fmin(bulk, plan.n_draws),
        ess_tail=np.fmin(tail, plan.n_draws),
        knowledge=knowledge,
        relaxations=chains.n_relaxations,
        cost=_cost(knowledge / min(plan.n_draws, effective), watched.shape[2], curvature),
        warnings=warnings,
    )


def _enough_steps(chains: LongChains) -> str:
    """Return a number of steps that is likely to be enough, in two digits."""
    plan = chains.plan
    return _at_least(max(plan.n_draws * plan.n_steps / chains.n_relaxations, 2.0 * plan.n_steps))


def _at_least(n_steps: float) -> str:
    """Return a number of steps in two digits, rounded up."""
    unit = 10.0 ** max(math.floor(math.log10(n_steps)) - 1, 0)
    return f"{math.ceil(n_steps / unit) * unit:.0f}"


def _rhat_by_chance(n_chains: int, n_draws: int) -> float:
    """Return the limit of R-hat of chains of independent draws, 1.01 or more.

    R-hat^2 is 1 + (F - 1) / n for a ratio F of mean squares of chains of n draws, and the larger of
    two such numbers: one of ranks, one of their distances from the middle.
    """
    n = max(n_draws, 2)
    ratio = f.ppf(1.0 - RARELY / 4.0, n_chains - 1, n_chains * (n - 1))
    return max(LARGEST_RHAT, math.sqrt(1.0 + (ratio - 1.0) / n))


def _share_below(values: Floats, limit: float) -> float:
    """Return the share of rows that are not above a limit; draws that are all equal are not."""
    return 1.0 - np.count_nonzero(values > limit) / values.size


def _few_draws(n_draws: int) -> list[str]:
    if n_draws >= FEW_DRAWS:
        return []
    return [
        f"{n_draws} draws: an average over them is off by knowledge / {n_draws} in the loss; use"
        " 100 or more"
    ]
