"""The structure of a tree: the greedy search on sums of words, and all of growing in one call."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from problems import THREADS, WEIGHTS, generators, make_codes, make_weight, seeds, sizes, steps
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
    """Calls _core.search and _core.grow with arrays of their own for the answer."""

    def __init__(self, max_depth, n_threads=1):
        self.max_depth = max_depth
        self.n_threads = n_threads
        self.workspace = _core.Workspace()

    def answer(self, kernel, *arguments):
        out = reference.Structure(
            np.full(self.max_depth, -1, np.int32),
            np.full(self.max_depth, 77, np.uint8),
            np.full(self.max_depth, 77, np.uint8),
        )
        depth = kernel(self.workspace, *arguments, *out, self.n_threads)
        return reference.Structure(*(array[:depth] for array in out))

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
            _core.Rows(
                columns,
                reference.to_rows(columns),
                np.asarray(n_codes, dtype=np.int32),
                np.asarray(kinds, dtype=np.uint8),
                weight,
                reference.weight_facts(weight, gradient.shape[1]),
            ),
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


# Searching.


@settings(max_examples=300)
@given(generators, sizes, code_counts, st.integers(1, 3), st.integers(1, 5), l2s, st.booleans())
def test_the_structure_equals_that_of_trying_all_candidates(
    rng, n_rows, n_codes, n_outputs, max_depth, l2, sampled
):
    columns, kinds = make_kinds(rng, n_rows, n_codes)
    rows = None
    if sampled:
        rows = np.sort(rng.choice(n_rows, n_rows // 2, replace=False)).astype(np.uint32)
    n = n_rows if rows is None else len(rows)
    packed = make_words(rng, n_outputs, n, largest=rng.choice([1, 50, 2**19]))
    found = Search(max_depth).search(columns, n_codes, kinds, packed, rows, l2)
    codes = reference.to_rows(columns)[slice(None) if rows is None else rows]
    expected = reference.search(codes, n_codes, kinds, packed, max_depth, l2, 0.0, 1, 2)
    assert_same(found, expected)


@settings(max_examples=15)
@given(generators, st.sampled_from([33, 100, 257]), st.sampled_from([0.1, 1.0, 10.0]))
def test_noise_on_the_scores_equals_its_twin(rng, n_rows, strength):
    n_codes = [5, 9, 2, 3, 7]
    columns, kinds = make_kinds(rng, n_rows, n_codes)
    packed = make_words(rng, 2, n_rows)
    found = Search(3).search(columns, n_codes, kinds, packed, strength=strength)
    codes = reference.to_rows(columns)
    expected = reference.search(codes, n_codes, kinds, packed, 3, 0.0, strength, 1, 2)
    assert_same(found, expected)


@pytest.mark.parametrize("max_depth", range(1, 11))
def test_structures_of_every_depth_equal_their_twin(max_depth):
    rng = np.random.default_rng(max_depth)
    n_codes = [9, 5, 3, 9, 4]
    columns, kinds = make_kinds(rng, 600, n_codes)
    packed = make_words(rng, 1, 600)
    found = Search(max_depth).search(columns, n_codes, kinds, packed)
    codes = reference.to_rows(columns)
    expected = reference.search(codes, n_codes, kinds, packed, max_depth, 0.0, 0.0, 1, 2)
    assert len(found.features) == max_depth
    assert_same(found, expected)


def test_the_deepest_structure_equals_its_twin():
    # So wide and deep that the last level's histograms are not kept but built anew.
    rng = np.random.default_rng(3)
    n_codes = [256] + [3] * 8
    columns, kinds = make_kinds(rng, 2000, n_codes)
    packed = make_words(rng, 1, 2000)
    found = Search(16).search(columns, n_codes, kinds, packed)
    codes = reference.to_rows(columns)
    expected = reference.search(codes, n_codes, kinds, packed, 16, 0.0, 0.0, 1, 2)
    assert len(found.features) == 16
    assert_same(found, expected)


@pytest.mark.parametrize("n", [8191, 8193, 40_000])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_structure_does_not_depend_on_threads(n, n_outputs):
    rng = np.random.default_rng(4)
    n_codes = [33, 65, 2, 17, 9]
    columns, kinds = make_kinds(rng, n, n_codes)
    packed = make_words(rng, n_outputs, n)
    expected = Search(6).search(columns, n_codes, kinds, packed)
    for n_threads in THREADS:
        assert_same(Search(6, n_threads).search(columns, n_codes, kinds, packed), expected)


def test_a_workspace_holds_no_state_between_calls():
    rng = np.random.default_rng(5)
    used = Search(4)
    for n, n_codes in ((300, [9, 3, 5]), (40, [2]), (0, [3]), (500, [17] * 6), (31, [5, 5])):
        columns, has_missing = make_codes(rng, n, n_codes)
        packed = make_words(rng, 2, n)
        for rows in (None, np.arange(n, dtype=np.uint32)):
            found = used.search(columns, n_codes, has_missing, packed, rows)
            assert_same(found, Search(4).search(columns, n_codes, has_missing, packed, rows))


def test_the_best_split_of_a_step_function_is_its_step():
    columns = np.array([[1, 1, 2, 2, 3, 3], [1, 2, 1, 2, 1, 2]], dtype=np.uint8)
    packed = (np.array([[6, 6, 6, 6, -3, -3]]) << 32) + 1
    found = Search(1).search(columns, [4, 3], np.array([False, False]), packed)
    assert (found.features[0], found.lows[0], found.highs[0]) == (0, 0, 2)


def test_equal_scores_go_to_the_first_feature():
    columns = np.array([[1, 1], [1, 2], [1, 2]], dtype=np.uint8)
    packed = (np.array([[1, -1]]) << 32) + 1
    found = Search(1).search(columns, [3, 3, 3], np.zeros(3, bool), packed)
    assert found.features.tolist() == [1]


def test_equal_scores_of_a_feature_go_to_the_first_last_code():
    columns = np.array([[1, 4]], dtype=np.uint8)  # codes 1, 2 and 3 part them alike
    packed = (np.array([[1, -1]]) << 32) + 1
    found = Search(1).search(columns, [6], np.array([False]), packed)
    assert (found.lows[0], found.highs[0]) == (0, 1)


def test_of_equal_scores_missing_left_comes_before_missing_right():
    # Missing rows have no gradient: either side is as good for them.
    columns = np.array([[0, 1, 2]], dtype=np.uint8)
    packed = np.array([[0, (1 << 32) + 1, (-1 << 32) + 1]])
    found = Search(1).search(columns, [3], np.array([True]), packed)
    assert (found.lows[0], found.highs[0]) == (0, 1)


def test_missing_values_go_to_the_side_they_are_like():
    columns = np.array([[0, 0, 1, 2]], dtype=np.uint8)
    has_missing = np.array([True])
    like_high = (np.array([[-4, -4, 4, -4]]) << 32) + 1
    found = Search(1).search(columns, [3], has_missing, like_high)
    assert (found.lows[0], found.highs[0]) == (1, 1)
    like_low = (np.array([[4, 4, 4, -4]]) << 32) + 1
    found = Search(1).search(columns, [3], has_missing, like_low)
    assert (found.lows[0], found.highs[0]) == (0, 1)
    like_none = (np.array([[4, 4, -4, -4]]) << 32) + 1
    found = Search(1).search(columns, [3], has_missing, like_none)
    assert (found.lows[0], found.highs[0]) == (0, 0)


@pytest.mark.parametrize(
    ("columns", "weight"),
    [
        ([[1, 1, 1], [2, 2, 2]], [1, 1, 1]),  # constant columns
        ([[0, 0, 0]], [1, 1, 1]),  # all missing
        ([[1, 2, 2]], [0, 1, 1]),  # the only row on one side has no weight
        ([[1, 2, 3]], [0, 0, 0]),
        ([[], []], []),
    ],
)
def test_where_nothing_can_be_parted_the_tree_is_a_constant(columns, weight):
    columns = np.array(columns, dtype=np.uint8)
    weight = np.array(weight, dtype=np.int64)
    packed = ((5 * weight << 32) + weight).reshape(1, -1)
    n_codes = [4] * len(columns)
    found = Search(3).search(columns, n_codes, (columns == 0).any(axis=1), packed)
    assert len(found.features) == 0


def test_the_tree_ends_where_no_row_can_be_parted_further():
    columns = np.array([[1, 1, 2, 2], [1, 2, 1, 2]], dtype=np.uint8)
    packed = (np.array([[1, 2, 3, 5]]) << 32) + 1
    found = Search(5).search(columns, [3, 3], np.zeros(2, bool), packed)
    assert sorted(found.features.tolist()) == [0, 1]


def test_a_split_without_gain_is_still_taken():
    columns = np.array([[1, 2]], dtype=np.uint8)
    packed = np.array([[1, 1]])  # no gradient at all
    found = Search(1).search(columns, [3], np.array([False]), packed)
    assert found.features.tolist() == [0]


# Growing: rows, words and search in one call.


@settings(max_examples=300)
@given(
    generators,
    st.sampled_from([0, 4, 32, 36, 100]),
    st.integers(1, 3),
    st.booleans(),
    weightings,
    sigmas,
    st.sampled_from([0.0, 5.0, 50.0]),
    st.tuples(st.sampled_from([None, 0, 1, 20, 10**9]), st.sampled_from([None, 1, 2, 10**9])),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([1, 2, 4]),
    st.tuples(seeds, steps),
)
def test_growing_equals_its_twin(
    rng, n_rows, n_outputs, newton, weighting, sigma, l2, sample, strength, n_copies, where
):
    structure_rows, structure_outputs = sample
    n_codes = [5, 2, 9, 3, 1, 4, 4, 2, 6]
    columns, kinds = make_kinds(rng, n_rows, n_codes)
    gradient = rng.normal(size=(n_outputs, n_rows))
    hessian = rng.uniform(size=gradient.shape) if newton else None
    weight = make_weight(rng, n_rows, weighting) if weighting else None
    growth = reference.Growth(3, l2, structure_rows, strength, n_copies, structure_outputs)
    found = Search(3).grow(
        columns, n_codes, kinds, (gradient, hessian), weight, sigma, growth, *where
    )
    bounds = bounds_of(gradient, hessian)
    expected = reference.grow(
        columns, n_codes, kinds, gradient, hessian, weight, bounds, sigma, growth, *where
    )
    assert_same(found, expected)


def test_newton_scores_prefer_flat_rows():
    # Both features part the gradient alike; the second gathers the rows of little curvature.
    columns = np.array([[1, 2, 1, 2], [1, 1, 2, 2]], dtype=np.uint8)
    gradient = np.array([[3.0, -1.0, 1.0, -3.0]])
    hessian = np.array([[0.1, 0.1, 1.0, 1.0]])
    growth = reference.Growth(1)
    by_weight = Search(1).grow(columns, [3, 3], [0, 0], gradient, None, 0.0, growth)
    assert by_weight.features.tolist() == [0]  # (4^2 + 4^2) / 2 against (2^2 + 2^2) / 2
    gradient = np.array([[3.0, 1.0, -1.0, 1.0]])
    by_weight = Search(1).grow(columns, [3, 3], [0, 0], gradient, None, 0.0, growth)
    by_bend = Search(1).grow(columns, [3, 3], [0, 0], (gradient, hessian), None, 0.0, growth)
    # By weight 2^2 / 2 + 2^2 / 2 against 4^2 / 2; by curvature 2^2 / 1.1 twice against 4^2 / .2.
    assert by_weight.features.tolist() == [1]
    assert by_bend.features.tolist() == [1]
    hessian = np.array([[0.1, 1.0, 0.1, 1.0]])
    # By curvature the first feature has 2^2 / .2 + 2^2 / 2, the second 4^2 / 1.1.
    by_bend = Search(1).grow(columns, [3, 3], [0, 0], (gradient, hessian), None, 0.0, growth)
    assert by_bend.features.tolist() == [0]


def test_a_feature_of_levels_is_split_by_one_level_against_the_rest():
    columns = np.array([[1, 2, 3, 1, 2, 3]], dtype=np.uint8)
    packed = (np.array([[-3, 6, -3, -3, 6, -3]]) << 32) + 1
    found = Search(1).search(columns, [4], [reference.LEVELS], packed)
    assert (found.lows[0], found.highs[0]) == (2, 2)
    last = (np.array([[-3, -3, 6, -3, -3, 6]]) << 32) + 1
    found = Search(1).search(columns, [4], [reference.LEVELS], last)
    assert (found.lows[0], found.highs[0]) == (3, 3)


@pytest.mark.parametrize("structure_outputs", [None, 1])
@pytest.mark.parametrize("structure_rows", [None, 9000])
def test_growing_does_not_depend_on_threads(structure_rows, structure_outputs):
    rng = np.random.default_rng(6)
    n_codes = [33, 65, 2, 17, 9]
    columns, kinds = make_kinds(rng, 30_000, n_codes)
    gradient, weight = rng.normal(size=(2, 30_000)), make_weight(rng, 30_000)
    growth = reference.Growth(6, structure_rows=structure_rows, structure_outputs=structure_outputs)
    problem = columns, n_codes, kinds, gradient, weight, 0.5, growth
    expected = Search(6).grow(*problem)
    for n_threads in THREADS:
        assert_same(Search(6, n_threads).grow(*problem), expected)


@pytest.mark.parametrize("structure_outputs", [None, 1])
@pytest.mark.parametrize("factor", [2.0**-20, 2.0, 2.0**40])
def test_the_structure_does_not_depend_on_the_scale_of_the_gradient(factor, structure_outputs):
    rng = np.random.default_rng(8)
    columns, has_missing = make_codes(rng, 500, [9, 5, 5])
    gradient = rng.normal(size=(2, 500))
    growth = reference.Growth(4, random_strength=1.0, structure_outputs=structure_outputs)
    problem = columns, [9, 5, 5], has_missing
    expected = Search(4).grow(*problem, gradient, None, 1.5, growth)
    found = Search(4).grow(*problem, factor * gradient, None, factor * 1.5, growth)
    assert_same(found, expected)


def test_rows_without_weight_do_not_matter():
    rng = np.random.default_rng(9)
    columns, _ = make_codes(rng, 400, [9, 5])
    has_missing = np.array([True, True])
    gradient, weight = rng.normal(size=(1, 400)), make_weight(rng, 400)
    growth = reference.Growth(3)
    expected = Search(3).grow(columns, [9, 5], has_missing, gradient, weight, 1.0, growth)
    columns[:, weight == 0] = 0
    gradient[:, weight == 0] = reference.largest(gradient)
    found = Search(3).grow(columns, [9, 5], has_missing, gradient, weight, 1.0, growth)
    assert_same(found, expected)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 1e308])
def test_gradients_of_any_size_give_a_structure(size):
    rng = np.random.default_rng(2)
    columns, has_missing = make_codes(rng, 100, [5, 5])
    gradient = np.where(columns[:1] > 2, size, -size)
    found = Search(1).grow(
        columns, [5, 5], has_missing, gradient, None, 0.0, reference.Growth(max_depth=1)
    )
    assert len(found.features) == 1
    if 1e-300 < size < 1e300:
        assert (found.features[0], found.highs[0]) == (0, 2)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
def test_equal_weights_of_any_size_are_as_good_as_none(size):
    rng = np.random.default_rng(2)
    columns, has_missing = make_codes(rng, 100, [5, 9])
    gradient = rng.normal(size=(1, 100))
    problem = columns, [5, 9], has_missing, gradient
    growth = reference.Growth(max_depth=2)
    plain = Search(2).grow(*problem, None, 0.0, growth)
    found = Search(2).grow(*problem, np.full(100, size), 0.0, growth)
    assert len(found.features) == 2
    if 1e-300 < size < 1e300:
        assert found.features.tolist() == plain.features.tolist()
        assert found.highs.tolist() == plain.highs.tolist()


# Refusals.


def test_shapes_and_numbers_that_do_not_fit_are_refused():
    columns = np.ones((2, 3), dtype=np.uint8)
    no_missing = np.zeros(2, bool)
    packed = np.ones((1, 3), dtype=np.int64)
    search = Search(2).search
    with pytest.raises(ValueError, match="n_codes and kinds"):
        search(columns, [3], no_missing, packed)
    for n_codes in ([3, 0], [257, 3], [-1, 3]):
        with pytest.raises(ValueError, match=r"n_codes must lie in 1\.\.256"):
            search(columns, n_codes, no_missing, packed)
    with pytest.raises(ValueError, match="one word per structure row"):
        search(columns, [3, 3], no_missing, packed[:, :2].copy())
    with pytest.raises(ValueError, match="a structure row is out of range"):
        search(columns, [3, 3], no_missing, packed, np.array([0, 1, 3], dtype=np.uint32))
    with pytest.raises(TypeError, match="incompatible"):
        search(columns, [3, 3], no_missing, packed, np.array([0, 1, 2]))
    for max_depth in (0, 17):
        with pytest.raises(ValueError, match=r"max_depth must lie in 1\.\.16"):
            Search(max_depth).search(columns, [3, 3], no_missing, packed)
    draw = reference.Draw(np.array([3], dtype=np.uint32), None, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="a structure row is out of range"):
        quantise(np.ones((1, 3)), None, draw, 0.0)
    with pytest.raises(ValueError, match="packed must be"):
        _core.quantise(
            _core.Slopes(np.ones((1, 3)), None),
            1.0,
            None,
            (1.0, 1.0, 3.0),
            None,
            None,
            1.0,
            1.0,
            0.0,
            (1.0, 0.0),
            False,
            0,
            0,
            packed[:, :2].copy(),
            1,
        )
    draw = reference.Draw(np.array([0], dtype=np.uint32), np.ones(2), 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="lift must be"):
        quantise(np.ones((1, 3)), None, draw, 0.0)
    for n in (0, 3, 4):
        with pytest.raises(ValueError, match=r"n must lie in 1\.\.rows - 1"):
            draw_rows(np.ones((1, 3)), None, 0.0, n)
    for begin, end in ((-1, 2), (2, 1), (0, 4)):
        with pytest.raises(ValueError, match=r"range must lie in 0\.\.N"):
            draw_rows(np.ones((1, 3)), None, 0.0, 1, begin=begin, end=end)
    growth = reference.Growth(2, structure_rows=-1)
    with pytest.raises(ValueError, match="n_structure_rows must not be negative"):
        Search(2).grow(columns, [3, 3], no_missing, np.ones((1, 3)), None, 0.0, growth)
    growth = reference.Growth(2, structure_outputs=0)
    with pytest.raises(ValueError, match="n_structure_outputs must be positive"):
        Search(2).grow(columns, [3, 3], no_missing, np.ones((1, 3)), None, 0.0, growth)
    with pytest.raises(ValueError, match="slopes must be"):
        Search(2).grow(columns, [3, 3], no_missing, np.ones((1, 4)), None, 0.0, reference.Growth(2))
