"""Training rows, from a table as read to the codes that a chain runs on.

Categorical columns are encoded here, because the choice of combinations asks a short chain what
single columns leave unexplained.
"""

import math
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb import sums
from sglb.bins import Bins
from sglb.boosting import boost
from sglb.categories import Encoder, Encoding, Part, choose_combinations, statistic_targets
from sglb.chain import Chain
from sglb.defaults import Size
from sglb.ensemble import Ensemble
from sglb.frame import Features
from sglb.leaves import LeafRule
from sglb.losses import Loss, get_loss
from sglb.losses.blocks import sample_rows, take_weight
from sglb.losses.minimisers import quantile, spread
from sglb.losses.shapes import user_shape
from sglb.noise import chain_seed
from sglb.samplers import Plain
from sglb.shard import Shard
from sglb.structure import GreedySearch
from sglb.training_set import MOST_REPEATS, TrainingSet, weight_unit

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Rows that combinations are chosen on. Of a combination that says nothing the gain there has a
# standard deviation below .07 %, however many levels it has; the least gain asked for is .4 %.
CHOICE_ROWS = 100_000

# The short chain: far enough to use up what single columns say.
QUICK_STEPS = 60
QUICK_DEPTH = 4
QUICK_RATE = 0.15
QUICK_L2 = 3.0

# Columns that are split one level against the others; those of more levels become means of the
# target. A class: up to 64 levels, and up to what a byte holds where levels have so many rows on
# average. Against means from 65 levels on that changed the test log loss of flights_2001_3m by
# -.4 %, of kick by 0 and of amazon by -.7 %, whose levels have 84 rows and more. A number: levels
# have an order by their means, which saves splits; -1.4 % of the test error of diamonds.
MANY_LEVELS = 64
MOST_LEVELS = 254
ROWS_PER_LEVEL = 50
LEVELS_FOR_NUMBERS = 2

# Standard deviations of a normal between its outer percentiles.
OUTER = 4.65
# Residuals that the flatness of a loss is looked at, in those of the best constant.
NEAR = 0.1

# Raw scores of classes at which the depth of a loss's valleys is looked at.
ODDS = (-30.0, -10.0, -3.0, -1.0, -0.3, 0.3, 1.0, 3.0, 10.0, 30.0)


class Rows(NamedTuple):
    """Training rows as read: features, target as numbers, weights, classes behind the numbers."""

    features: Features
    target: Floats
    weight: Floats | None
    classes: Array | None

    @property
    def total_weight(self) -> float:
        """The N of the theory."""
        return sums.total_weight(len(self.target), self.weight)

    def without_features(self) -> "Rows":
        """Return the rows without what was read of the table, which may be a copy of it."""
        return self._replace(features=self.features.take([]))

    @property
    def task(self) -> str:
        """What metrics may be asked for."""
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) <= 2 else "multiclass"

    def size(self, loss: Loss, best: Floats) -> Size:
        """Return what the rules for "auto" ask of the data; `best` is the best constant score."""
        size = Size(
            len(self.features),
            self.total_weight,
            weight_unit(self.weight),
            n_columns=len(self.features.is_categorical),
        )
        some = loss.representative_rows(len(self.target))
        y, weight = self.target[some], take_weight(self.weight, some)
        raw = user_shape(np.repeat(best[:, None], len(y), axis=1))

        def mean_square(raw: Floats) -> float:
            with np.errstate(over="ignore"):  # infinity is refused where it matters
                return loss.n_outputs * _mean_of_outputs(np.square(loss.gradient(y, raw)), weight)

        length = 1.0
        if self.classes is None:
            size = replace(size, square=mean_square(raw))
            # Gradients that grow with the residuals have no width to compare with y's.
            if loss.lipschitz is not None or not loss.proven:
                length = spread(y, weight)
                low, high = (quantile(y, weight, level) for level in (0.01, 0.99))
                size = replace(size, spread=length, tail=max(length, (high - low) / OUTER))
                if loss.is_residual(y) and size.square > 0.0:
                    near = mean_square(y + NEAR * (raw - y))
                    size = replace(size, flatness=math.sqrt(near / size.square))
        if not loss.convex and loss.independent:
            size = replace(size, depth=self._depth(loss, best))
        bend = loss.curvature(y, raw, length)
        return replace(size, curvature=_mean_of_outputs(bend, weight))

    def _depth(self, loss: Loss, best: Floats) -> float:
        """Return how far below the mean loss at `best` the rows' own optima are, on average.

        Each row may choose among constants: quantiles of the target or, for classes, log-odds.
        """
        some = sample_rows(len(self.target))
        y, weight = self.target[some], take_weight(self.weight, some)
        constants = np.quantile(y, np.linspace(0.0, 1.0, 33)) if self.classes is None else ODDS
        with np.errstate(all="ignore"):
            values = np.stack(
                [
                    loss.loss(y, user_shape(np.repeat(row[:, None], len(y), axis=1)))
                    for row in (best, *(np.full_like(best, constant) for constant in constants))
                ]
            )
            known = np.where(np.isnan(values), np.inf, values)
            depth = sums.mean(values[0] - known.min(axis=0), weight)
        return depth if math.isfinite(depth) else 0.0


