"""The posterior of a trained chain: draws of what its trees could have been.

The trees of the chain are frozen, their leaf values are drawn.

    laplace   around the chain's last state, with the loss to second order there: the mean of the
              draws is that state, so that accuracy costs nothing
    full      from the chain's start, with the loss itself: the posterior of a Gaussian process
              whose kernel is the trees; the mean is another model, often a worse one

The kernel has seen the data, because the trees have (empirical Bayes).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sglb.losses import Loss
from sglb.losses.blocks import sample_rows
from sglb.losses.shapes import user_shape
from sglb.posterior.drawing import DrawPlan, draw_posterior
from sglb.posterior.energies import Energy, LossEnergy, QuadraticEnergy
from sglb.posterior.harmless import largest_harmless
from sglb.posterior.leaf_draws import LeafDraws
from sglb.posterior.partitions import Partitions, TreePartitions
from sglb.target import Target
from sglb.trace import Trace, join, mean_raw

Floats = NDArray[np.float64]
Kind = Literal["laplace", "full"]

# So small that standard deviations are 0 beside any y, and their squares are not.
LEAST_TEMPERATURE = 1e-200
# Draws that a prior variance is tried with, and training rows: of a rare class some have to be
# among them.
TRIAL_DRAWS, TRIAL_ROWS = 64, 2000
# Training rows at which draws are watched: enough to see a share of 1 % of the rows.
WATCHED_ROWS = 500


@dataclass(frozen=True)
class PosteriorPlan:
    """What to draw: how many draws of which kind, the prior variance (None: automatic), the
    temperature, and the steps of each chain.
    """

    kind: Kind = "laplace"
    n_draws: int = 100
    prior_variance: float | None = None
    temperature: float = 1.0
    n_steps: int = 150
    seed: int = 0


@dataclass(frozen=True)
class ChainPosterior:
    """Draws, and the plan with all its numbers."""

    draws: LeafDraws
    plan: PosteriorPlan


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
    return draw_for_trees(loss, partitions, raw, traces[0].offset, target, plan, n_threads, order)


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
    energy: Energy
    variance = 1.0
    if plan.kind == "laplace":
        energy = quadratic = QuadraticEnergy.at(loss, target, raw)
        if plan.prior_variance is None and loss.task != "regression":
            variance = _automatic_variance(loss, quadratic, partitions, raw, plan, n_threads, order)
    else:
        energy = LossEnergy(loss, target, offset)
    if plan.prior_variance is None:
        plan = replace(plan, prior_variance=variance)
    watched = _some_rows(energy.n_rows, WATCHED_ROWS, order)
    return ChainPosterior(_draw(energy, partitions, plan, watched, n_threads), plan)


def centre_of(traces: Sequence[Trace], columns: NDArray[np.uint8], n_threads: int) -> Floats:
    """Return the raw scores of the mean of the chains' last states, (n_outputs, n_rows)."""
    return mean_raw([trace.replay(columns, n_threads) for trace in traces])


def _draw(
    energy: Energy,
    partitions: Partitions,
    plan: PosteriorPlan,
    watched: NDArray[np.intp],
    n_threads: int,
) -> LeafDraws:
    assert plan.prior_variance is not None
    return draw_posterior(
        energy,
        partitions,
        DrawPlan(plan.prior_variance, plan.temperature, plan.n_steps),
        plan.n_draws,
        mirror=plan.kind == "laplace",
        watched=watched,
        seed=plan.seed,
        n_threads=n_threads,
    )


def _some_rows(n_rows: int, n: int, order: NDArray[np.uint32] | None) -> NDArray[np.intp]:
    """Return up to n rows: the last ones of an order or, without one, evenly spaced."""
    if order is not None:
        return np.sort(order[-n:]).astype(np.intp)
    return np.unique(np.linspace(0, n_rows - 1, n).astype(np.intp))


def _automatic_variance(
    loss: Loss,
    energy: QuadraticEnergy,
    partitions: Partitions,
    raw: Floats,
    plan: PosteriorPlan,
    n_threads: int,
    order: NDArray[np.uint32] | None,
) -> float:
    """Return the largest prior variance that does not harm the predictions of classes."""
    rows = _some_rows(energy.n_rows, TRIAL_ROWS, order)
    trial = replace(plan, n_draws=TRIAL_DRAWS, n_steps=max(1, plan.n_steps // 2))

    def draw(variance: float) -> Floats:
        chosen = replace(trial, prior_variance=variance)
        last: Floats = _draw(energy, partitions, chosen, rows, n_threads).stages[1]
        return last

    return largest_harmless(loss, raw[:, rows], energy.row_curvature(rows), draw)


def noise_temperature(loss: Loss, target: Target, raw: Floats) -> float:
    """Return the temperature at which loss / temperature is minus a log likelihood, in regression.

    mean g^2 / mean h at raw scores out of fold, which is 1 for a log likelihood (the two forms of
    Fisher's information), and for the squared loss the variance of the residuals.
    """
    rows = target.take(sample_rows(len(target)))
    scores = user_shape(raw[:, sample_rows(len(target))])
    gradient = loss.gradient(rows.values, scores).reshape(len(rows), -1)
    diagonal, _ = loss.hessian_parts(rows.values, scores)
    curvature = np.abs(diagonal).reshape(len(rows), -1)
    square = rows.mean(np.square(gradient).sum(axis=1))
    total = rows.mean(curvature.sum(axis=1))
    # Rows that are predicted exactly have no noise, and a posterior needs some.
    return max(square / total, LEAST_TEMPERATURE) if total > 0.0 else 1.0
