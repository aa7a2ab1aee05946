"""Codes by row may be left out: the search gathers those of its sample, and finds the same."""

from dataclasses import replace

import numpy as np
import pytest

from problems import grow
from sglb import _core
from sglb.samplers import Move
from sglb.structure import GreedySearch
from sglb.target import Target
from sglb.training_set import TrainingSet


def without_rows(data):
    return replace(data, code_rows=np.empty((0, data.code_rows.shape[1]), dtype=np.uint8))


@pytest.mark.parametrize("n_columns", [1, 9, 70, 130])  # a panel has 64
@pytest.mark.parametrize("structure_rows", [None, 300, 2100])  # all rows, few, and all looked at
def test_the_search_gathers_codes(n_columns, structure_rows):
    rng = np.random.default_rng(n_columns)
    n_rows = 3000
    columns = rng.integers(0, 9, (n_columns, n_rows)).astype(np.uint8)
    gradient = rng.normal(size=(2, n_rows)) + (columns[-1] > 4) + (columns[0] > 2)
    data = TrainingSet.build(columns, np.full(n_columns, 9), Target.of(np.zeros(n_rows)))
    structures = [
        grow(
            GreedySearch(5, l2=1.0, structure_rows=structure_rows, n_threads=n_threads),
            rows,
            gradient,
            Move(0.1, 0.5),
            3,
            4,
        )
        for rows, n_threads in ((data, 1), (without_rows(data), 1), (without_rows(data), 3))
    ]
    for structure in structures[1:]:
        for expected, split in zip(structures[0], structure, strict=True):
            assert np.array_equal(expected, split)
    assert structures[0].depth == 5


def test_bundled_columns_need_codes_by_row():
    columns = np.ones((4, 8), dtype=np.uint8)
    with pytest.raises(ValueError, match="where columns are bundled"):
        _core.Shard(
            columns,
            np.empty((0, 8), dtype=np.uint8),
            np.array([5], dtype=np.int32),
            np.array([3], dtype=np.uint8),
            _core.Weights(None, 1.0, 1.0, 8.0, 1.0),
            (0, 8, 1),
            1,
        )


def test_codes_are_turned_for_those_who_need_them():
    columns = np.random.default_rng(0).integers(0, 9, (5, 40)).astype(np.uint8)
    data = TrainingSet.build(columns, np.full(5, 9), Target.of(np.zeros(40)))
    assert data.turned_rows is data.code_rows
    bare = without_rows(data)
    assert np.array_equal(bare.turned_rows, data.code_rows)
    taken = bare.take(np.arange(40) < 10)
    assert len(taken.code_rows) == 0
    assert np.array_equal(taken.turned_rows, data.code_rows[:10])
