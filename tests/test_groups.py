"""Which rows are ranked together: ids and sizes as read, and sums over the rows of queries."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglb.folds import N_FOLDS, assign_folds
from sglb.frame import read_groups, read_query_weight
from sglb.queries import Queries
from sglb.target import Target
from sglb.training_set import TrainingSet

# --- ids and sizes ---


@pytest.mark.parametrize(
    "ids",
    [
        [7, 3, 7, 7, 3],
        ["b", "a", "b", "b", "a"],
        [2.5, -1.0, 2.5, 2.5, -1.0],
        np.array(["2020-01-02", "2020-01-01", *["2020-01-02"] * 2, "2020-01-01"], "M8[D]"),
        [True, False, True, True, False],
        pd.Series(["b", "a", "b", "b", "a"], dtype="category"),
        pl.Series(["b", "a", "b", "b", "a"]),
        np.array([[7], [3], [7], [7], [3]]),
        [("b", 1), ("a", 2), ("b", 1), ("b", 1), ("a", 2)],
    ],
    ids=lambda ids: str(getattr(ids, "dtype", type(ids[0]).__name__)),
)
def test_ids_of_any_type_are_numbered_in_rising_order(ids):
    assert read_groups(ids, 5).tolist() == [1, 0, 1, 1, 0]


def test_ids_that_cannot_be_compared_are_numbered_by_their_first_row():
    assert read_groups(["b", 1, 1.5, "b", 1], 5).tolist() == [0, 1, 2, 0, 1]


def test_sizes_are_taken_for_sizes_if_they_are_not_one_for_each_row():
    assert read_groups([2, 1, 3], 6).tolist() == [0, 0, 1, 2, 2, 2]
    assert read_groups([2.0, 1.0, 3.0], 6).tolist() == [0, 0, 1, 2, 2, 2]  # as text files are read
    assert read_groups([2, 1, 3], 3).tolist() == [1, 0, 2]  # ids


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (None, "group is None; pass an id for each row"),
        ([1.0, np.nan, 2.0], "group must have an id in every row; row 1 is nan. Give"),
        (["a", "b", None], "row 2 is None"),
        (pd.Series(["a", pd.NA, "b"]), "row 1 is"),
        (np.array(["2020-01-02", "NaT", "NaT"], "M8[D]"), "row 1 is NaT"),
        (
            [1, 2, 3, 4],
            "group has 4 values, and their sum is 10; X has 3 rows: pass an id for each",
        ),
        (["a", "b"], "group has 2 values; X has 3 rows"),
        ([4, -1], "group has 2 values; X has 3 rows"),
        (np.zeros((3, 2)), r"must be a vector, not an array of shape \(3, 2\)"),
    ],
)
def test_what_is_not_a_group_is_rejected(ids, message):
    with pytest.raises(ValueError, match=message):
        read_groups(ids, 3)


def test_weights_of_queries_are_given_to_their_rows_in_order_of_appearance():
    groups = read_groups(["b", "a", "b", "c"], 4)
    assert read_query_weight([2.0, 1.0, 5.0], groups).tolist() == [2.0, 1.0, 2.0, 5.0]
    assert read_query_weight([1, 2, 3, 4], groups) == [1, 2, 3, 4]
    assert read_query_weight(None, groups) is None
    with pytest.raises(ValueError, match="2 values; pass one for each of 4 rows or of 3 queries"):
        read_query_weight([1.0, 2.0], groups)
    with pytest.raises(ValueError, match="sample_weight must be at least 0; row 1 is -1"):
        read_query_weight([1.0, -1.0, 2.0], groups)


# --- the layout ---


def test_the_layout_lists_rows_query_by_query():
    queries = Queries.of(np.array([7, 3, 7, 7, 3]))
    assert queries.order.tolist() == [1, 4, 0, 2, 3]
    assert queries.starts.tolist() == [0, 2, 5]
    assert queries.query.tolist() == [1, 0, 1, 1, 0]
    assert queries.sums(np.array([1.0, 2.0, 4.0, 8.0, 16.0])).tolist() == [18.0, 13.0]
    assert queries.largest(np.array([1.0, -2.0, 4.0, 0.0, -3.0])).tolist() == [-2.0, 4.0]
    assert queries.means(np.ones(5) * 3, np.arange(1.0, 6.0)).tolist() == [3.0, 3.0]


def test_no_rows_are_no_queries():
    queries = Queries.of(np.empty(0, dtype=np.int64))
    assert queries.n_queries == 0
    assert queries.sums(np.empty(0)).shape == (0,)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.floats(-1e100, 1e100, allow_subnormal=False)), min_size=1
    ),
    st.randoms(),
)
def test_sums_of_queries_do_not_depend_on_the_order_of_the_rows(rows, random):
    def sums(rows):
        groups, values = (np.array(column) for column in zip(*rows, strict=True))
        return Queries.of(groups).sums(values)

    result = sums(rows)
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert result.tobytes() == sums(shuffled).tobytes()
    for group, total in zip(sorted({group for group, _ in rows}), result, strict=True):
        values = [value for other, value in rows if other == group]
        assert abs(total - np.sum(values)) <= 1e-13 * np.sum(np.abs(values))


def test_a_sum_with_a_value_that_is_not_finite_is_nan_in_its_query_alone():
    result = Queries.of(np.array([0, 0, 1])).sums(np.array([1.0, np.inf, 2.0]))
    assert np.isnan(result[0])
    assert result[1] == 2.0


# --- targets and folds in groups ---


def test_numbers_in_groups_are_relevances():
    assert Target.of([1.0, 2.0], groups=[0, 1]).task == "ranking"
    assert Target.of([1.0, 2.0]).in_groups(np.array([0, 1])).task == "ranking"
    assert Target.of([1.0, 2.0]).in_groups(np.empty(0, np.int64)).task == "regression"


@pytest.mark.parametrize("n_copies", [1, 3])
def test_queries_are_never_divided_among_folds(n_copies):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 60, 900)
    target = Target.of(rng.normal(size=900) ** 2, groups=groups).copies(n_copies)
    columns = rng.integers(1, 255, (2, 900 * n_copies)).astype(np.uint8)
    rows = TrainingSet.build(columns, np.full(2, 255), target, n_copies=n_copies)
    fold = assign_folds(rows, 1)
    assert fold.shape == (900,)
    of_queries = [set(fold[groups == group]) for group in range(60)]
    assert all(len(folds) == 1 for folds in of_queries)
    assert np.bincount([folds.pop() for folds in of_queries]).tolist() == [60 // N_FOLDS] * N_FOLDS
    assert (assign_folds(rows, 2) != fold).any()
