"""A target is never incomplete: weights, groups and classes have neutral values."""

import numpy as np
import pytest

from sglb import sums
from sglb.target import Target
from sglb.weights import as_weights, equal_weights, kernel_weight, take_weight

Y = np.array([3.0, 1.0, 2.0, 1.0])
PARTS = [slice(1, 3), np.array([3, 0]), np.array([True, False, False, True]), slice(None)]


def test_what_is_not_stated_has_a_neutral_value():
    target = Target.of(Y)
    assert target.weight.tolist() == [1.0] * 4
    assert (target.n_classes, len(target.groups), target.task) == (0, 0, "regression")
    assert (target.total_weight, target.weight_unit, target.mean(Y)) == (4.0, 1.0, 1.75)


@pytest.mark.parametrize(("n_classes", "task"), [(1, "binary"), (2, "binary"), (3, "multiclass")])
def test_the_task_follows_from_the_classes(n_classes, task):
    assert Target.of(np.zeros(3), classes=range(n_classes)).task == task


@pytest.mark.parametrize("rows", PARTS, ids=["slice", "numbers", "mask", "all"])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5, 4.0]], ids=["equal", "stated"])
def test_rows_are_taken_from_every_part(rows, weight):
    target = Target.of(Y, weight, groups=[7, 7, 8, 9], classes=["a", "b", "c", "d"])
    part = target.take(rows)
    assert part.values.tolist() == Y[rows].tolist()
    assert part.weight.tolist() == np.asarray(target.weight)[rows].tolist()
    assert part.groups.tolist() == np.array([7, 7, 8, 9])[rows].tolist()
    assert part.classes.tolist() == ["a", "b", "c", "d"]
    assert (part.kernel_weight is None) == (weight is None)
    assert Target.of(Y).take(rows).groups.shape == (0,)


def test_copies_of_a_row_share_its_weight_and_have_groups_of_their_own():
    target = Target.of([1.0, 2.0], [2.0, 6.0], groups=[4, 5]).copies(2)
    assert target.values.tolist() == [1.0, 2.0, 1.0, 2.0]
    assert target.weight.tolist() == [1.0, 3.0, 1.0, 3.0]
    assert target.groups.tolist() == [4, 5, 6, 7]


def test_equal_weights_need_no_memory_and_cannot_be_written():
    weight = equal_weights(10**9)
    assert weight.strides == (0,)
    assert not weight.flags.writeable
    assert kernel_weight(weight) is None
    assert kernel_weight(take_weight(weight, slice(5, 10))) is None


def test_only_ones_are_equal_weights():
    assert kernel_weight(np.ones(3)) is not None  # stated weights are read
    twos = np.broadcast_to(2.0, 3)
    assert as_weights(twos, 3).tolist() == [2.0, 2.0, 2.0]
    assert kernel_weight(as_weights(twos, 3)) is not None
    assert sums.mean([1.0, 2.0, 6.0], twos) == 3.0
    assert sums.total([1.0, 2.0, 6.0], twos) == 18.0
