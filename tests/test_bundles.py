"""Columns that exclude each other are searched as one, and nobody can tell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import generators, grow
from sglb import SGLBClassifier, bundles
from sglb.bundles import Bundles
from sglb.code_layout import SplitKind
from sglb.samplers import Move
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.training_set import TrainingSet


def one_hot(rng, n_rows, n_columns, *, none=0.3):
    """Codes (n_columns, n_rows), 2 in at most one column of a row and else 1."""
    which = np.where(rng.random(n_rows) < none, -1, rng.integers(0, n_columns, n_rows))
    return np.where(which == np.arange(n_columns)[:, None], 2, 1).astype(np.uint8)


def test_one_hot_columns_become_one_and_the_others_stay():
    rng = np.random.default_rng(0)
    columns = np.vstack([rng.integers(1, 9, (1, 500)), one_hot(rng, 500, 6)]).astype(np.uint8)
    bundled = Bundles.find(columns, np.arange(1, 7))
    assert bundled.alone.tolist() == [0]
    assert bundled.groups == ((1, 2, 3, 4, 5, 6),)
    merged = bundled.columns(columns)
    assert np.array_equal(merged[0], columns[0])
    for code, feature in enumerate(bundled.groups[0], 1):
        assert np.array_equal(merged[1] == code, columns[feature] == 2)
    assert bundled.n_codes.tolist() == [7]


def test_columns_that_meet_in_one_row_are_not_bundled():
    columns = one_hot(np.random.default_rng(1), 10_000, 5)
    assert len(Bundles.find(columns, np.arange(5)).groups[0]) == 5
    columns[4, columns[3].argmax()] = 2  # beyond the rows that are looked at first, or among them
    assert Bundles.find(columns, np.arange(5)).groups == ((0, 1, 2, 3),)
    columns = one_hot(np.random.default_rng(1), 10_000, 5)
    last = np.flatnonzero(columns[3] == 2)[-1]
    assert last > bundles.FIRST_ROWS
    columns[4, last] = 2
    assert Bundles.find(columns, np.arange(5)).groups == ((0, 1, 2, 3),)


def test_a_column_that_is_mostly_on_is_off_where_it_is_rare():
    rng = np.random.default_rng(2)
    columns = one_hot(rng, 500, 6)
    columns[2] = 3 - columns[2]
    bundled = Bundles.find(columns, np.arange(6))
    assert np.array_equal(bundled.columns(columns)[0] == 3, columns[2] == 1)
    features, lows, highs = bundled.split(
        np.array([0], np.int32), np.array([3], np.uint8), np.array([3], np.uint8)
    )
    assert (features.tolist(), lows.tolist(), highs.tolist()) == ([2], [0], [1])


def test_few_or_dense_columns_are_left_alone():
    rng = np.random.default_rng(3)
    assert Bundles.find(one_hot(rng, 500, 3), np.arange(3)) is None
    dense = rng.integers(1, 3, (20, 500)).astype(np.uint8)
    assert Bundles.find(dense, np.arange(20)) is None


def test_a_bundle_has_no_more_members_than_codes(monkeypatch):
    monkeypatch.setattr(bundles, "MOST_MEMBERS", 5)
    columns = one_hot(np.random.default_rng(4), 2000, 12)
    assert [len(group) for group in Bundles.find(columns, np.arange(12)).groups] == [5, 5]


def search(training_set, gradient, sigma, **options):
    hessian = np.full_like(gradient, 0.5)
    rule = GreedySearch(5, l2=1.0, newton=True, **options)
    return grow(rule, training_set, gradient, Move(0.1, sigma), 3, 4, hessian)


@settings(max_examples=60)
@given(generators, st.integers(1, 3), st.sampled_from([None, 150]), st.booleans())
def test_the_search_finds_what_it_finds_without_bundles(rng, n_outputs, structure_rows, weighted):
    n_rows, n_columns = 300, int(rng.integers(4, 20))
    columns = np.vstack([rng.integers(0, 9, (2, n_rows)), one_hot(rng, n_rows, n_columns)]).astype(
        np.uint8
    )
    columns = columns[rng.permutation(len(columns))]
    n_codes = columns.max(axis=1).astype(np.int32) + 1
    n_codes[n_codes == 2] = 3
    weight = rng.integers(0, 3, n_rows).astype(float) if weighted else None
    gradient = rng.normal(size=(n_outputs, n_rows))
    bundled = TrainingSet.build(columns, n_codes, Target.of(np.zeros(n_rows), weight))
    assert bundled.bundles is not None
    assert (bundled.kinds == SplitKind.BUNDLE).sum() == len(bundled.bundles.groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "LEAST_MEMBERS", 1000)
        plain = TrainingSet.build(columns, n_codes, Target.of(np.zeros(n_rows), weight))
    assert plain.bundles is None
    options = {"structure_rows": structure_rows}
    for first, second in zip(
        search(bundled, gradient, 0.5, **options),
        search(plain, gradient, 0.5, **options),
        strict=True,
    ):
        assert np.array_equal(first, second)


def test_a_model_of_one_hot_columns_is_the_one_without_bundles(monkeypatch):
    rng = np.random.default_rng(5)
    level = rng.integers(0, 12, 3000)
    X = np.column_stack([np.eye(12)[level], rng.normal(size=(3000, 2))])
    y = (rng.random(3000) < 1.0 / (1.0 + np.exp(-np.sin(3.0 * level) - X[:, -1]))).astype(int)
    model = SGLBClassifier(n_estimators=30, random_state=0).fit(X, y)
    monkeypatch.setattr(bundles, "LEAST_MEMBERS", 1000)
    plain = SGLBClassifier(n_estimators=30, random_state=0).fit(X, y)
    for name, array in plain.trace_.arrays().items():
        assert np.array_equal(model.trace_.arrays()[name], array), name
    assert (model.trace_.arrays()["features"] < 12).any()
