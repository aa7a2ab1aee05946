"""Chains on frozen partitions: kernels equal their twins, bits depend on the draw alone."""

from types import SimpleNamespace

import numpy as np
import pytest

import reference_posterior as reference
from problems import draw_posterior, make_trace
from sglb.errors import ChainDiverged
from sglb.losses import Logistic, Poisson, Softmax, Squared
from sglb.posterior import (
    DrawPlan,
    FrozenChain,
    LeafDraws,
    LeafPrior,
    LossEnergy,
    QuadraticEnergy,
    StoredPartitions,
    TreePartitions,
)
from sglb.target import Target

THREADS = (1, 2, 3, 8)


def problem(n_rows=60, n_outputs=1, n_partitions=7, seed=3):
    """Partitions with empty leaves, curvatures and weights of some rows."""
    rng = np.random.default_rng(seed)
    n_leaves = rng.integers(2, 9, n_partitions)
    leaves = (rng.random((n_partitions, n_rows)) * (n_leaves[:, None] - 1)).astype(np.int32)
    weight = rng.uniform(0.3, 3.0, n_rows)
    raw = rng.normal(size=(n_outputs, n_rows))
    loss = Logistic() if n_outputs == 1 else Softmax(n_outputs)
    y = rng.integers(0, max(n_outputs, 2), n_rows).astype(float)
    return SimpleNamespace(
        partitions=StoredPartitions(leaves, n_leaves),
        leaves=leaves,
        n_leaves=n_leaves,
        weight=weight,
        quadratic=QuadraticEnergy.at(loss, Target.of(y, weight), raw),
        full=LossEnergy(loss, Target.of(y, weight), raw),
        raw=raw,
        loss=loss,
        y=y,
    )


def twin_gradient(case, kind):
    """The gradient of an energy (K, N, M) by its formula."""
    rows = case.y.astype(int)
    if kind == "quadratic" and len(case.raw) == 1:
        p = 1.0 / (1.0 + np.exp(-case.raw[:, :, None]))
        return lambda state: p * (1.0 - p) * state
    if kind == "quadratic":
        p = np.exp(case.raw) / np.exp(case.raw).sum(axis=0)
        H = np.einsum("kn,kl->nkl", p, np.eye(len(p))) - np.einsum("kn,ln->nkl", p, p)
        return lambda state: np.einsum("nkl,lnm->knm", H, state)
    if len(case.raw) == 1:
        y = case.y[None, :, None]
        return lambda state: 1.0 / (1.0 + np.exp(-case.raw[:, :, None] - state)) - y
    onehot = np.eye(len(case.raw))[rows].T[:, :, None]

    def gradient(state):
        z = np.exp(case.raw[:, :, None] + state)
        return z / z.sum(axis=0) - onehot

    return gradient


@pytest.mark.parametrize("kind", ["quadratic", "full"])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("first_draw", "n_draws"), [(0, 16), (32, 3)])
def test_a_chain_equals_its_twin(kind, n_outputs, first_draw, n_draws):
    case = problem(n_outputs=n_outputs)
    energy = getattr(case, kind)
    prior = LeafPrior(case.partitions, energy.weight)
    sampler = DrawPlan(0.7, temperature=1.3, learning_rate=0.6).sampler(energy, prior)
    chain = FrozenChain(energy, prior, sampler, first_draw, n_draws, seed=9)
    twin = reference.Chain(
        case.leaves,
        case.n_leaves,
        twin_gradient(case, kind),
        case.weight,
        (0.6, sampler.shrink_rate, 1.3),
        (n_outputs, n_draws),
        first_draw=first_draw,
        seed=9,
    )
    for _ in range(12):
        assert chain.step() == twin.step()
    np.testing.assert_allclose(chain.state, twin.state, rtol=0, atol=1e-11)
    values = np.concatenate(twin.values)
    np.testing.assert_allclose(chain.leaf_values(), values, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["quadratic", "full"])
