"""What "auto" stands for: size of the data + loss -> numbers, each rule with its evidence.

Weights are multiplicities, so the N of every rule is the sum of weights.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sglb.elementary import exp, log, power
from sglb.leaves import PART_ROWS, LeafMethod
from sglb.losses import Loss
from sglb.samplers import SAMPLERS
from sglb.schedules import is_schedule

# Between the .1 of the squared and the 1 of the absolute loss; huber, cauchy and welsch have less
# than .3 with their default widths.
FLAT = 0.7


@dataclass(frozen=True)
class Size:
    """What the rules know of the data.

    `unit` is the weight of one ordinary row (`target.weight_unit`): 1 for multiplicities, the
    mean of weights that were normalised to a smaller sum. `square` and
    `curvature` are the mean squared gradient and the mean absolute second derivative at the best
    constant: for the squared loss the variance of y and 1. In regression `spread` is that of y,
    `tail` that of its outer percentiles where it is larger, and
    `flatness` how much of the root mean square gradient is left when all residuals are a tenth: .1
    for the squared loss, 1 for the absolute one. Of a ranking `spread` is that of y within queries,
    1 where scores have another unit than y, and `n_groups` is the number of queries, 0 for other
    tasks. `depth` is how far below the mean loss at the
    start the rows' own optima lie, for losses that are not convex; 0 where it is not known.
    """

    n_rows: int
    total_weight: float
    unit: float = 1.0
    square: float = 1.0
    curvature: float = 1.0
    n_columns: int = 1
    spread: float = 1.0
    tail: float = 1.0
    flatness: float = 0.0
    depth: float = 0.0
    n_groups: int = 0

    @property
    def is_flat(self) -> bool:
        """Whether gradients stay what they are as residuals shrink.

        Those of a loss with valleys may even grow, where it gives up on most rows at the start.
        """
        return self.flatness > FLAT and self.depth == 0.0

    @property
    def n_independent(self) -> int:
        """Rows, or groups of rows, that are independent of one another."""
        return self.n_groups or self.n_rows

    @property
    def count(self) -> float:
        """Rows, counted by their weights."""
        return self.total_weight / self.unit


def auto_leaf_method(loss: Loss) -> LeafMethod:
    """Newton where the curvature is never negative and there is one optimum, else the paper's.

    Robust regression losses are linear far from their optimum: their curvature vanishes there, and
    a Newton step would overshoot.
    """
    flat = loss.task == "regression" and loss.lipschitz is not None
    one_optimum = loss.convex or is_ranking(loss)
    return "newton" if loss.has_hessian and one_optimum and not flat else "gradient"


def is_binary(loss: Loss) -> bool:
    """Whether one raw score stands for the odds of two classes."""
    return loss.task in ("binary", "multiclass") and loss.n_outputs <= 2


def is_ranking(loss: Loss) -> bool:
    """Whether rows are compared within queries."""
    return loss.task == "ranking"


def is_multimodal(size: Size, loss: Loss) -> bool:
    """Whether a loss of numbers has valleys that a chain must find its way between."""
    return loss.task == "regression" and not loss.convex and size.depth > 0.0


def is_small_regression(size: Size, loss: Loss) -> bool:
    """Whether there are fewer than a thousand numbers to learn from."""
    return loss.task == "regression" and size.count < 1000.0


def auto_max_depth(size: Size, loss: Loss) -> int:
    """6 for two classes, rankings, flat losses and fewer than a thousand numbers, 4 for multimodal
    losses of numbers, else 8.

    A tree tells a number, or many classes, more than it tells the odds of two. Depth 8 against 6
    lowered the test error of 10 regressions by 1 to 29 % and of 2 of 3 problems of several classes
    by 5 to 8 %. Of two classes it changed it by -.6 to +3 %, in the mean by 0, for 1.4 times the
    time. Of four regressions of 200 to 670 rows 6 lowered it by 2 to 17 % (docs/defaults.md).
    """
    if is_multimodal(size, loss):
        return 4
    is_shallow = is_binary(loss) or is_ranking(loss) or size.is_flat
    return 6 if is_shallow or is_small_regression(size, loss) else 8


def auto_max_bins(loss: Loss) -> int:
    """254 for numbers, where 64 cost up to 5 % (coordinates, temperatures), and for relevances; 128
    for two classes, where 254 were no better and took longer, 64 for several (docs/defaults.md).
    """
    if loss.task in ("regression", "ranking"):
        return 254
    return 128 if is_binary(loss) else 64


def auto_l2(size: Size, loss: Loss, leaf_method: str) -> float:
    """0 as in the paper; 3 for Newton leaves, whose Hessian sum may be close to zero.

    On 13 binary tables 1 and 10 changed the test log loss by -0.1 % and +0.16 %. A leaf of a small
    regression holds few rows, and 1 is enough (docs/defaults.md). Of numbers and rankings the
    unit is the curvature of a row at the start: 1 for the squared loss, the mean for counts,
    whatever it is for a user's loss.
    """
    if leaf_method == "gradient":
        return 0.0
    has_unit = loss.task in ("regression", "ranking") and size.curvature > 0.0
    curvature = size.curvature if has_unit else 1.0
    return size.unit * curvature * (1.0 if is_small_regression(size, loss) else 3.0)


# Parameters that may have schedules.
SCHEDULED = ("learning_rate", "temperature", "shrink_rate")

# Steps of a chain whose length is free.
MOST_STEPS = 1000
# Up to this many rows 1,000 steps may be too many, and trying it out takes a few seconds.
FEW_ROWS = 10_000
# The same for rankings, whose queries, not rows, are independent (docs/defaults.md).
FEW_RANKED_ROWS = 50_000
# Of fewer rows, or groups of rows, a fold is no test.
FEW_TO_FOLD = 50
# Rows times columns times outputs: five chains at once are to take seconds, and no more memory.
FEW_VALUES = 10_000_000


def searches_length(parameters: Mapping[str, Any], loss: Loss, size: Size) -> bool:
    """Whether the length of a chain is to be found by cross-validation.

    Not where an evaluation set decides, where rows cannot be left out, where there are so many
    that 1,000 steps do not overfit, for chains that are run for their law or towards a global
    optimum, and where a schedule is stated for a number of steps.
    """
    stops_early = parameters["early_stopping_rounds"] is not None
    sampler = parameters["sampler"]
    has_law = not isinstance(sampler, str) or parameters["temperature"] not in ("auto", 0)
    far_to_go = not loss.convex or (isinstance(sampler, str) and SAMPLERS[sampler].is_planned)
    is_planned = any(is_schedule(parameters[name]) for name in SCHEDULED)
    values = size.n_rows * size.n_columns * loss.n_outputs
    most_rows = FEW_RANKED_ROWS if loss.by_group else FEW_ROWS
    few = size.n_independent >= FEW_TO_FOLD and size.n_rows <= most_rows
    possible = (loss.independent or loss.by_group) and few and values <= FEW_VALUES
    return possible and not (stops_early or has_law or far_to_go or is_planned)


def auto_length(loss: Loss) -> int:
    """Steps of a chain that nothing ends: 450 for rankings, else 1,000."""
    return RANKING_STEPS if is_ranking(loss) else MOST_STEPS


def auto_random_strength(loss: Loss, *, search_length: bool) -> float:
    """1 for rankings, and for two classes in a chain whose length is cross-validated, else 0.

    It lowers the test loss of most small tables of two classes (docs/quality.md). Of numbers it
    spoils tables with much structure. Rankings gain .003 NDCG@10 by it and by samples of rows.
    """
    return 1.0 if is_ranking(loss) or (is_binary(loss) and search_length) else 0.0


def auto_leaf_steps(size: Size, loss: Loss, leaf_method: str) -> int:
    """3 for two classes and Newton leaves of so many rows that steps before the last look at a part
    of them, else 1.

    On a million rows they lowered the test log loss of 100 trees by 1.3 % in 1.3 times the time, as
    much as ten steps. Of fewer rows each step takes as long as the first (docs/defaults.md).
    """
    parts = leaf_method == "newton" and math.isfinite(loss.trust_radius) and loss.n_outputs == 1
    return 3 if parts and size.n_rows >= 2 * PART_ROWS else 1


# How far the steps of a flat loss may go together at its typical gradient, in spreads of y or, if
# it has long tails, of these.
FLAT_TRAVEL = 7.0
# The same for several quantiles in one model: outer ones have the longest way. Half of it cost 1 to
# 35 % of the pinball loss on five tables, twice as much -0.5 to 3 % (docs/defaults.md).
FLAT_TRAVEL_TOGETHER = 21.0


def auto_learning_rate(
    size: Size, n_steps: int, loss: Loss, leaf_method: str, *, watched: bool = True
) -> float:
    """exp(.246 ln N - 5.127) (n_steps / 1000)^-.451, between .005 and .5, for Newton leaves.

    Found for the logistic loss on 13 tables of 6,000 to 50,000 rows, where half and twice the rate
    changed the test log loss by -0.08 % and +0.35 %. A chain of two classes that is not `watched`
    would go on beyond its best step: it takes exp(.408 ln N - 7.299) (n_steps / 1000)^-.928 if that
    is less. Numbers and more than two classes take twice the rate, with which they come to their
    optimum within the steps (docs/defaults.md). To go as far, a gradient step is divided by the
    curvature of the loss at the start, but not by less than a tenth of its largest curvature.
    Gradients of flat losses (absolute, quantile) do not shrink with the residuals, so that their
    steps are given a total length. A loss may state its own rate: the smoothed 0-1
    loss takes the paper's .1.
    """
    if loss.default_learning_rate is not None:
        return loss.default_learning_rate
    if is_ranking(loss):
        rate = RANKING_RATE * power(max(1.0, RANKING_STEPS / n_steps), 0.451)
        return rate / typical_curvature(size, loss) if leaf_method == "gradient" else rate
    if size.is_flat and leaf_method == "gradient":
        if loss.n_outputs == 1:
            return FLAT_TRAVEL * size.tail / (n_steps * math.sqrt(size.square))
        rate = FLAT_TRAVEL_TOGETHER * size.tail / (n_steps * math.sqrt(size.square))
        # Of few steps, or where many y are equal: no further than a Newton step from the start.
        return min(rate, 1.0 / size.curvature) if size.curvature > 0.0 else rate
    rate = exp(0.246 * log(size.count) - 5.127) * power(n_steps / 1000.0, -0.451)
    if is_binary(loss) and not watched:
        slow = exp(0.408 * log(size.count) - 7.299) * power(n_steps / 1000.0, -0.928)
        rate = min(rate, slow)
    rate = min(max(rate if is_binary(loss) else 2.0 * rate, 0.005), 0.5)
    return rate / typical_curvature(size, loss) if leaf_method == "gradient" else rate


def typical_curvature(size: Size, loss: Loss) -> float:
    """Curvature at the start, at least a tenth of the largest there is; of a flat loss, whose
    curvature is all in its kink, typical gradient / spread of y.
    """
    if size.is_flat:
        return math.sqrt(size.square) / size.spread
    return max(size.curvature, 0.1 * (loss.smoothness or 0.0)) or 1.0


# Of a ranking (docs/defaults.md): trees if nothing ends the chain, their rate, and the share of the
# rows that structures are searched on.
RANKING_STEPS = 450
RANKING_RATE = 0.05
RANKING_SAMPLE = 0.5

# Share of its velocity that a step of a chain with momentum loses (docs/dynamics.md).
FRICTION = 0.1


def auto_hot_temperature(size: Size, loss: Loss) -> float:
    """The depth of the loss's valleys below the start: what holds a row in the wrong one."""
    return size.unit * size.depth if size.depth > 0.0 else auto_temperature(size, loss)


