"""The posterior of a trained chain: draws of what its trees could have been.

The trees of the chain are frozen, their leaf values are drawn.

    laplace   around the chain's last state, with the loss to second order there: the mean of the
              draws is that state, so that accuracy costs nothing
    full      from the chain's start, with the loss itself: the posterior of a Gaussian process
              whose kernel is the trees; the mean is another model, often a worse one
    paper     without frozen trees: see `long_chains`

The kernel has seen the data, because the trees have (empirical Bayes).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.losses import Loss
from sglb.losses.blocks import sample_rows
from sglb.losses.links import Link
from sglb.losses.shapes import user_shape
from sglb.posterior.drawing import AUTO_STEPS, DrawPlan, PosteriorDriver
from sglb.posterior.energies import Energy, LossEnergy, QuadraticEnergy
from sglb.posterior.frozen import BATCH
from sglb.posterior.harmless import largest_harmless
from sglb.posterior.leaf_draws import LeafDraws
from sglb.posterior.partitions import Partitions, TreePartitions
from sglb.target import Target
from sglb.trace import Trace, join, mean_raw

Floats = NDArray[np.float64]
PosteriorKind = Literal["laplace", "full", "paper"]

# Kinds that are around the loss itself, so that its curvature has to be bounded everywhere.
BOUNDED_KINDS = ("full", "paper")
# So small that standard deviations are 0 beside any y, and their squares are not.
LEAST_TEMPERATURE = 1e-200
# Draws that a prior variance is tried with, and training rows: of a rare class some have to be
# among them. The chains last half as long as those of an automatic plan at least.
TRIAL_DRAWS, TRIAL_ROWS, TRIAL_SHARE = 2 * BATCH, 2000, 0.5
# Automatic prior variances. Around a model of numbers 90 % intervals of Friedman's function
# held it in 87 % (1,000 rows) and 91 % (5,000) of new rows, with 1 in 99 %
# (`benchmarks.uncertainty --parts known`). The full posterior has to reach the function itself. Of
# numbers these are in units of what a single row tells of its raw score.
LAPLACE_VARIANCE, FULL_VARIANCE = 0.3, 1.0
# Training rows at which draws are watched: enough to see a share of 1 % of the rows.
WATCHED_ROWS = 500


@dataclass(frozen=True)
class PosteriorPlan:
    """What to draw: how many draws of which kind, the prior variance, the temperature, and the
    steps of each chain. None and AUTO_STEPS are automatic.
    """

    kind: PosteriorKind = "laplace"
    n_draws: int = 100
    prior_variance: float | None = None
    temperature: float = 1.0
    n_steps: int = AUTO_STEPS
    seed: int = 0


@dataclass(frozen=True)
class ChainPosterior:
    """Draws, and the plan with all its numbers.

    `between_chains` is the variance of raw scores over the chains of the model, None of one chain.
    """

    draws: LeafDraws
    plan: PosteriorPlan
    between_chains: float | None = None

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return self.draws.n_draws


def draw_for_chains(
    loss: Loss,
    traces: Sequence[Trace],
    columns: NDArray[np.uint8],
    target: Target,
    plan: PosteriorPlan,
    n_threads: int = 1,
    order: NDArray[np.uint32] | None = None,
) -> ChainPosterior:
    """Draw from the posterior of a model, given the codes of its training rows and their target.

    Of several chains the trees of all are partitions, and the mean is the centre.
    """
    partitions = TreePartitions(join(traces), columns, n_threads)
    raw = centre_of(traces, columns, n_threads)
    offset = traces[0].offset
    drawn = draw_for_trees(loss, partitions, raw, offset, target, plan, n_threads, order)
    return replace(drawn, between_chains=_variance_between(traces, columns, n_threads))


def draw_for_trees(
    loss: Loss,
    partitions: Partitions,
    raw: Floats,
    offset: Floats,
    target: Target,
    plan: PosteriorPlan,
    n_threads: int = 1,
    order: NDArray[np.uint32] | None = None,
) -> ChainPosterior:
    """Draw from the posterior of any trees that have training rows in their leaves.

    `raw` (n_outputs, n_rows) are the raw scores of the model, which only "laplace" is around, and
    `offset` (n_outputs,) its start, which only "full" begins at. Where training rows are unlike new
    ones, `order` has those that are least so at its end.
    """
    check_kind(loss, plan.kind)
    energy: Energy
    if plan.kind == "laplace":
        energy = QuadraticEnergy.at(loss, target, raw)
    else:
        energy = LossEnergy(loss, target, offset)
    driver = PosteriorDriver(energy, partitions, seed=plan.seed, n_threads=n_threads)
    if plan.prior_variance is None:
        if loss.task == "regression":
            variance = variance_of_numbers(loss, target, raw, plan)
        else:
            variance = _variance_of_classes(loss, driver, raw, plan, order)
        plan = replace(plan, prior_variance=variance)
    draws = _draw(driver, plan, _spaced_rows(energy.n_rows, WATCHED_ROWS, order))
    return ChainPosterior(draws, replace(plan, n_steps=draws.n_steps))


def check_kind(loss: Loss, kind: PosteriorKind) -> None:
    """Reject a kind that steps through the loss itself where no step would be short enough."""
    curvature = loss.smoothness
    if kind in BOUNDED_KINDS and (curvature is None or not math.isfinite(curvature)):
        raise ValueError(
            f"kind={kind!r} needs a loss whose second derivative has a bound, and that of loss"
            f" '{loss.name}' has none; use kind='laplace'"
        )


def centre_of(traces: Sequence[Trace], columns: NDArray[np.uint8], n_threads: int) -> Floats:
    """Return the raw scores of the mean of the chains' last states, (n_outputs, n_rows)."""
    return mean_raw([trace.replay(columns, n_threads) for trace in traces])


