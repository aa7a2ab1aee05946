"""Gradients from a loss evaluated on the spot are those from arrays, bit for bit."""

import numpy as np
import pytest

from problems import boosted, shard_without_codes
from sglb import _core
from sglb import slopes as slopes_room
from sglb.bins import Bins
from sglb.leaves import LeafRule
from sglb.losses import Huber, Logistic, Poisson, Sla, Softmax
from sglb.samplers import Langevin
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.trace import Trace
from sglb.training_set import TrainingSet

LOSSES = [Logistic(), Sla(), Huber(0.5), Softmax(3)]
SIZES = [0, 1, 31, 33, 511, 513, 8191, 8193]
DRAWS = _core.Draws(1, 2)


def both(loss, n, newton):
    """Slopes of one problem from a loss and from arrays."""
    rng = np.random.default_rng(n)
    raw = rng.normal(size=(loss.n_outputs, n))
    y = rng.integers(0, max(loss.n_outputs, 2), n).astype(np.float64)
    gradient = np.empty_like(raw)
    hessian = np.empty_like(raw) if newton else None
    loss.fill(y, raw, gradient, hessian, 1)
    return loss.slopes(Target.of(y), raw, newton=newton), _core.Slopes(gradient, hessian)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_slopes_of_a_loss_are_those_of_arrays(loss, n, rate):
    actual = [(np.empty((loss.n_outputs, n)), np.empty((loss.n_outputs, n))) for _ in range(2)]
    for slopes, (gradient, hessian) in zip(both(loss, n, True), actual, strict=True):
        _core.testing.evaluate(slopes, rate, _core.Draws(3, 4), gradient, hessian)
    for left, right in zip(*actual, strict=True):
        assert np.array_equal(left, right)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n", [33, 8193])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("newton", [False, True])
def test_words_of_a_loss_are_those_of_arrays(loss, n, sampled, n_threads, newton):
    rows = np.arange(0, n, 3, dtype=np.uint32)
    shard = shard_without_codes(n, n_threads=n_threads)
    actual = []
    for slopes in both(loss, n, newton):
        packed = np.empty((loss.n_outputs, len(rows) if sampled else n), dtype=np.int64)
        chosen = (rows, None, 1.0, 1.0) if sampled else None
        bounds, draws = (6.0, 25.0), _core.Draws(1, 2)
        _core.testing.quantise(shard, slopes, chosen, (0.7, 0.5), bounds, newton, draws, packed)
        actual.append(packed)
    assert np.array_equal(*actual)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n", [33, 8193])
def test_rows_are_drawn_by_a_loss_as_by_arrays(loss, n):
    shard, draws = shard_without_codes(n), _core.Draws(1, 2)
    actual = [
        _core.testing.draw_rows(shard, slopes, 0.7, 0.1, n // 3, draws)
        for slopes in both(loss, n, False)
    ]
    assert all(np.array_equal(a, b) for a, b in zip(*actual, strict=True))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("method", ["gradient", "newton"])
def test_a_chain_of_many_rows_takes_the_steps_of_a_stored_one(loss, method, monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 4))
    y = rng.integers(0, max(loss.n_outputs, 2), 2000).astype(np.float64)
    bins = Bins.fit(X, 32)
    rows = TrainingSet.build(bins.encode(X), bins.n_codes, Target.of(y))
    chains = []
    for stored in (0, 10**9):
        monkeypatch.setattr(slopes_room, "STORED_ROWS", stored)
        trace = Trace(bins, 2, np.zeros(loss.n_outputs))
        sampler = Langevin(0.1, 1e-3, 0.1, subsample=0.8)
        boosted(rows, loss, sampler, GreedySearch(2), LeafRule(method), trace, n_steps=5, seed=1)
        chains.append(trace.arrays())
    for name in ("features", "lows", "highs"):
        assert np.array_equal(chains[0][name], chains[1][name])
    np.testing.assert_allclose(chains[0]["values"], chains[1]["values"], rtol=1e-9, atol=1e-12)


def test_a_hessian_that_slopes_do_not_have_is_rejected():
    slopes = _core.Slopes(np.ones((1, 3)), None)
    with pytest.raises(ValueError, match="no hessian"):
        _core.testing.evaluate(slopes, 1.0, _core.Draws(1, 2), np.empty((1, 3)), np.empty((1, 3)))
    with pytest.raises(ValueError, match="no kernel for loss"):
        _core.Slopes("unknown", (0.0, 0.0), np.ones(3), np.ones((1, 3)), False)


@pytest.mark.parametrize("newton", [False, True])
def test_slopes_computed_in_advance_are_those_of_the_loss(newton):
    rng = np.random.default_rng(5)
    y = (rng.random(3000) < 0.5).astype(float)
    raw = rng.normal(size=(1, 3000))
    loss = Logistic()
    gradient = np.full_like(raw, np.nan)
    hessian = np.full_like(raw, np.nan) if newton else None
    _, refresh = loss.stored_slopes(Target.of(y), raw, gradient, hessian)
    for _ in range(2):
        expected, curvature = np.empty_like(raw), np.empty_like(raw)
        largest = loss.fill(y, raw, expected, curvature, 1)
        for n_threads in (1, 3):
            assert refresh(n_threads, DRAWS) == (largest, 0.25 if newton else 0.0)
            assert np.array_equal(gradient, expected)
            assert hessian is None or np.array_equal(hessian, curvature)
        raw *= -2.0  # the scores are read anew each time
    raw[0, 7] = np.nan
    assert refresh(1, DRAWS)[0] == np.inf


def test_the_bound_of_second_derivatives_without_a_constant_is_the_largest_one():
    y, raw = np.ones(3), np.array([[0.0, 2.0, -1.0]])
    loss = Poisson()
    assert loss.smoothness is None
    hessian = np.empty_like(raw)
    _, refresh = loss.stored_slopes(Target.of(y), raw, np.empty_like(raw), hessian)
    assert refresh(1, DRAWS)[1] == hessian.max() == pytest.approx(np.exp(2.0))


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 1, 70_000, 99_999])
def test_the_largest_of_numbers_that_are_not_all_finite_is_infinite(strange, row):
    numbers = np.linspace(-3.0, 2.0, 100_000)
    assert _core.largest(numbers, 2) == 3.0
    numbers[row] = strange
    assert _core.largest(numbers, 2) == np.inf


def test_only_slopes_of_a_loss_with_room_for_them_can_be_computed_in_advance():
    y, raw = np.ones(3), np.zeros((1, 3))
    with pytest.raises(ValueError, match="not computed in advance"):
        _core.Slopes(raw, None).refresh(1)
    with pytest.raises(ValueError, match="not computed in advance"):
        Logistic().slopes(Target.of(y), raw, newton=True).refresh(1)
    with pytest.raises(ValueError, match="raw, gradient and hessian"):
        Logistic().stored_slopes(Target.of(y), raw, np.empty((1, 4)), None)