def auto_temperature(size: Size, loss: Loss) -> float:
    """1e-3 where noise must carry the chain over barriers and for rankings, else 1e-5, and 1e-6 for
    numbers.

    1e-3 is the paper's beta = 1000 N for the smoothed 0-1 loss, whose valleys are .5 deep; it is
    multiplied by depth / .5 for others. For the logistic loss noise only costs: 1e-5 0.06 % of the
    test log loss, 1e-4 0.4 %, 1e-3 2.5 %. A temperature has the unit of the loss, so in regression
    it is multiplied by squared gradient / curvature: y in metres and in millimetres give the same
    model. What trees leave unexplained of y may be a thousandth of that, and the noise is to be
    small beside it (docs/defaults.md).
    """
    if is_ranking(loss):
        return size.unit * size.curvature * size.spread**2 * 1e-3
    if loss.task != "regression":
        return size.unit * (1e-5 if loss.convex else 2e-3 * (size.depth or 0.5))
    scale = size.square / typical_curvature(size, loss)
    return size.unit * scale * (1e-6 if loss.convex else 1e-3)


def structure_noise_unit(size: Size, loss: Loss, leaf_method: str) -> float:
    """Root of the curvature at the start where it has a unit and Newton steps divide by it, else 1.

    The noise of a Newton leaf is that of its gradient times the root of its curvature. The noise of
    the rows that structures are searched on has to grow with it: amounts in cents and in euros give
    the same model.
    """
    has_unit = loss.curvature_has_unit and leaf_method == "newton" and size.curvature > 0.0
    return math.sqrt(size.curvature) if has_unit else 1.0


