"""Categorical columns in fit and predict: what becomes of them, and that nothing leaks."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from sglb import SGLBClassifier
from sglb.categories import Encoder
from sglb.categories import encoder as encoder_module
from sglb.categories.encoding import BLOCK_VALUES
from sglb.frame import Features
from sglb.labels import label_objects
from sglb.prepare import LabelledRows, encode_rows
from sglb.target import Target

FAST = {"n_estimators": 20, "max_depth": 4, "learning_rate": 0.2, "random_state": 0, "n_jobs": 1}
NAN = float("nan")


def labelled(*columns):
    """Features with categorical columns alone."""
    labels = tuple(label_objects(np.array(column, dtype=object), 0) for column in columns)
    n_rows = len(columns[0])
    return Features(np.empty((n_rows, 0)), labels, np.ones(len(columns), dtype=bool))


def encode_training(features, y, weight=None, max_bins=4, classes=(0, 1), n_threads=1):
    rows = LabelledRows(features, Target.of(y, weight, classes=classes))
    return encode_rows(rows, max_bins, 0, n_threads)


def values_of(encoding, features):
    blocks = [values for _, values in encoding.blocks(features)]
    return np.concatenate(blocks)


def towns(n_rows, n_levels, seed=0):
    return [f"t{number}" for number in np.random.default_rng(seed).integers(0, n_levels, n_rows)]


# ------------------------------------------------------------------------------------- encoding


def test_few_levels_become_their_numbers_in_the_order_of_labels():
    features = labelled(["b", "a", "c", "a"])
    encoded = encode_training(features, [0, 1, 0, 1])
    assert encoded.columns.tolist() == [[2, 1, 3, 1]]
    assert encoded.is_level.tolist() == [True]
    assert encoded.n_copies == 1
    assert values_of(encoded.encoding, features).tolist() == [[1], [0], [2], [0]]
    assert encoded.bins.thresholds[0, :2].tolist() == [0.5, 1.5]


def test_a_missing_value_is_the_last_level_if_training_rows_have_it_else_unseen():
    with_missing = encode_training(labelled(["b", None, "a", NAN]), [0, 1, 0, 1])
    assert with_missing.columns.tolist() == [[2, 3, 1, 3]]
    without = encode_training(labelled(["b", "a", "a", "b"]), [0, 1, 0, 1])
    rows = labelled(["a", None, "new"])
    assert with_missing.encode(rows, 1).tolist() == [[1, 3, 0]]
    assert without.encode(rows, 1).tolist() == [[1, 0, 0]]


def test_many_levels_become_means_of_the_target_and_counts():
    column = ["a", "a", "b", "c", "d", "e"]
    y = [1, 0, 1, 0, 0, 1]
    features = labelled(column)
    encoded = encode_training(features, y)
    assert encoded.n_copies == 4
    assert encoded.columns.shape == (2, 4 * 6)
    assert encoded.is_level.tolist() == [False, False]
    seen = values_of(encoded.encoding, labelled(["a", "b", "c", "new", None]))
    m = 0.5
    assert seen.tolist() == [[(1 + m) / 3, 2], [(1 + m) / 2, 1], [m / 2, 1], [m, 0], [m, 0]]


def test_weights_count_as_rows_in_means_and_a_rows_own_weight_is_left_out():
    column, y = ["a", "a", "b", "c", "d", "e"], [1, 0, 1, 0, 0, 1]
    weight = np.array([2.0, 1, 1, 1, 1, 3])
    encoded = encode_training(labelled(column), y, weight)
    m = (2 + 1 + 3) / 9
    statistic, count = values_of(encoded.encoding, labelled(["a"]))[0]
    np.testing.assert_allclose([statistic, count], [(2 + m) / 4, 2])
    # All levels but "a" have one row: whatever it weighs, training gives it the mean's code.
    plain = encoded.bins.encode(np.array([[m, 1.0]]))[0, 0]
    assert (encoded.columns[0].reshape(4, 6)[:, 2:] == plain).all()


def test_several_classes_have_a_statistic_each_and_regression_has_the_mean_of_y():
    column = ["a", "a", "b", "c", "d", "e"]
    y = np.array([2, 0, 1, 0, 0, 1])
    encoded = encode_training(labelled(column), y, classes=(0, 1, 2))
    assert encoded.columns.shape[0] == 4
    seen = values_of(encoded.encoding, labelled(["a"]))[0]
    np.testing.assert_allclose(seen, [(1 + 3 / 6) / 3, (2 / 6) / 3, (1 + 1 / 6) / 3, 2])
    numbers = encode_training(labelled(column), y, classes=())
    np.testing.assert_allclose(
        values_of(numbers.encoding, labelled(["a"]))[0], [(2 + 4 / 6) / 3, 2]
    )


def test_of_many_classes_the_most_frequent_have_statistics():
    y = np.concatenate([np.arange(40), np.repeat([7, 30], 5)]).astype(float)
    targets = encoder_module.statistic_targets(Target.of(y, classes=range(40)))
    assert targets.shape == (encoder_module.MOST_CLASSES, 50)
    assert targets.sum(axis=1).max() == 6
    assert {7, 30} <= {int(y[row.argmax()]) for row in targets}
    assert np.array_equal(encoder_module.statistic_targets(Target.of(y))[0], y)


def test_copies_get_fewer_as_rows_get_more(monkeypatch):
    monkeypatch.setattr(encoder_module, "MOST_COPIED_ROWS", 60)
    for n_rows, n_copies in ((6, 4), (15, 4), (16, 3), (30, 2), (31, 1), (100, 1)):
        column = [f"l{number % 5}" for number in range(n_rows)]
        encoded = encode_training(labelled(column), np.arange(n_rows) % 2)
        assert (n_rows, encoded.n_copies) == (n_rows, n_copies)


def test_copies_differ_in_statistics_only_and_share_the_weight():
    x = np.arange(40.0)
    labels = labelled(towns(40, 8), ["u", "v"] * 20).labels
    features = Features(x[:, None], labels, np.array([False, True, True]))
    encoded = encode_training(features, np.arange(40) % 2)
    copies = encoded.columns.reshape(-1, 4, 40)  # numbers, levels, statistic, count, combinations
    assert encoded.is_level[:4].tolist() == [False, True, False, False]
    for feature in (0, 1, 3):
        assert (copies[feature] == copies[feature, 0]).all()
    assert not (copies[2] == copies[2, 0]).all()
    rows = LabelledRows(features, Target.of(np.arange(40.0) % 2, classes=[0, 1]))
    training_set = encoded.training_set(rows.target, 1)
    assert training_set.n_copies == 4
    assert (training_set.target.weight == 0.25).all()
    assert np.array_equal(training_set.target.values, np.tile(np.arange(40.0) % 2, 4))


def test_a_column_that_identifies_its_rows_is_left_out_of_the_model():
    names = [f"row {number}" for number in range(30)]
    encoded = encode_training(labelled(names, ["u", "v"] * 15), np.arange(30) % 2)
    assert encoded.encoding.vocabularies[0].n_levels == 0
    assert not encoded.columns[0].any()
    assert np.isnan(values_of(encoded.encoding, labelled(["row 3", "x"], ["u", "v"]))[:, 0]).all()


@pytest.mark.parametrize("column", [["same"] * 30, [None] * 30])
def test_a_column_of_one_level_changes_nothing(column):
    y = np.arange(30) % 2
    x = np.random.default_rng(0).normal(size=30)
    table = pd.DataFrame({"x": x, "c": pd.Series(column, dtype=object)})
    model = SGLBClassifier(**FAST, categorical_features=["c"]).fit(table, y)
    alone = SGLBClassifier(**FAST).fit(table[["x"]], y)
    assert np.array_equal(model.predict_raw(table), alone.predict_raw(table[["x"]]))
    assert model.feature_importances_.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("n_rows", "by_level"), [(5_000, True), (4_999, False)])
def test_a_column_of_many_levels_is_split_by_level_where_these_have_rows(n_rows, by_level):
    level = np.arange(n_rows) % 100
    encoded = encode_training(labelled([f"l{number}" for number in level]), level % 2, max_bins=64)
    assert (encoded.encoding.level_columns == (0,)) == by_level
    assert encoded.n_copies == (1 if by_level else 4)
    if by_level:
        assert encoded.columns[0].max() == 100
        fresh = values_of(encoded.encoding, labelled(["l99", "new", None]))[:, 0]
        assert fresh[0] == encoded.encoding.vocabularies[0].labels.index("l99")
        assert np.isnan(fresh[1:]).all()


def test_in_regression_only_two_levels_are_split_by_level():
    few, two = ["a", "b", "c", "d"] * 25, ["u", "v"] * 50
    encoded = encode_training(labelled(few, two), np.arange(100.0), max_bins=64, classes=())
    assert encoded.encoding.level_columns == (1,)
    assert [table.members for table in encoded.encoding.tables] == [(0,)]


def test_combinations_are_chosen_that_single_columns_cannot_express():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 100, 6000), rng.integers(0, 20, 6000)
    signs = rng.choice([-1.0, 1.0], (100, 20))
    y = (rng.normal(size=6000) < 2 * signs[a, b]).astype(int)
    table = pl.DataFrame({"a": a, "b": b, "noise": rng.integers(0, 90, 6000)}).cast(pl.String)
    columns = ["a", "b", "noise"]
    model = SGLBClassifier(**FAST, categorical_features=columns).fit(table[:5000], y[:5000])
    members = [
        table.members for table in model._model.recipe.encoding.tables if len(table.members) > 1
    ]
    assert (0, 1) in members
    assert roc_auc_score(y[5000:], model.predict_proba(table[5000:])[:, 1]) > 0.8
    share = model.feature_importances_
    assert share.shape == (3,)
    assert math.isclose(share.sum(), 1.0)
    assert min(share[0], share[1]) > share[2]


def test_gains_go_to_the_columns_of_the_table_and_a_combination_divides_its_gain():
    features = Features(
        np.zeros((40, 1)),
        labelled(towns(40, 8), towns(40, 9, 1), ["u", "v"] * 20).labels,
        np.array([True, False, True, True]),
    )
    encoder = Encoder(features, Target.of(np.ones(40)), most_levels=4, many=4, seed=0, n_threads=1)
    encoder.single()
    encoder.combined([(0, 1), (0, 1, 2)])
    encoding = encoder.encoding()
    # numeric | levels of the last | statistic and count of two columns | a pair | a triple
    gains = np.array([1.0, 2, 4, 8, 16, 32, 64, 96])
    assert encoding.share(gains).tolist() == [4 + 8 + 32 + 32, 1, 16 + 32 + 32 + 32, 2 + 32]
    assert encoding.n_features == 8
    assert encoding.n_columns == 4


def test_a_combination_with_an_unseen_member_or_a_new_pair_has_the_mean():
    column, other = ["a", "a", "b", "c", "d", "e"], ["u", "u", "v", "u", "u", "v"]
    features = labelled(column, other)
    encoder = Encoder(
        features,
        Target.of([1.0, 0, 1, 0, 0, 1]),
        most_levels=4,
        many=4,
        seed=0,
        n_threads=1,
    )
    encoder.combined([(0, 1)])
    seen = labelled(["a", "b", "a", "new", "a"], ["u", "v", "v", "u", None])
    values = values_of(encoder.encoding(), seen)[:, -1]
    assert values.tolist() == [1.5 / 3, 1.5 / 2, 0.5, 0.5, 0.5]


def test_encoding_in_blocks_gives_what_one_block_gives(monkeypatch):
    features = labelled(towns(500, 40), towns(500, 3))
    encoded = encode_training(features, np.arange(500) % 2, max_bins=8)
    whole = encoded.encode(features, 1)
    assert 500 * len(whole) < BLOCK_VALUES
    monkeypatch.setattr("sglb.categories.encoding.BLOCK_VALUES", 7 * len(whole))
    assert np.array_equal(encoded.encode(features, 1), whole)
    assert np.array_equal(encoded.encode(features, 3), whole)


# ----------------------------------------------------------------------------------- estimators


# -------------------------------------------------------------------------------------- leakage