@pytest.mark.parametrize("n_steps", [0, 3, 400])
def test_the_state_of_a_row_is_the_sum_of_the_values_of_its_leaves(kind, n_steps):
    case = problem(n_outputs=2)
    energy = getattr(case, kind)
    prior = LeafPrior(case.partitions, energy.weight)
    # gamma eps is about 0.1, so that 400 steps shrink the first values beyond one change of unit.
    chain = FrozenChain(energy, prior, DrawPlan(0.2).sampler(energy, prior), seed=4)
    for _ in range(n_steps):
        chain.step()
    values = chain.leaf_values()
    total = sum(values[prior.of(k)][leaf] for k, leaf in enumerate(case.leaves))
    np.testing.assert_allclose(total.transpose(1, 0, 2), chain.state, rtol=0, atol=1e-13)
    assert np.array_equal(chain.largest, np.abs(chain.state).max(axis=(0, 1)))


def test_predictions_at_the_training_rows_are_the_states_of_the_chains():
    case = problem(n_outputs=2)
    plan = DrawPlan(0.2, n_steps=30)
    draws = draw_posterior(case.quadratic, case.partitions, plan, 20, seed=4)
    prior = LeafPrior(case.partitions, case.quadratic.weight)
    states = []
    for first, n in ((0, 16), (16, 4)):
        sampler = plan.sampler(case.quadratic, prior)
        chain = FrozenChain(case.quadratic, prior, sampler, first, n, seed=4)
        for _ in range(30):
            chain.step()
        states.append(chain.state)
    predictions = draws.predict(case.partitions)
    np.testing.assert_allclose(predictions, np.concatenate(states, axis=2), rtol=0, atol=1e-6)


def test_trees_are_partitions_like_any_other():
    rng = np.random.default_rng(8)
    trace = make_trace(rng, 9)
    columns = rng.integers(0, trace.bins.n_codes[:, None], (6, 500)).astype(np.uint8)
    trees = TreePartitions(trace, columns)
    stored = StoredPartitions(trees.leaves(0, 500), trees.n_leaves)
    energy = QuadraticEnergy(rng.random((1, 500)))
    drawn = [draw_posterior(energy, p, DrawPlan(n_steps=20), 5) for p in (trees, stored)]
    assert np.array_equal(drawn[0].values, drawn[1].values)
    other = np.ascontiguousarray(columns[:, ::-1])
    backwards = drawn[0].predict(TreePartitions(trace, other))
    assert np.array_equal(backwards, drawn[1].predict(stored)[:, ::-1])


# Bits.


def chain_values(energy, partitions, n_steps, n_draws=16, n_threads=1):
    """Leaf values of a chain in double precision, which `draw_posterior` rounds to single."""
    prior = LeafPrior(partitions, energy.weight)
    sampler = DrawPlan(0.5).sampler(energy, prior)
    chain = FrozenChain(energy, prior, sampler, 0, n_draws, n_threads=n_threads)
    for _ in range(n_steps):
        chain.step()
    return chain.leaf_values()


@pytest.mark.parametrize("kind", ["quadratic", "full"])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n_draws", [5, 16])
def test_draws_do_not_depend_on_threads(kind, n_outputs, n_draws):
    case = problem(n_rows=5000, n_outputs=n_outputs)
    energy = getattr(case, kind)
    expected = chain_values(energy, case.partitions, 10, n_draws)
    for n_threads in THREADS[1:]:
        values = chain_values(energy, case.partitions, 10, n_draws, n_threads)
        assert np.array_equal(values, expected)