def auto_shrink_rate(size: Size, loss: Loss, leaf_method: str) -> float:
    """The paper's 1e-3 for non-convex losses and rankings; 1e-5 is enough to keep a convex chain
    stationary.

    Where gradient steps are divided by the curvature of a loss of numbers, the rate is multiplied
    with it: how far a step shrinks the model must not depend on the unit of y.
    """
    unit = _shrink_unit(size, loss, leaf_method)
    return unit * (1e-5 if loss.convex and not is_ranking(loss) else 1e-3)


# Of the curvature at the start: what a chain shrinks by where it begins to cool down.
HOT_SHRINK = 0.3


def auto_hot_shrink_rate(size: Size, loss: Loss, leaf_method: str) -> float:
    """A third of the curvature for losses with valleys, where a chain is hot: scores stay near the
    start, between few valleys, until it cools down (docs/defaults.md).
    """
    if size.depth > 0.0:
        # The curvature of a Newton step is 1.
        return HOT_SHRINK * (typical_curvature(size, loss) if leaf_method == "gradient" else 1.0)
    return auto_shrink_rate(size, loss, leaf_method)


def _shrink_unit(size: Size, loss: Loss, leaf_method: str) -> float:
    has_unit = loss.task in ("regression", "ranking") and leaf_method == "gradient"
    return typical_curvature(size, loss) if has_unit else 1.0


