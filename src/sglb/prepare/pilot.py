"""Which categorical columns to combine, by what a pilot chain on single columns cannot explain."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sglb.bins import Bins
from sglb.boosting import boost
from sglb.categories import Encoder, Part, choose_combinations
from sglb.chain import Chain
from sglb.leaves import LeafRule
from sglb.losses import Loss, get_loss
from sglb.losses.shapes import user_shape
from sglb.noise import chain_seed
from sglb.samplers import Plain
from sglb.shard import Shard
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet

Floats = NDArray[np.float64]

# Rows that combinations are chosen on. Of a combination that says nothing the gain there has a
# standard deviation below 0.07 %, however many levels it has; the least gain asked for is 0.4 %.
CHOICE_ROWS = 100_000

# The pilot chain: far enough to use up what single columns say.
PILOT_STEPS = 60
PILOT_DEPTH = 4
PILOT_RATE = 0.15
PILOT_L2 = 3.0


def joined_bins(parts: list[Part]) -> Bins:
    """Return the bins of the features of all parts."""
    return Bins.join([part.bins for part in parts])


def level_mask(parts: list[Part]) -> NDArray[np.bool_]:
    """Return which features have levels without an order."""
    return np.repeat([part.is_level for part in parts], [part.bins.n_features for part in parts])


def choose_members(
    encoder: Encoder, parts: list[Part], target: Target, seed: int, n_threads: int
) -> list[tuple[int, ...]]:
    """Choose the columns to combine by the residuals of a pilot chain on single columns."""
    sampled = encoder.sample_rows(CHOICE_ROWS)
    target, loss = _pilot_problem(target.take(sampled), encoder.targets[:, sampled])
    bins = joined_bins(parts)
    training_set = TrainingSet.build(
        np.ascontiguousarray(np.concatenate([part.sample(sampled) for part in parts])),
        bins.n_codes,
        target,
        n_threads,
        is_level=level_mask(parts),
    )
    l2 = PILOT_L2 * encoder.unit
    rule = GreedySearch(
        PILOT_DEPTH,
        l2=l2,
        newton=True,
        structure_rows=max(1, len(sampled) // 2),
        n_threads=n_threads,
    )
    start = loss.init(target)
    trace = Trace(bins, PILOT_DEPTH, start, keep_trees=False)
    pilot = Shard.start(training_set, loss, trace, newton=True, n_threads=n_threads)
    leaves = LeafRule("newton", l2)
    chain = Chain(pilot, Plain(PILOT_RATE), rule, leaves, trace, seed=chain_seed(seed))
    boost(chain, PILOT_STEPS)
    raw = user_shape(chain.rows.raw)
    residuals = loss.gradient(target.values, raw).reshape(len(sampled), -1).T
    return choose_combinations(
        np.ascontiguousarray(encoder.levels[:, sampled]),
        encoder.n_levels,
        np.ascontiguousarray(residuals),
        target.weight,
        many=encoder.many,
        unit=encoder.unit,
        n_threads=n_threads,
    )


def _pilot_problem(target: Target, targets: Floats) -> tuple[Target, Loss]:
    """Return target and loss of the pilot chain, one for each task whatever the final loss is.

    Classes without a statistic of their own are one class.
    """
    if not target.n_classes:
        return target, get_loss("squared")
    if target.task == "binary":
        return target, get_loss("logistic")
    n_kept = len(targets)
    values = np.where(targets.any(axis=0), targets.argmax(axis=0), n_kept).astype(np.float64)
    has_others = n_kept < target.n_classes
    return replace(target, values=values), get_loss("softmax", n_classes=n_kept + has_others)
