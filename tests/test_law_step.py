"""One step with the noise off is the paper's formula, to 1e-12.

    theta_j = -eps sum over leaf j of w g / C_j,      C_j = sum of w + l2      (gradient leaves)
                                                          sum of w h + l2      (Newton leaves)
    f' = offset + rho (f - offset) + theta            g, h at the unshrunk f

Learning rate 0.7 and shrink rate 0.9 are large: where the gradient is taken cannot hide.
"""

import math

import numpy as np
import pytest

from law import (
    FixedStructure,
    Record,
    binary_set,
    bits_of,
    projector,
    run_chain,
    splits,
    stationary_mean,
)
from problems import boosted
from sglb.bins import Bins
from sglb.callbacks import BaseCallback
from sglb.leaves import LeafRule
from sglb.losses import Logistic, Softmax, Squared
from sglb.samplers import Langevin, Plain
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet

EPS, GAMMA = 0.7, 0.9
RHO = 1.0 - GAMMA * EPS
N_STEPS = 4  # later, Newton steps so large have saturated a softmax and lost digits


def derivatives(loss, y, raw):
    """Gradient and second derivative (n_outputs, n_rows), from the textbook."""
    if loss.name == "squared":
        return raw - y, np.ones_like(raw)
    if loss.name == "logistic":
        p = 1.0 / (1.0 + np.exp(-raw))
        return p - y, p * (1.0 - p)
    p = np.exp(raw) / np.exp(raw).sum(axis=0)
    return p - (y == np.arange(len(raw))[:, None]), p * (1.0 - p)


def leaf_of_values(structure, bins, X):
    """Leaf of each row from its values: x <= threshold goes left, NaN where the split says."""
    leaf = np.zeros(len(X), dtype=int)
    for d, (feature, low, high) in enumerate(zip(*structure, strict=True)):
        x = X[:, feature]
        threshold = bins.thresholds[feature, high - 1] if high else -np.inf
        left = np.where(np.isnan(x), low == 0, x <= threshold)
        leaf += (~left).astype(int) << d
    return leaf


def step_by_formula(raw, leaf, n_leaves, y, weight, loss, leaves, offset):
    """Return the next raw scores and the leaf values."""
    gradient, hessian = derivatives(loss, y, raw)
    w = np.ones(len(y)) if weight is None else weight
    values = np.zeros((n_leaves, len(raw)))
    for k in range(len(raw)):
        mean_curvature = (w * hessian[k]).sum() / w.sum()
        for j in range(n_leaves):
            here = leaf == j
            if w[here].sum() == 0.0:
                continue
            curvature = w[here].sum()
            if leaves.method == "newton":
                curvature = max((w * hessian[k])[here].sum(), 1e-3 * mean_curvature * curvature)
            step = -(w * gradient[k])[here].sum() / (curvature + leaves.l2)
            if leaves.method == "newton" and loss.name == "logistic":
                step = np.clip(step, -2.0, 2.0)  # EPS is above 1/2, else 1 / EPS
            values[j, k] = EPS * step
    return offset[:, None] + RHO * (raw - offset[:, None]) + values[leaf].T, values


class CompareWithFormula(BaseCallback):
    """Takes every step a second time by the formula and compares."""

    def __init__(self, X, bins, leaves, offset):
        self.X, self.bins, self.leaves, self.offset = X, bins, leaves, offset
        self.depths = []

    def start(self, info):
        self.raw = info.raw.copy()

    def step(self, info):
        rows, structure = info.rows.data, info.structure
        leaf = leaf_of_values(structure, self.bins, self.X)
        raw, values = step_by_formula(
            self.raw,
            leaf,
            structure.n_leaves,
            rows.target.values,
            rows.target.kernel_weight,
            info.loss,
            self.leaves,
            self.offset,
        )
        np.testing.assert_allclose(info.values, values, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(info.raw, raw, rtol=1e-12, atol=1e-12)
        self.depths.append(len(structure.features))
        self.raw = info.raw.copy()


def targets(loss, n, rng):
    if loss.name == "squared":
        return rng.normal(size=n) * 3.0
    return rng.integers(0, max(loss.n_outputs, 2), size=n).astype(float)


def run_and_compare(X, y, weight, loss, leaves, offset, max_depth=3):
    """Run the loop without noise beside the formula; return the callback and the trace."""
    bins = Bins.fit(X, 8)
    rows = TrainingSet.build(bins.encode(X), bins.n_codes, Target.of(y, weight))
    callback = CompareWithFormula(X, bins, leaves, offset)
    trace = boosted(
        rows,
        loss,
        Langevin(EPS, temperature=0.0, shrink_rate=GAMMA),
        GreedySearch(max_depth, l2=leaves.l2),
        leaves,
        Trace(bins, max_depth, offset),
        n_steps=N_STEPS,
        seed=5,
        callbacks=[callback],
    )
    assert len(callback.depths) == N_STEPS
    return callback, trace


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shifted", [False, True], ids=["zero", "offset"])
@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("method", ["gradient", "newton"])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(3)], ids=lambda x: x.name)
def test_every_step_is_the_formula(loss, method, l2, shifted, weighted, missing):
    rng = np.random.default_rng(3)
    n = 61
    X = rng.normal(size=(n, 5))
    if missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    weight = None
    if weighted:
        weight = rng.exponential(size=n) * 4.0
        weight[::7] = 0.0
    offset = rng.normal(size=loss.n_outputs) if shifted else np.zeros(loss.n_outputs)
    callback, trace = run_and_compare(
        X, targets(loss, n, rng), weight, loss, LeafRule(method, l2), offset
    )
    assert callback.depths == [3] * N_STEPS
    # What is stored is what happened.
    assert (trace.replay(trace.bins.encode(X)) == callback.raw).all()