def structure_rows(
    n_rows: int,
    sample: str | float = "auto",
    *,
    n_steps: int = 100,
    several: bool = False,
    ranking: bool = False,
) -> int:
    """Rows that a structure is searched on: a number, a fraction, or by the size of the data.

    Auto takes every row up to 50,000, where drawing costs nearly what it saves; then 80 sqrt(N),
    but at least 25,000 and no more than 50,000 or a fiftieth. It is a third more for a thousand
    steps than for a hundred, as the trees of a long chain have less and less to go by, and twice
    that for `several` outputs, each of which has few rows that tell about it; in a thousand steps
    these use every row up to 100,000. A `ranking` uses at most half of its rows. Rows are drawn by
    importance, and other ones for each tree; docs/benchmarks.md shows what fewer or more cost.
    """
    if sample == "auto" and ranking:
        rows = structure_rows(n_rows, n_steps=n_steps, several=several)
        return max(1, min(rows, round(RANKING_SAMPLE * n_rows)))
    if sample == "auto":
        times = 2 if several else 1
        if n_rows <= 50_000 * min(times, max(1.0, n_steps / 500.0)):
            return n_rows
        n_sampled = max(25_000.0, min(80.0 * math.sqrt(n_rows), max(50_000.0, n_rows / 50.0)))
        return min(n_rows, round(times * n_sampled * power(max(1.0, n_steps / 100.0), 0.125)))
    if isinstance(sample, Integral):
        return min(n_rows, int(sample))
    return max(1, round(float(sample) * n_rows))


def structure_outputs(n_outputs: int, sample: str | float = "auto") -> int:
    """Outputs that a structure is searched on: the root of their number, at least 3; all of them
    where the rows are stated.

    3 of 7 classes (covertype) gave a test loss 0.7 % lower than all 7 in half the time, 4 of 10
    (poker_100k) 24 % lower (docs/defaults.md); of 10 classes that are all alike, 3 cost 0.3 %.
    """
    if sample != "auto":
        return n_outputs
    return min(n_outputs, max(3, math.ceil(math.sqrt(n_outputs))))