@pytest.mark.parametrize("kind", ["quadratic", "full"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_draws_do_not_depend_on_the_order_of_the_rows(kind, n_outputs):
    case = problem(n_rows=700, n_outputs=n_outputs)
    order = np.random.default_rng(2).permutation(700)
    shuffled = StoredPartitions(case.leaves[:, order], case.n_leaves)
    make = QuadraticEnergy.at if kind == "quadratic" else LossEnergy
    raw = np.ascontiguousarray(case.raw[:, order])
    energy = make(case.loss, Target.of(case.y[order], case.weight[order]), raw)
    expected = chain_values(getattr(case, kind), case.partitions, 30)
    assert np.array_equal(chain_values(energy, shuffled, 30), expected)


@pytest.mark.parametrize("kind", ["quadratic", "full"])
def test_a_draw_does_not_depend_on_how_many_there_are(kind):
    case = problem(n_outputs=2)
    values = chain_values(getattr(case, kind), case.partitions, 30)
    assert np.array_equal(
        chain_values(getattr(case, kind), case.partitions, 30, 5), values[:, :, :5]
    )
    many = draw_posterior(getattr(case, kind), case.partitions, DrawPlan(n_steps=30), 40)
    for n_draws in (1, 5, 16, 20):
        few = draw_posterior(getattr(case, kind), case.partitions, DrawPlan(n_steps=30), n_draws)
        assert np.array_equal(few.values, many.values[:, :, :n_draws])


def test_a_row_of_whole_weight_is_that_many_rows():
    case = problem(n_rows=40)
    weight = np.random.default_rng(1).integers(1, 4, 40)
    h = np.random.default_rng(2).random((1, 40))
    repeated = np.repeat(np.arange(40), weight)
    once = QuadraticEnergy(h, None, weight.astype(float))
    drawn = draw_posterior(once, case.partitions, DrawPlan(n_steps=50), 3)
    rows = StoredPartitions(case.leaves[:, repeated], case.n_leaves)
    again = draw_posterior(QuadraticEnergy(h[:, repeated]), rows, DrawPlan(n_steps=50), 3)
    np.testing.assert_allclose(drawn.values, again.values, rtol=1e-5, atol=1e-7)


def test_copies_of_the_rows_share_their_weight():
    case = problem(n_rows=40)
    once = QuadraticEnergy.at(case.loss, Target.of(case.y, np.ones(40)), case.raw)
    drawn = draw_posterior(once, case.partitions, DrawPlan(n_steps=50), 3)
    rows = StoredPartitions(np.tile(case.leaves, 2), case.n_leaves)
    y, raw = np.tile(case.y, 2), np.tile(case.raw, 2)
    twice = QuadraticEnergy.at(case.loss, Target.of(y, np.full(80, 0.5)), raw, n_copies=2)
    again = draw_posterior(twice, rows, DrawPlan(n_steps=50), 3)
    np.testing.assert_allclose(drawn.values, again.values, rtol=1e-5, atol=1e-7)


def test_mirror_images_are_the_same_numbers_with_the_other_sign():
    case = problem()
    half = draw_posterior(case.quadratic, case.partitions, DrawPlan(n_steps=30), 20)
    pairs = draw_posterior(case.quadratic, case.partitions, DrawPlan(n_steps=30), 40, mirror=True)
    assert np.array_equal(pairs.values, half.values)
    assert (pairs.n_draws, half.n_draws) == (40, 20)
    predictions = pairs.predict(case.partitions)
    assert np.array_equal(predictions[:, :, :20], half.predict(case.partitions))
    assert np.array_equal(predictions[:, :, 20:], -predictions[:, :, :20])
    assert np.abs(predictions).min() > 0.0


@pytest.mark.parametrize("mirror", [False, True])
def test_stages_are_the_draws_halfway_and_at_the_end(mirror):
    case, watched = problem(), np.array([3, 0, 7])
    whole, half = (
        draw_posterior(case.quadratic, case.partitions, plan, 8, mirror=mirror, watched=watched)
        for plan in (DrawPlan(n_steps=30), DrawPlan(n_steps=15))
    )
    last = whole.predict(case.partitions)[:, watched]
    np.testing.assert_allclose(whole.stages[1], last, rtol=0, atol=1e-6)
    assert np.array_equal(whole.stages[0], half.stages[1])


def test_blocks_of_rows_are_the_rows(monkeypatch):
    case = problem(n_rows=1000)
    draws = draw_posterior(case.quadratic, case.partitions, DrawPlan(n_steps=3), 4, mirror=True)
    whole = draws.predict(case.partitions)
    monkeypatch.setattr("sglb.posterior.leaf_draws.BLOCK_BYTES", 9_000)
    blocks = list(draws.blocks(case.partitions, n_threads=2))
    assert len(blocks) > 5
    assert np.array_equal(np.concatenate([block for _, block in blocks], axis=1), whole)
    assert [rows.start for rows, _ in blocks][1:] == [rows.stop for rows, _ in blocks][:-1]
    assert np.array_equal(draws.predict(case.partitions), whole)


def test_an_exact_sum_is_near_the_sum():
    # A leaf's mean is off by less than 2^-51 N times the largest gradient.
    rng = np.random.default_rng(5)
    state = rng.normal(size=(1, 10_000, 2))
    leaf = rng.integers(0, 3, 10_000).astype(np.int32)
    energy = QuadraticEnergy(rng.random((1, 10_000)))
    largest = np.abs(state).max(axis=(0, 1))
    sums = energy.leaf_gradients(state, largest, leaf, 3, 1)
    size = np.bincount(leaf)[:, None]
    for j in range(3):
        inside = leaf == j
        exact = (energy._diagonal[0, inside, None] * state[0, inside]).sum(axis=0)
        error = np.abs(sums[j, 0] - exact) / size[j]
        assert (error < 2.0**-51 * 10_000 * largest).all()


# What is not a problem, and what is.


def test_without_curvature_the_data_say_nothing():
    case = problem()
    nothing = QuadraticEnergy(np.zeros((1, 60)))
    state = np.ones((1, 60, 2))
    sums = nothing.leaf_gradients(state, np.ones(2), case.leaves[0], int(case.n_leaves[0]), 1)
    assert (sums == 0.0).all()
    assert nothing.curvature == 0.0


@pytest.mark.parametrize("n_outputs", [2, 3, 5])
def test_the_curvature_of_an_energy_bounds_that_of_its_rows(n_outputs):
    rng = np.random.default_rng(n_outputs)
    raw = rng.normal(size=(n_outputs, 300)) * 3.0
    loss = Softmax(n_outputs)
    y = np.zeros(300)
    diagonal, factor = loss.hessian_parts(y, raw.T)
    H = np.einsum("nk,kl->nkl", diagonal, np.eye(n_outputs))
    H -= np.einsum("nk,nl->nkl", factor, factor)
    np.testing.assert_allclose(np.einsum("nkk->nk", H), loss.hessian(y, raw.T), atol=1e-15)
    largest = np.linalg.eigvalsh(H).max()
    bound = QuadraticEnergy.at(loss, Target.of(y), raw).curvature
    assert largest <= bound <= 0.5 + 1e-12


def test_the_prior_variance_is_that_of_a_row_on_average():
    case = problem()
    prior = LeafPrior(case.partitions, case.quadratic.weight)
    gamma = prior.shrink_rate(0.37)
    variance = sum(
        1.0 / (gamma * prior.n_partitions * prior.cover[prior.of(k)][leaf])
        for k, leaf in enumerate(case.leaves)
    )
    assert np.average(variance, weights=case.quadratic.weight) == pytest.approx(0.37)
    # The last leaf of every partition is without rows.
    assert prior.n_all_leaves - prior.n_used_leaves >= prior.n_partitions


@pytest.mark.parametrize(("scale", "unit"), [(0.25, 0.25), (1.0, 1.0), (20.0, 1.0), (100.0, 2.0)])
def test_a_leaf_without_rows_counts_as_one_of_an_ordinary_row(scale, unit):
    case = problem()
    weight = np.full(60, scale)
    energy = LossEnergy(Logistic(), Target.of(case.y, weight))
    prior = LeafPrior(case.partitions, weight, energy.unit)
    assert energy.unit == unit
    assert (prior.cover[prior.first + case.n_leaves - 1] == unit).all()
    assert prior.shrink_rate(1.0) == pytest.approx(LeafPrior(case.partitions).shrink_rate(scale))


def test_steps_are_as_long_as_their_bias_allows():
    case = problem()
    prior = LeafPrior(case.partitions, case.quadratic.weight)
    weak = DrawPlan(100.0).sampler(case.quadratic, prior)
    total = case.quadratic.curvature + weak.shrink_rate
    assert weak.learning_rate * total == pytest.approx(0.25)
    strong = DrawPlan(0.3).sampler(case.quadratic, prior)  # a draw is made of at least 20 trees
    assert strong.learning_rate * strong.shrink_rate == pytest.approx(0.05)


def test_a_step_that_is_too_long_is_noticed():
    case = problem()
    energy = QuadraticEnergy(np.full((1, 60), 1e9))
    with pytest.raises(ChainDiverged, match="not finite"):
        draw_posterior(energy, case.partitions, DrawPlan(learning_rate=0.1), 2)


def test_impossible_requests_are_rejected():
    case, plan = problem(), DrawPlan(n_steps=1)
    for n_draws, mirror, message in ((0, False, "at least 1"), (3, True, "must be even")):
        with pytest.raises(ValueError, match=message):
            draw_posterior(case.quadratic, case.partitions, plan, n_draws, mirror=mirror)
    with pytest.raises(ValueError, match="quadratic energy"):
        draw_posterior(case.full, case.partitions, plan, 2, mirror=True)
    with pytest.raises(ValueError, match="energy has 60 rows and the partitions 3"):
        FrozenChain(
            case.quadratic,
            LeafPrior(StoredPartitions([[0, 1, 0]])),
            plan.sampler(case.quadratic, LeafPrior(case.partitions)),
        )
    prior = LeafPrior(case.partitions)
    with pytest.raises(ValueError, match="not of one batch"):
        FrozenChain(case.quadratic, prior, plan.sampler(case.quadratic, prior), 10, 7)
    with pytest.raises(ValueError, match="other partitions"):
        LeafDraws(np.array([2]), np.zeros((2, 1, 1), np.float32)).predict(case.partitions)
    with pytest.raises(ValueError, match="prior_variance must be"):
        draw_posterior(case.quadratic, case.partitions, DrawPlan(-1.0), 2)
    with pytest.raises(ValueError, match="temperature must be"):
        DrawPlan(temperature=0.0)
    with pytest.raises(ValueError, match="n_steps must be"):
        DrawPlan(n_steps=-2)
    with pytest.raises(ValueError, match="learning_rate must lie between"):
        draw_posterior(case.quadratic, case.partitions, DrawPlan(learning_rate=1e6), 2)
    with pytest.raises(ValueError, match="has no bound: state a learning_rate"):
        draw_posterior(LossEnergy(Poisson(), Target.of(case.y)), case.partitions, plan, 2)
    with pytest.raises(ValueError, match="depends on other rows"):
        LossEnergy(SimpleNamespace(name="own", independent=False), Target.of(case.y))
    with pytest.raises(ValueError, match="not finite in row 2"):
        QuadraticEnergy(np.array([[1.0, 1.0, np.nan]]))


@pytest.mark.parametrize(
    ("leaves", "n_leaves", "message"),
    [
        ([0, 1], None, r"must be \(n_partitions, n_rows\)"),
        ([[0, 1], [0, 2]], [2, 2], r"partition 1 has leaves 0..1, and its rows the numbers 0..2"),
        ([[0, 1], [0, -1]], None, r"partition 1 .* the numbers -1..0"),
        ([[0, 1]], [2, 2], r"n_leaves must be \(1,\)"),
    ],
)
def test_leaf_numbers_that_make_no_sense_are_rejected(leaves, n_leaves, message):
    with pytest.raises(ValueError, match=message):
        StoredPartitions(leaves, n_leaves)


def test_a_prior_needs_partitions_and_weight():
    with pytest.raises(ValueError, match="at least one partition"):
        LeafPrior(StoredPartitions(np.zeros((0, 3))))
    with pytest.raises(ValueError, match="at least one partition"):
        LeafPrior(StoredPartitions(np.zeros((2, 0)), [1, 1]))


def test_squared_loss_has_the_same_gradient_as_its_expansion():
    rng = np.random.default_rng(1)
    y, state = rng.normal(size=30), rng.normal(size=(1, 30, 4))
    leaf = rng.integers(0, 3, 30).astype(np.int32)
    largest = np.abs(state).max(axis=(0, 1))
    full = LossEnergy(Squared(), Target.of(y), [y]).leaf_gradients(state, largest, leaf, 3, 1)
    centre = QuadraticEnergy.at(Squared(), Target.of(y), y[None])
    quadratic = centre.leaf_gradients(state, largest, leaf, 3, 1)
    np.testing.assert_allclose(full, quadratic, rtol=0, atol=1e-12)