def _variance_between(
    traces: Sequence[Trace], columns: NDArray[np.uint8], n_threads: int
) -> float | None:
    """Return the variance of the raw scores of watched rows over chains, None of one chain."""
    if len(traces) == 1:
        return None
    rows = np.ascontiguousarray(columns[:, _spaced_rows(columns.shape[1], WATCHED_ROWS, None)])
    raws = np.array([trace.replay(rows, n_threads)[0] for trace in traces])
    return sums.mean(sums.variance(raws, axis=0))


def _draw(driver: PosteriorDriver, plan: PosteriorPlan, watched: NDArray[np.intp]) -> LeafDraws:
    assert plan.prior_variance is not None
    return driver.draw(
        DrawPlan(plan.prior_variance, plan.temperature, plan.n_steps),
        plan.n_draws,
        mirror=plan.kind == "laplace",
        watched=watched,
    )


def _spaced_rows(n_rows: int, n: int, order: NDArray[np.uint32] | None) -> NDArray[np.intp]:
    """Return up to n rows: the last ones of an order or, without one, evenly spaced."""
    if order is not None:
        return np.sort(order[-n:]).astype(np.intp)
    return np.unique(np.linspace(0, n_rows - 1, n).astype(np.intp))


def variance_of_numbers(loss: Loss, target: Target, raw: Floats, plan: PosteriorPlan) -> float:
    """Return the automatic prior variance of numbers, in the unit of raw scores, at temperature 1.

    In units of 1 / c, as T / c is the variance with which one row tells its raw score: c is the
    mean curvature, 1 for the squared loss and the mean for counts. As mean h = mean g^2 / T
    (`noise_temperature`), it is at most (largest |g|)^2 / T, which counts for losses with a kink.
    A priori logarithms of y have a variance of LAPLACE_VARIANCE or FULL_VARIANCE at most.
    """
    base = LAPLACE_VARIANCE if plan.kind == "laplace" else FULL_VARIANCE
    _, curvature = _derivatives(loss, target, raw)
    if loss.lipschitz is not None:
        curvature = min(curvature, loss.lipschitz**2 / plan.temperature)
    is_logarithm = isinstance(loss.link, Link) and loss.link.is_exponential
    most = base / plan.temperature if is_logarithm else math.inf
    return min(base / curvature, most) if curvature > 0.0 else base


def _variance_of_classes(
    loss: Loss,
    driver: PosteriorDriver,
    raw: Floats,
    plan: PosteriorPlan,
    order: NDArray[np.uint32] | None,
) -> float:
    """Return the largest prior variance that does not harm predictions, 1 of a full posterior."""
    energy = driver.energy
    if not isinstance(energy, QuadraticEnergy):
        return FULL_VARIANCE
    rows = _spaced_rows(energy.n_rows, TRIAL_ROWS, order)

    def draw(variance: float) -> Floats:
        fewest = driver.fewest_steps(DrawPlan(variance, plan.temperature))
        trial = replace(plan, prior_variance=variance, n_draws=TRIAL_DRAWS)
        trial = replace(trial, n_steps=int(TRIAL_SHARE * fewest))
        last: Floats = _draw(driver, trial, rows).stages[1]
        return last

    return largest_harmless(loss, raw[:, rows], energy.row_curvature(rows), draw)


def noise_temperature(loss: Loss, target: Target, raw: Floats) -> float:
    """Return the temperature at which loss / temperature is minus a log likelihood, in regression.

    mean g^2 / mean h at raw scores out of fold, which is 1 for a log likelihood (the two forms of
    Fisher's information), and for the squared loss the variance of the residuals.
    """
    square, curvature = _derivatives(loss, target, raw)
    # Rows that are predicted exactly have no noise, and a posterior needs some.
    return max(square / curvature, LEAST_TEMPERATURE) if curvature > 0.0 else 1.0


def _derivatives(loss: Loss, target: Target, raw: Floats) -> tuple[float, float]:
    """Return mean g^2 and mean |h| of the loss at raw scores (n_outputs, n_rows)."""
    selection = sample_rows(len(target))
    rows, scores = target.take(selection), user_shape(raw[:, selection])
    gradient = loss.gradient(rows.values, scores).reshape(len(rows), -1)
    diagonal, _ = loss.hessian_parts(rows.values, scores)
    curvature = np.abs(diagonal).reshape(len(rows), -1)
    n_outputs = gradient.shape[1]
    squares = sums.over_axis(np.square(gradient)) / n_outputs
    return rows.mean(squares), rows.mean(sums.over_axis(curvature) / n_outputs)