def warn_of_repeats(weight: Floats | None) -> None:
    """Warn where weights that may be meant as importance are taken for numbers of equal rows."""
    mean = 1.0 if weight is None else sums.mean(weight)
    if weight is None or mean <= MOST_REPEATS:
        return
    warnings.warn(
        f"sample_weight has the mean {mean:.6g}: a weight is a number of equal rows, and"
        f" the settings are those of {MOST_REPEATS * len(weight):,.0f} rows, {MOST_REPEATS:g} for"
        " each row at most; if the weights only say which rows matter more, divide them by their"
        " mean",
        UserWarning,
        stacklevel=4,
    )


def _mean_of_outputs(values: Floats, weight: Floats | None) -> float:
    """Return the weighted mean over rows and outputs of values (n_rows,) or (n_rows, n_outputs)."""
    if weight is not None and values.ndim > 1:
        weight = np.repeat(weight, values.shape[1])
    return sums.mean(values, weight)


class Coded(NamedTuple):
    """Training rows as codes (n_features, n_copies * n_rows), and how other rows become codes."""

    columns: NDArray[np.uint8]
    bins: Bins
    is_level: NDArray[np.bool_]
    n_copies: int
    encoding: Encoding | None

    def encode(self, features: Features, n_threads: int) -> NDArray[np.uint8]:
        """Return the codes of other rows."""
        if self.encoding is None:
            return self.bins.encode(features.values, n_threads)
        return self.encoding.codes(features, self.bins, n_threads)

    def training_set(self, rows: Rows, n_threads: int) -> TrainingSet:
        """Return what a chain learns from: in each of c copies a row has a c-th of its weight."""
        target, weight = rows.target, rows.weight
        if self.n_copies > 1:
            weight = np.ones(len(target)) if weight is None else weight
            weight = np.tile(weight / self.n_copies, self.n_copies)
            target = np.tile(target, self.n_copies)
        return TrainingSet.build(
            self.columns,
            self.bins.n_codes,
            target,
            weight,
            n_threads,
            n_copies=self.n_copies,
            is_level=self.is_level,
        )


