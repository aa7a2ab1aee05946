"""Numbers of all rows have the same bits whatever the order of the rows.

A row keeps its number in the noise wherever it lies, so whole chains are compared without noise.
"""

from dataclasses import astuple

import numpy as np
import pytest

from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor, _core
from sglb.categories import choose_combinations
from sglb.losses import LOSSES, get_loss
from sglb.losses.constants import best_constant
from sglb.losses.minimisers import class_weights, quantile, spread
from sglb.metrics import METRICS
from sglb.prepare.rows import size_of
from sglb.target import Target, weight_unit
from sglb.totals import Totals
from sglb.training_set import TrainingSet

N = 1000
rng = np.random.default_rng(4)
X = rng.normal(size=(N, 5))
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2]
# Sums of such numbers in row order differ in their last digits from order to order.
WEIGHT = rng.uniform(0.01, 3.0, N)
NUMBERS = np.round(SIGNAL + 0.3 * rng.normal(size=N), 2)  # rounded, so that there are ties
ORDERS = [rng.permutation(N) for _ in range(3)]

# A right decision costs nothing; what a wrong one does, differs from row to row.
COSTS = rng.uniform(0.1, 3.0, (N, 4, 4)) * (1.0 - np.eye(4))
GROUPS = rng.integers(0, 90, N)
KINDS = {"regression": SGLBRegressor, "ranking": SGLBRanker}

# Noise of scores, and which of two equal scores is above, go by the numbers of the rows.
BY_NUMBER = {"lambdarank", "stochastic_rank", "yeti"}

every_loss = pytest.mark.parametrize("name", sorted(set(LOSSES) - BY_NUMBER))
weighting = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])


def problem(name):
    """A loss of its task, targets and raw scores."""
    loss = get_loss(name, n_classes=4)
    if loss.task == "regression":
        y = np.exp(SIGNAL) if loss.link(np.zeros(1)) == 1.0 else NUMBERS
    else:
        y = np.digitize(SIGNAL, [-1.0, 0.0, 1.0]) if loss.n_outputs > 1 else SIGNAL > 0.0
    raw = X[:, 3] if loss.n_outputs == 1 else np.ascontiguousarray(X[:, : loss.n_outputs])
    return loss, y.astype(np.float64), raw


def taken(values, order):
    return None if values is None else values[order]


def assert_order_does_not_matter(compute):
    """compute(order) returns numbers of the rows in that order."""
    wanted = np.asarray(compute(np.arange(N)), dtype=np.float64)
    assert np.isfinite(wanted).all()
    for order in ORDERS:
        assert np.array_equal(np.asarray(compute(order), dtype=np.float64), wanted)


def test_the_numbers_of_this_suite_depend_on_their_order_when_floats_are_added():
    assert len({np.cumsum(WEIGHT[order])[-1] for order in ORDERS}) > 1
    assert len({(WEIGHT * NUMBERS)[order].sum() for order in ORDERS}) > 1


@every_loss
@weighting
def test_a_chain_starts_from_the_same_bits(name, weight):
    loss, y, _ = problem(name)
    assert_order_does_not_matter(lambda order: loss.init(Target.of(y[order], taken(weight, order))))


@every_loss
@weighting
def test_widths_and_what_auto_goes_by_are_the_same_bits(name, weight):
    loss, y, _ = problem(name)
    classes = () if loss.task == "regression" else np.arange(4)

    def facts(order):
        target = Target.of(y[order], taken(weight, order), classes=classes)
        reordered = loss.adapt(target)
        size = size_of(target, X.shape[1], reordered, reordered.init(target))
        return [*reordered.parameters().values(), *vars(size).values()]

    assert_order_does_not_matter(facts)


@weighting
def test_the_best_constant_of_any_loss_is_the_same_bits(weight):
    for loss, y, _ in (problem("huber"), problem("softmax")):
        assert_order_does_not_matter(
            lambda order, loss=loss, y=y: best_constant(
                loss, Target.of(y[order], taken(weight, order))
            )
        )


@pytest.mark.parametrize("level", [0.1, 0.25, 0.5, 0.9])
@weighting
def test_quantiles_among_ties_and_spreads_are_the_same_bits(level, weight):
    assert_order_does_not_matter(
        lambda order: [
            quantile(Target.of(NUMBERS[order], taken(weight, order)), level),
            spread(Target.of(NUMBERS[order], taken(weight, order))),
            spread(Target.of(np.where(SIGNAL > 2.0, SIGNAL, 0.0)[order], taken(weight, order))),
        ]
    )


