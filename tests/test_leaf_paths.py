"""Paths of Newton steps in leaves: the kernels, step by step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

import reference
import reference_leaves
from problems import (
    N_CODES,
    core_shard,
    generators,
    make_codes,
    make_splits,
    make_weight,
    seeds,
    sizes,
    steps,
)
from sglb import _core


class Kernels:
    """Rows in leaves; each step takes slopes that have nothing to do with the last ones."""

    def __init__(self, rng, n_rows, depth, n_outputs, *, weighted, trust_radius=np.inf):
        self.rng = rng
        self.trust_radius = trust_radius
        self.columns, _ = make_codes(rng, n_rows, N_CODES)
        self.splits = make_splits(rng, N_CODES, depth)
        self.weight = make_weight(rng, n_rows) if weighted else None
        self.raw = rng.normal(size=(n_outputs, n_rows))
        self.leaf = reference_leaves.leaf_indices(self.columns, *self.splits)
        self.n_leaves = 1 << depth

    def slopes(self):
        gradient = self.rng.normal(size=self.raw.shape)
        hessian = self.rng.uniform(0.05, 1.0, self.raw.shape)
        return gradient, hessian

    def sums(self, slopes, bounds, path, n_threads, step=2):
        shard = core_shard(self.columns, N_CODES, self.weight, n_threads=n_threads)
        sums, draws = _core.LeafSums(), _core.Draws(1, step)
        sums.sum(shard, self.structure, slopes, 1.0, bounds, draws, path)
        return shard, sums

    @property
    def structure(self):
        return _core.Structure(*self.splits)

    def arrays(self, gradient, hessian):
        """Slopes in arrays and their bounds."""
        bounds = reference.largest(gradient), reference.largest(hessian)
        return _core.Slopes(gradient, hessian), bounds

    def approach(self, gradient, hessian, l2, path, n_threads=1):
        ahead, gains = np.full_like(self.raw, np.nan), np.full(len(self.splits[0]), np.nan)
        steps = _core.NewtonPath(*path, 1)
        shard, sums = self.sums(*self.arrays(gradient, hessian), steps, n_threads)
        _core.testing.split_gains(sums, l2, gains)
        _core.advance_path(sums, _core.LeafRule(l2, self.trust_radius), steps)
        _core.look_ahead(shard, self.structure, steps, self.raw, ahead)
        return ahead, gains

    def fit(self, gradient, hessian, l2, sigma, where, path, n_threads=1):
        values = np.full((self.n_leaves, len(self.raw)), np.nan)
        steps = _core.NewtonPath(*path, 1)
        _, sums = self.sums(*self.arrays(gradient, hessian), steps, n_threads)
        rule, draws = _core.LeafRule(l2, self.trust_radius), _core.Draws(*where)
        _core.leaf_values(sums, rule, 0.3, sigma, draws, steps, values)
        return values


@given(
    generators,
    sizes,
    st.integers(0, 10),
    st.integers(1, 2),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from([0.0, 2.5]),
    st.sampled_from([0.0, 20.0]),
    st.sampled_from([np.inf, 0.5, 0.05]),
    st.tuples(seeds, steps),
)
def test_paths_and_values_equal_their_twin(
    rng, n_rows, depth, n_outputs, weighted, n_steps, l2, sigma, trust_radius, where
):
    kernels = Kernels(rng, n_rows, depth, n_outputs, weighted=weighted, trust_radius=trust_radius)
    facts = kernels.leaf, kernels.n_leaves
    path = reference_leaves.start_path(kernels.n_leaves, n_outputs)
    expected = path.copy()
    for _ in range(n_steps):
        slopes = kernels.slopes()
        ahead, gains = kernels.approach(*slopes, l2, path)
        expected = reference_leaves.approach(
            *facts, *slopes, kernels.weight, l2, expected, trust_radius
        )
        np.testing.assert_allclose(path, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ahead, kernels.raw + path[0][kernels.leaf].T, rtol=1e-15)
        first = reference_leaves.gains(kernels.leaf, depth, slopes[0], kernels.weight, l2)
        np.testing.assert_allclose(gains, first, rtol=1e-9, atol=1e-9)
    slopes = kernels.slopes()
    values = kernels.fit(*slopes, l2, sigma, where, path)
    twin = reference_leaves.leaf_values(
        *facts, *slopes, kernels.weight, 0.3, sigma, l2, *where, expected, trust_radius
    )
    np.testing.assert_allclose(values, twin, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("depth", [3, 9])
def test_paths_do_not_depend_on_threads(depth):
    result = []
    for n_threads in (1, 2, 3, 8, 12):
        kernels = Kernels(np.random.default_rng(0), 20_000, depth, 2, weighted=True)
        path = reference_leaves.start_path(kernels.n_leaves, 2)
        ahead = [kernels.approach(*kernels.slopes(), 1.0, path, n_threads) for _ in range(3)]
        values = kernels.fit(*kernels.slopes(), 1.0, 5.0, (1, 2), path, n_threads)
        result.append([path, values, *(part for parts in ahead for part in parts)])
    for other in result[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(result[0], other, strict=True))


def test_kernels_refuse_what_does_not_fit():
    kernels = Kernels(np.random.default_rng(0), 50, 2, 1, weighted=False)
    gradient, hessian = kernels.slopes()
    path = reference_leaves.start_path(4, 1)
    with pytest.raises(ValueError, match="path must be"):
        kernels.approach(gradient, hessian, 0.0, path[:, :2].copy())
    with pytest.raises(ValueError, match="sum, last and curvature must be"):
        _core.NewtonPath(path[0], path[1, :2].copy(), path[2], 1)
    with pytest.raises(ValueError, match="row_stride must be 1 or more"):
        _core.NewtonPath(*path, 0)
    for radius in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="trust_radius must be above 0"):
            _core.LeafRule(0.0, radius)
    steps = _core.NewtonPath(*path, 1)
    with pytest.raises(ValueError, match="Newton steps"):
        kernels.sums(_core.Slopes(gradient, None), (5.0, 0.0), steps, 1)
    with pytest.raises(ValueError, match="nothing has been summed"):
        _core.advance_path(_core.LeafSums(), _core.LeafRule(0.0, 1.0), steps)
    shard, sums = kernels.sums(*kernels.arrays(gradient, hessian), steps, 1)
    with pytest.raises(ValueError, match="raw and ahead must be"):
        _core.look_ahead(shard, kernels.structure, steps, kernels.raw, kernels.raw[:, 1:].copy())
    other = _core.LeafSums()
    other.sum(shard, kernels.structure, _core.Slopes(gradient, None), 1.0, (9e9, 0.0), *rest())
    with pytest.raises(ValueError, match="one structure and to one scale"):
        sums.add(other)


def rest():
    return _core.Draws(1, 2), None


class LossKernels(Kernels):
    """The same with slopes of the logistic loss, which finds its way along the path by itself."""

    def __init__(self, rng, n_rows, depth, *, weighted):
        super().__init__(rng, n_rows, depth, 1, weighted=weighted, trust_radius=0.7)
        self.y = (rng.random(n_rows) < 0.3) * 1.0
        self.loss = _core.Slopes("logistic", (0.0, 0.0), self.y, self.raw, True)

    def at(self, path):
        p = expit(self.raw + path[0][self.leaf].T)
        return p - self.y, p * (1 - p)

    def look(self, path, *, step=0, every=1, gains=None, n_threads=1):
        steps = _core.NewtonPath(*path, every)
        _, sums = self.sums(self.loss, (1.0, 0.25), steps, n_threads, step)
        if gains is not None:
            _core.testing.split_gains(sums, 1.5, gains)
        _core.advance_path(sums, _core.LeafRule(1.5, self.trust_radius), steps)

    def end(self, path, n_threads=1):
        values, steps = np.full((self.n_leaves, 1), np.nan), _core.NewtonPath(*path, 1)
        _, sums = self.sums(self.loss, (1.0, 0.25), steps, n_threads)
        rule, draws = _core.LeafRule(1.5, self.trust_radius), _core.Draws(1, 2)
        _core.leaf_values(sums, rule, 0.3, 2.0, draws, steps, values)
        return values


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("depth", [2, 9])
def test_a_loss_is_evaluated_where_the_path_has_come_to(depth, weighted):
    kernels = LossKernels(np.random.default_rng(depth), 3_000, depth, weighted=weighted)
    facts = kernels.leaf, kernels.n_leaves
    path = reference_leaves.start_path(kernels.n_leaves, 1)
    expected = path.copy()
    for _ in range(3):
        kernels.look(path)
        slopes = kernels.at(expected)
        expected = reference_leaves.approach(*facts, *slopes, kernels.weight, 1.5, expected, 0.7)
        np.testing.assert_allclose(path, expected, rtol=1e-8, atol=1e-10)
    slopes = kernels.at(expected)
    twin = reference_leaves.leaf_values(
        *facts, *slopes, kernels.weight, 0.3, 2.0, 1.5, 1, 2, expected, 0.7
    )
    np.testing.assert_allclose(kernels.end(path), twin, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("every", [2, 3, 7])
@pytest.mark.parametrize(("step", "depth"), [(0, 5), (5, 5), (5, 9)])
def test_a_step_on_part_of_the_rows_is_one_on_those_alone(every, weighted, step, depth):
    n_rows = 40_300
    kernels = LossKernels(np.random.default_rng(every), n_rows, depth, weighted=weighted)
    facts = kernels.leaf, kernels.n_leaves
    path = reference_leaves.start_path(kernels.n_leaves, 1)
    part = reference_leaves.part_of_rows(n_rows, every, step)
    for _ in range(2):
        before = path.copy()
        kernels.look(path, step=step, every=every)
        expected = reference_leaves.approach_on_part(
            *facts, *kernels.at(before), kernels.weight, 1.5, before, part, 0.7
        )
        np.testing.assert_allclose(path, expected, rtol=1e-8, atol=1e-10)
        stayed = path[0, :, 0] == before[0, :, 0]
        assert stayed.any()
        assert not stayed.all()
        for n_threads in (2, 3, 8):
            again = before.copy()
            kernels.look(again, step=step, every=every, n_threads=n_threads)
            assert np.array_equal(again, path)
    # Leaves that took no step have their only one now, with its own noise.
    twin = reference_leaves.leaf_values(
        *facts, *kernels.at(path), kernels.weight, 0.3, 2.0, 1.5, 1, 2, path, 0.7
    )
    np.testing.assert_allclose(kernels.end(path), twin, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_part_of_the_rows_estimates_gains(weighted):
    n_rows, every, step, depth = 40_300, 3, 5, 4
    kernels = LossKernels(np.random.default_rng(0), n_rows, depth, weighted=weighted)
    path, result = reference_leaves.start_path(kernels.n_leaves, 1), np.full(depth, np.nan)
    gradient, _ = kernels.at(path)
    kernels.look(path, step=step, every=every, gains=result)
    part = reference_leaves.part_of_rows(n_rows, every, step)
    weight = kernels.weight[part] if weighted else None
    share = part.mean()
    expected = reference_leaves.gains(
        kernels.leaf[part], depth, gradient[:, part], weight, 1.5 * share
    )
    np.testing.assert_allclose(result, expected / share, rtol=1e-9)


def test_part_of_the_rows_is_for_losses_alone():
    kernels = LossKernels(np.random.default_rng(0), 50, 2, weighted=False)
    steps = _core.NewtonPath(*reference_leaves.start_path(4, 1), 2)
    with pytest.raises(ValueError, match="1 where slopes are in arrays"):
        kernels.sums(*kernels.arrays(*kernels.slopes()), steps, 1)
