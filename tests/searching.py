"""Kernels of the structure search, called with arrays of their own, and inputs for them."""

import numpy as np
from hypothesis import strategies as st

import reference
from problems import WEIGHTS, core_shard, make_codes, shard_without_codes
from sglb import _core

sigmas = st.sampled_from([0.0, 0.3, 20.0])
l2s = st.sampled_from([0.0, 0.5, 300.0])
weightings = st.sampled_from([None, *WEIGHTS])
code_counts = st.lists(st.sampled_from([1, 2, 3, 5, 9, 17]), min_size=1, max_size=9)


def quantise(gradient, weight, draw, sigma, seed=1, step=2, n_threads=1, hessian=None, bounds=None):
    n = gradient.shape[1] if draw is None else len(draw.rows)
    packed = np.empty((len(gradient), n), dtype=np.int64)
    scales = _core.testing.quantise(
        shard_without_codes(gradient.shape[1], weight, n_threads=n_threads),
        _core.Slopes(gradient, hessian),
        None if draw is None else (draw.rows, draw.inverse_probability, draw.mu, draw.floor),
        (1.0, sigma),
        bounds_of(gradient, hessian) if bounds is None else bounds,
        hessian is not None,
        _core.Draws(seed, step),
        packed,
    )
    return packed, scales


def bounds_of(gradient, hessian):
    curvature = 0.0 if hessian is None else reference.largest(hessian)
    return reference.Bounds(reference.largest(gradient), curvature)


def draw_rows(gradient, weight, sigma, n, seed=1, step=2, n_threads=1, n_copies=1):
    shard = shard_without_codes(gradient.shape[1], weight, n_copies=n_copies, n_threads=n_threads)
    slopes, draws = _core.Slopes(gradient, None), _core.Draws(seed, step)
    return reference.Draw(*_core.testing.draw_rows(shard, slopes, 1.0, sigma, n, draws))


class Search:
    """Searches on packed words, and on samples of noisy gradients."""

    def __init__(self, max_depth, n_threads=1):
        self.max_depth = max_depth
        self.n_threads = n_threads

    def search(self, columns, n_codes, kinds, packed, rows=None, l2=0.0, strength=0.0):
        shard = core_shard(columns, n_codes, None, kinds, n_threads=self.n_threads)
        rule = self.max_depth, l2, strength
        return reference.Structure(
            *_core.testing.search(shard, packed, rows, rule, _core.Draws(1, 2))
        )

    def grow(self, columns, n_codes, kinds, slopes, weight, sigma, growth, seed=1, step=2):
        gradient, hessian = slopes if isinstance(slopes, tuple) else (slopes, None)
        n_rows = gradient.shape[1] // growth.n_copies
        n_outputs = growth.structure_outputs
        sample = _core.Sample()
        sample.draw(
            core_shard(
                columns, n_codes, weight, kinds, n_copies=growth.n_copies, n_threads=self.n_threads
            ),
            _core.Slopes(gradient, hessian),
            _core.SamplePlan(
                n_rows if growth.structure_rows is None else growth.structure_rows,
                len(gradient) if n_outputs is None else n_outputs,
                hessian is not None,
            ),
            sigma,
            1.0,
            bounds_of(gradient, hessian),
            _core.Draws(seed, step),
        )
        search = _core.GreedySearch(self.max_depth, growth.l2, self.n_threads)
        return reference.Structure(*search.run(sample, growth.random_strength))


def assert_same(result, expected):
    for name, a, b in zip(result._fields, result, expected, strict=True):
        assert np.array_equal(a, b), f"{name}: {a} is not {b}"


def make_kinds(rng, n_rows, n_codes):
    """Codes (F, N), and kinds of features: some are levels, some bundles."""
    columns, has_missing = make_codes(rng, n_rows, n_codes)
    kinds = np.where(has_missing, reference.NUMBERS_OR_MISSING, reference.NUMBERS)
    kinds[rng.random(len(kinds)) < 0.3] = reference.LEVELS
    kinds[rng.random(len(kinds)) < 0.2] = reference.BUNDLE
    return columns, kinds


def make_words(rng, n_outputs, n, largest=50):
    """Random words; small integers make many ties, zero weight has zero gradient."""
    weight = rng.integers(0, 4, (n_outputs, n))
    return (rng.integers(-largest, largest + 1, (n_outputs, n)) * (weight > 0) << 32) + weight