@pytest.mark.parametrize("loss", [Squared(), Softmax(3)], ids=lambda x: x.name)
@pytest.mark.parametrize(("n_values", "depth"), [(1, 0), (2, 1), (3, 2)])
def test_a_tree_that_ends_early_takes_the_same_step(loss, n_values, depth):
    rng = np.random.default_rng(4)
    X = rng.integers(0, n_values, size=(40, 1)).astype(float)
    offset = np.full(loss.n_outputs, 0.3)
    callback, _ = run_and_compare(
        X, targets(loss, 40, rng), None, loss, LeafRule(), offset, max_depth=5
    )
    assert callback.depths == [depth] * N_STEPS


def test_an_empty_leaf_has_value_zero_with_and_without_noise():
    # The second split repeats the first: two of four leaves are empty.
    rows = binary_set(bits_of(np.arange(6) % 2, 1), np.arange(6.0))
    for temperature in (0.0, 1.0):
        values = []

        class Note(Record):
            def step(self, info, values=values):
                values.append(info.values[:, 0])

        rule = FixedStructure(splits(0, 0))
        run_chain(rows, Squared(), Langevin(EPS, temperature, GAMMA), rule, Note(), 50)
        values = np.array(values)
        assert (values[:, [1, 2]] == 0.0).all()
        assert (values[:, [0, 3]] != 0.0).all()


def test_the_gradient_is_taken_before_the_shrink():
    # One leaf, y = 10, f = 4: f' = 0.37 * 4 - 0.7 * (4 - 10) = 5.68; after the shrink it were 7.44.
    rows = binary_set([[0, 0]], np.array([10.0, 10.0]))
    callback = Record(start=4.0)
    run_chain(rows, Squared(), Langevin(EPS, 0.0, GAMMA), FixedStructure(splits()), callback, 1)
    np.testing.assert_allclose(callback.raw[0, 0], 5.68, rtol=0, atol=1e-12)


def test_the_offset_is_never_shrunk():
    # y equals the offset: nothing pulls, so nothing moves.
    rows = binary_set([[0, 1]], np.array([7.0, 7.0]))
    callback = Record()
    run_chain(
        rows,
        Squared(),
        Langevin(EPS, 0.0, GAMMA),
        FixedStructure(splits(0)),
        callback,
        5,
        offset=[7.0],
    )
    np.testing.assert_allclose(callback.raw, 7.0, rtol=0, atol=1e-12)


def test_without_noise_the_chain_ends_at_the_ridge_solution():
    # m = (gamma I + P)^-1 P y solves mean over leaves of (f - y) + gamma f = 0.
    y = np.array([1.0, 2.0, -1.0, 5.0, 0.0, 3.0])
    bits = [[0, 0, 0, 1, 1, 1]]
    callback = Record(burn_in=99)
    run_chain(
        binary_set(bits, y),
        Squared(),
        Langevin(EPS, 0.0, GAMMA),
        FixedStructure(splits(0)),
        callback,
        100,
    )
    expected = stationary_mean([projector(np.array(bits[0]))], y, GAMMA)
    np.testing.assert_allclose(callback.raw[0, 0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("trust_radius", "step"), [(math.inf, 8000.0), (2.0, 2.0)])
def test_a_saturated_newton_leaf_counts_as_a_thousandth_of_the_mean_curvature(
    monkeypatch, trust_radius, step
):
    # Left: f = 0, four rows with h = 1/4 each. Right: f = 30, four rows with h = 1e-13 each, all
    # wrong (g = 1): the Newton step would be -EPS * 1e13. Mean curvature 1/8, least 4 / 8000. Of
    # that the logistic loss takes no more than its trust radius.
    monkeypatch.setattr(Logistic, "trust_radius", trust_radius)
    rows = binary_set([[0, 0, 0, 0, 1, 1, 1, 1]], np.array([0.0, 1.0, 0.0, 1.0, 0, 0, 0, 0]))
    callback = Record(start=np.array([[0.0] * 4 + [30.0] * 4]))
    sampler, rule = Langevin(EPS, 0.0, GAMMA), FixedStructure(splits(0))
    run_chain(rows, Logistic(), sampler, rule, callback, 1, leaves=LeafRule("newton"))
    np.testing.assert_allclose(callback.raw[0, 0, :4], 0.0, atol=1e-12)
    np.testing.assert_allclose(callback.raw[0, 0, 4:], RHO * 30.0 - EPS * step, rtol=1e-12)


def test_no_temperature_and_no_shrink_is_plain_gradient_boosting():
    rng = np.random.default_rng(6)
    rows = binary_set(rng.integers(0, 2, size=(4, 30)), rng.normal(size=30))
    runs = [
        run_chain(rows, Squared(), sampler, GreedySearch(2), Record(), 20).raw
        for sampler in (Plain(EPS), Langevin(EPS, 0.0, 0.0))
    ]
    assert (runs[0] == runs[1]).all()


def test_langevin_noise_is_the_root_of_two_n_over_eps_beta():
    n_rows, beta = 640, 50.0
    move = Langevin(learning_rate=0.1, temperature=n_rows / beta, shrink_rate=0.3).move(17)
    assert move.noise == pytest.approx(np.sqrt(2 * n_rows / (0.1 * beta)), rel=1e-15)
    assert move.shrink == pytest.approx(0.97, rel=1e-15)
    assert (move.learning_rate, move.subsample) == (0.1, 1.0)
