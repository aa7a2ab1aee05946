"""Kernels of the structure search, called with arrays of their own, and inputs for them."""

import numpy as np
from hypothesis import strategies as st

import reference
from problems import WEIGHTS, core_rows, make_codes
from sglb import _core

sigmas = st.sampled_from([0.0, 0.3, 20.0])
l2s = st.sampled_from([0.0, 0.5, 300.0])
weightings = st.sampled_from([None, *WEIGHTS])
code_counts = st.lists(st.sampled_from([1, 2, 3, 5, 9, 17]), min_size=1, max_size=9)


def quantise(gradient, weight, draw, sigma, seed=1, step=2, n_threads=1, hessian=None, bounds=None):
    n = gradient.shape[1] if draw is None else len(draw.rows)
    packed = np.empty((len(gradient), n), dtype=np.int64)
    scales = _core.quantise(
        _core.Slopes(gradient, hessian),
        1.0,
        weight,
        reference.weight_facts(weight, gradient.shape[1]),
        None if draw is None else draw.rows,
        None if draw is None else draw.lift,
        1.0 if draw is None else draw.mu,
        1.0 if draw is None else draw.floor,
        sigma,
        bounds_of(gradient, hessian) if bounds is None else bounds,
        hessian is not None,
        seed,
        step,
        packed,
        n_threads,
    )
    return packed, scales


def bounds_of(gradient, hessian):
    bend = 0.0 if hessian is None else reference.largest(hessian)
    return reference.Bounds(reference.largest(gradient), bend)


def draw_rows(gradient, weight, sigma, n, seed=1, step=2, n_threads=1, begin=0, end=None):
    n_rows = gradient.shape[1]
    return reference.Draw(
        *_core.draw_rows(
            _core.Slopes(gradient, None),
            1.0,
            weight,
            reference.weight_facts(weight, n_rows),
            sigma,
            (begin, n_rows if end is None else end),
            n,
            seed,
            step,
            n_threads,
        )
    )


class Search:
    """Calls _core.search and _core.grow on a workspace of its own."""

    def __init__(self, max_depth, n_threads=1):
        self.max_depth = max_depth
        self.n_threads = n_threads
        self.workspace = _core.Workspace()

    def answer(self, kernel, *arguments):
        return reference.Structure(*kernel(self.workspace, *arguments, self.n_threads))

    def search(self, columns, n_codes, kinds, packed, rows=None, l2=0.0, strength=0.0):
        return self.answer(
            _core.search,
            reference.to_rows(columns),
            np.asarray(n_codes, dtype=np.int32),
            np.asarray(kinds, dtype=np.uint8),
            packed,
            rows,
            self.max_depth,
            l2,
            strength,
            1,
            2,
        )

    def grow(self, columns, n_codes, kinds, slopes, weight, sigma, growth, seed=1, step=2):
        gradient, hessian = slopes if isinstance(slopes, tuple) else (slopes, None)
        n_rows = gradient.shape[1] // growth.n_copies
        begin = step % growth.n_copies * n_rows
        return self.answer(
            _core.grow,
            core_rows(columns, n_codes, weight, kinds),
            _core.Slopes(gradient, hessian),
            1.0,
            sigma,
            bounds_of(gradient, hessian),
            hessian is not None,
            (begin, begin + n_rows),
            n_rows if growth.structure_rows is None else growth.structure_rows,
            growth.structure_outputs,
            self.max_depth,
            growth.l2,
            growth.random_strength,
            seed,
            step,
        )


def assert_same(found, expected):
    for name, a, b in zip(found._fields, found, expected, strict=True):
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