def test_a_weighted_quantile_finds_a_tie_that_sums_of_floats_miss():
    # Ten weights of .1 add up to .9999999999999999 one by one, and half of that is no sum of five.
    y = np.arange(10.0)
    assert quantile(Target.of(y, np.full(10, 0.1)), 0.5) == quantile(Target.of(y), 0.5) == 4.5


def target(y, weight, order):
    """The rows in an order, labels 0 and 1 with the costs of decisions about them."""
    classes = np.arange(2) if set(y) <= {0.0, 1.0} else ()
    rows = Target.of(y[order], taken(weight, order), classes=classes)
    return rows.with_costs(COSTS[order, :2, :2]) if len(classes) else rows


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@weighting
def test_metrics_are_the_same_bits(metric, weight):
    task = metric.tasks[0]
    loss, y, raw = problem("squared" if task == "regression" else "logistic")
    raw = np.round(raw, 2)  # ties for the ranks
    assert_order_does_not_matter(lambda order: [metric(target(y, weight, order), raw[order], loss)])


def test_facts_of_weights_and_of_classes_are_the_same_bits():
    _, y, _ = problem("softmax")

    def facts(order):
        codes = np.ones((1, N), dtype=np.uint8)
        rows = TrainingSet.build(codes, np.array([2]), Target.of(y[order], WEIGHT[order]))
        units = [weight_unit(WEIGHT[order] / 1e3), weight_unit(WEIGHT[order], 4)]
        shares = class_weights(Target.of(y[order], WEIGHT[order]), 5)
        return [*astuple(Totals.of([rows])), *units, *shares]

    assert_order_does_not_matter(facts)


@weighting
def test_sums_by_level_and_gains_of_combinations_are_the_same_bits(weight):
    levels = rng.integers(0, 40, (3, N)).astype(np.int32)
    n_levels = np.full(3, 40)
    members = np.array([[0, 1, -1], [0, 1, 2], [2, -1, -1]], dtype=np.int32)
    residuals = np.stack([X[:, 3] * np.exp(X[:, 4]), X[:, 0]])

    def numbers(order):
        columns = _core.Levels(np.ascontiguousarray(levels[:, order]), n_levels)
        reordered = np.ascontiguousarray(residuals[:, order])
        targets = _core.LevelTargets(reordered, taken(weight, order))
        sums, counts, (gains, errors) = np.empty((2, 120)), np.empty(120), np.empty((2, 3))
        _core.level_sums(columns, targets, sums, counts, 2)
        _core.combination_gains(columns, members, targets, 5.0, gains, errors, 2)
        return np.concatenate([sums.reshape(-1), counts, gains, errors])

    assert_order_does_not_matter(numbers)


def test_combinations_are_chosen_where_weights_are_far_apart():
    """A level whose weights are nothing beside the largest does not spoil the others."""
    levels = rng.integers(0, 70, (2, N)).astype(np.int32)
    targets = np.where((levels[0] + levels[1]) % 2 == 0, 1.0, -1.0)[None]
    weight = np.where(levels[0] == 3, 1e-30, 1.0)
    chosen = choose_combinations(levels, np.full(2, 70), targets, weight, many=64)
    assert chosen == [(0, 1)]


# Of more classes than three some are drawn, by what the rows of some numbers show. The weights add
# up to less than 2^11: beyond that gradients may be rounded up or down by the numbers of the rows.
# Of xendcg a part of the relevances is drawn by the numbers of the rows.
@pytest.mark.parametrize("name", sorted(set(LOSSES) - BY_NUMBER - {"softmax", "xendcg"}))
@weighting
def test_a_whole_chain_without_noise_is_the_same_bits(name, weight):
    loss, y, _ = problem(name)
    kind = KINDS.get(loss.task, SGLBClassifier)
    model = kind(loss=name, sampler="plain", random_strength=0, n_estimators=20, random_state=0)

    def numbers(order):
        more = {"group": GROUPS[order]} if loss.by_group else {}
        if loss.uses_costs:
            more["costs"] = COSTS[order]
        model.fit(X[order], y[order], sample_weight=taken(weight, order), **more)
        arrays = [array.reshape(-1) for array in model.trace_.arrays().values()]
        variance = model._model.residual_variance
        return np.concatenate([*arrays, model.trace_.offset, [variance or 0.0]])

    assert_order_does_not_matter(numbers)