def most_levels(rows: Rows, max_bins: int) -> int:
    """Return up to how many levels a column is split by level."""
    if rows.classes is None:
        return LEVELS_FOR_NUMBERS
    if max_bins < MANY_LEVELS:
        return max_bins
    return max(MANY_LEVELS, min(MOST_LEVELS, len(rows.target) // ROWS_PER_LEVEL))


def encode_rows(rows: Rows, max_bins: int, seed: int, n_threads: int) -> Coded:
    """Choose bins, levels, statistics and combinations; return the rows as codes."""
    values = rows.features.values
    if not rows.features.labels:
        bins = Bins.fit(values, max_bins, seed=seed, n_threads=n_threads)
        is_level = np.zeros(bins.n_features, dtype=np.bool_)
        return Coded(bins.encode(values, n_threads), bins, is_level, 1, None)
    encoder = Encoder(
        rows.features,
        statistic_targets(rows.target, None if rows.classes is None else len(rows.classes)),
        rows.weight,
        unit=weight_unit(rows.weight),
        most_levels=most_levels(rows, max_bins),
        many=min(max_bins, MANY_LEVELS),
        seed=seed,
        n_threads=n_threads,
    )
    parts = []
    if values.shape[1]:
        bins = Bins.fit(values, max_bins, seed=seed, n_threads=n_threads)
        codes = np.tile(bins.encode(values, n_threads), encoder.n_copies)
        parts.append(Part(codes, bins, False))
    parts += encoder.single()
    if encoder.can_combine():
        parts += encoder.combined(_combinations(encoder, parts, rows, seed, n_threads))
    columns = np.concatenate([part.columns for part in parts])
    return Coded(columns, _joined(parts), _level_mask(parts), encoder.n_copies, encoder.encoding())


def _joined(parts: list[Part]) -> Bins:
    return Bins.join([part.bins for part in parts])


def _level_mask(parts: list[Part]) -> NDArray[np.bool_]:
    return np.repeat([part.is_level for part in parts], [len(part.columns) for part in parts])


def _combinations(
    encoder: Encoder, parts: list[Part], rows: Rows, seed: int, n_threads: int
) -> list[tuple[int, ...]]:
    """Choose the columns to combine by the residuals of a short chain on single columns."""
    some = encoder.sample_rows(CHOICE_ROWS)
    weight = take_weight(rows.weight, some)
    target, loss = _quick_problem(rows, encoder.targets[:, some], some)
    bins = _joined(parts)
    training_set = TrainingSet.build(
        np.ascontiguousarray(np.concatenate([part.columns[:, some] for part in parts])),
        bins.n_codes,
        target,
        weight,
        n_threads,
        is_level=_level_mask(parts),
    )
    l2 = QUICK_L2 * encoder.unit
    rule = GreedySearch(
        QUICK_DEPTH,
        l2=l2,
        newton=True,
        structure_rows=max(1, len(some) // 2),
        n_threads=n_threads,
    )
    start = loss.init(target, weight)
    trace = Ensemble(bins, QUICK_DEPTH, start, keep_trees=False)
    quick = Shard.start(training_set, loss, trace, newton=True, n_threads=n_threads)
    leaves = LeafRule("newton", l2)
    chain = Chain(quick, Plain(QUICK_RATE), rule, leaves, trace, seed=chain_seed(seed))
    boost(chain, QUICK_STEPS)
    raw = user_shape(chain.rows.raw)
    residuals = loss.gradient(target, raw).reshape(len(some), -1).T
    return choose_combinations(
        np.ascontiguousarray(encoder.levels[:, some]),
        encoder.n_levels,
        np.ascontiguousarray(residuals),
        weight,
        many=encoder.many,
        unit=encoder.unit,
        n_threads=n_threads,
    )


def _quick_problem(rows: Rows, targets: Floats, some: NDArray[np.intp]) -> tuple[Floats, Loss]:
    """Return target and loss of the short chain, one for each task whatever the final loss is.

    Classes without a statistic of their own are one class.
    """
    if rows.classes is None:
        return rows.target[some], get_loss("squared")
    if len(rows.classes) <= 2:
        return rows.target[some], get_loss("logistic")
    n_kept = len(targets)
    target = np.where(targets.any(axis=0), targets.argmax(axis=0), n_kept).astype(np.float64)
    rest = n_kept < len(rows.classes)
    return target, get_loss("softmax", n_classes=n_kept + rest)
