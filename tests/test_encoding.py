"""Categorical columns in fit and predict: what becomes of them, and that nothing leaks."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, roc_auc_score

from sglb import SGLBClassifier, SGLBRegressor, archive
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


def mixed(n_rows=400, seed=0):
    """A table with a bit of everything, and a target that depends on it."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, 90, n_rows)
    size = rng.choice(["S", "M", "L", None], n_rows)
    x = rng.normal(size=n_rows).astype(np.float32)
    table = pd.DataFrame(
        {
            "x": x,
            "shop": [f"s{number}" for number in shop],
            "n": rng.integers(0, 5, n_rows).astype(np.int8),
            "size": pd.Series(size, dtype=object),
            "flag": rng.random(n_rows) < 0.5,
        }
    )
    raw = x + (shop % 3) - (size == "S") + rng.normal(size=n_rows)
    return table, raw


def containers(table):
    polars = pl.from_pandas(table)
    shops = [*sorted(set(table["shop"]), reverse=True), "never"]
    return {
        "pandas": table,
        "pandas category": table.astype({"size": "category"}).assign(
            shop=pd.Categorical(table["shop"], categories=shops)
        ),
        "pandas nullable": table.convert_dtypes(),
        "pandas arrow": table.convert_dtypes(dtype_backend="pyarrow"),
        "polars": polars,
        "polars categorical": polars.cast({"size": pl.Categorical}),
        "polars enum": polars.cast({"shop": pl.Enum(shops)}),
        "polars lazy": polars.lazy(),
        "arrow": pa.Table.from_pandas(table, preserve_index=False),
        "arrow dictionary": polars.cast({"size": pl.Categorical}).to_arrow(),
    }


TABLE, RAW = mixed()
KINDS = list(containers(TABLE))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_give_the_same_bytes_from_every_container(kind):
    y = RAW > 0
    expected = SGLBClassifier(**FAST).fit(TABLE, y)
    model = SGLBClassifier(**FAST).fit(containers(TABLE)[kind], y)
    assert archive.dumps(model._model) == archive.dumps(expected._model)
    assert np.array_equal(model.predict_raw(TABLE), expected.predict_raw(containers(TABLE)[kind]))


def test_an_array_of_objects_gives_the_predictions_of_the_table():
    y = RAW > 0
    array = TABLE.to_numpy(dtype=object)
    expected = SGLBClassifier(**FAST).fit(TABLE, y).predict_raw(TABLE)
    for spec in ("from_dtype", [1, 3], [False, True, False, True, False]):
        model = SGLBClassifier(**FAST, categorical_features=spec).fit(array, y)
        assert np.array_equal(model.predict_raw(array), expected)
        assert np.array_equal(model.predict_raw(array.tolist()), expected)


@pytest.mark.parametrize("n_jobs", [2, 3, 8])
def test_the_bytes_do_not_depend_on_the_number_of_threads(n_jobs):
    table, raw = mixed(3000)
    params = {**FAST, "temperature": 0.01}
    single = SGLBClassifier(**params).fit(table, raw > 0)
    threaded = SGLBClassifier(**{**params, "n_jobs": n_jobs}).fit(table, raw > 0)
    assert archive.dumps(single._model) == archive.dumps(threaded._model)
    assert np.array_equal(single.predict_raw(table), threaded.predict_raw(table))


MODELS = {
    "binary": (SGLBClassifier, {}, RAW > 0),
    "classes": (SGLBClassifier, {}, np.digitize(RAW, [0.0, 1.0])),
    "sla": (SGLBClassifier, {"loss": "sla"}, RAW > 0),
    "squared": (SGLBRegressor, {}, RAW),
    "huber": (SGLBRegressor, {"loss": "huber"}, RAW),
    "poisson": (SGLBRegressor, {"loss": "poisson"}, np.maximum(RAW, 0).round()),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_way_to_predict_agrees(name):
    kind, extra, y = MODELS[name]
    model = kind(**{**FAST, **extra}).fit(TABLE, y, eval_set=[(TABLE, y)])
    raw = model.predict_raw(TABLE)
    last = list(model.staged_predict_raw(TABLE))[-1]
    np.testing.assert_allclose(last, raw, rtol=0, atol=1e-9)
    answer = model.predict_proba(TABLE) if hasattr(model, "classes_") else model.predict(TABLE)
    row = model.row_predictor()
    for index in (0, 17, 399):
        np.testing.assert_array_equal(row(TABLE.iloc[index].tolist()), answer[index])
    unseen = [NAN, "never", None, 3.5, 1]
    table = pd.DataFrame([unseen], columns=TABLE.columns)
    expected = model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)
    np.testing.assert_array_equal(row(unseen), expected[0])
    for wrong in (unseen[:4], [*unseen, 1]):
        with pytest.raises(ValueError, match=f"must be 5 values, .*; it has {len(wrong)}"):
            row(wrong)
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list(TABLE.columns)
    assert model.feature_importances_.shape == (5,)
    assert len(model.predict(TABLE[:0])) == 0
    uncertainty = model.predict_uncertainty(TABLE[:7])
    assert len(uncertainty.knowledge) == 7


def test_evaluation_frames_may_have_other_categories():
    y = RAW > 0
    table = TABLE.astype({"shop": "category", "size": "category"})
    half = table[
        200:
    ].assign(
        shop=table["shop"][200:].astype(object),  # plain text
        size=table["size"][200:].cat.set_categories(["XL", "M", "L"]),  # fewer, more, another order
    )
    model = SGLBClassifier(**FAST).fit(table[:200], y[:200], eval_set=[(half, y[200:])])
    recorded = model.evals_result_["validation_0"]["loss"][-1]
    probability = model.predict_proba(half)[:, 1]
    assert math.isclose(recorded, log_loss(y[200:], probability), rel_tol=1e-6)


def test_numbers_named_as_categorical_are_levels():
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(40), 20))
    y = (rng.choice([0, 1], 40)[codes] + 0.1 * rng.normal(size=800)).astype(np.float64)
    X = codes[:, None]
    model = SGLBRegressor(**FAST, categorical_features=[0]).fit(X, y)
    same = SGLBRegressor(**FAST, categorical_features=[True]).fit(X.astype(np.float32), y)
    assert np.array_equal(model.predict(X), same.predict(X.astype(float)))
    assert np.array_equal(model.predict(X), model.predict(X.astype(str)))
    assert len(np.unique(model.predict(np.array([[-1], [99], [1000]])))) == 1


def test_a_fitted_model_says_which_columns_are_categorical_and_which_are_text():
    table = pd.DataFrame({"a": np.arange(40.0), "town": ["Rom", "Bern"] * 20, "code": [1, 2] * 20})
    model = SGLBClassifier(**FAST, categorical_features=["town", "code"])
    with pytest.raises(NotFittedError):
        _ = model.is_categorical_
    model.fit(table, [0, 1] * 20)
    assert model.is_categorical_.tolist() == [False, True, True]
    assert model.is_text_.tolist() == [False, True, False]
    model.is_categorical_[:] = False  # a copy: the model stays as it is
    assert model.is_categorical_.any()
    numeric = SGLBClassifier(**FAST).fit(table[["a"]], [0, 1] * 20)
    assert not numeric.is_categorical_.any()
    assert not numeric.is_text_.any()


def test_renamed_missing_and_reordered_columns_are_rejected_by_name():
    model = SGLBClassifier(**FAST).fit(TABLE, RAW > 0)
    with pytest.raises(ValueError, match="missing:\n- size"):
        model.predict(TABLE.drop(columns="size"))
    with pytest.raises(ValueError, match="unseen at fit time:\n- sizes"):
        model.predict(TABLE.rename(columns={"size": "sizes"}))
    with pytest.raises(ValueError, match=r"Column 0 is 'shop'; in fit it was 'x'"):
        model.predict(TABLE[["shop", "x", "n", "size", "flag"]])


def test_rows_of_weight_zero_teach_no_levels():
    weight = np.ones(400)
    weight[TABLE["size"] == "L"] = 0.0
    model = SGLBClassifier(**FAST).fit(TABLE, RAW > 0, sample_weight=weight)
    kept = TABLE["size"] != "L"
    other = SGLBClassifier(**FAST).fit(TABLE[kept], (RAW > 0)[kept], sample_weight=weight[kept])
    assert archive.dumps(model._model) == archive.dumps(other._model)
    assert model._model.recipe.encoding.vocabularies[1].labels == ("M", "S")


def test_the_unit_of_weights_does_not_change_the_statistics():
    y = RAW > 0
    third = np.full(400, 1 / 3)
    unweighted = encode_mixed(y, None)
    weighted = encode_mixed(y, third)
    for table, same in zip(unweighted.tables, weighted.tables, strict=True):
        np.testing.assert_allclose(table.statistics, same.statistics, rtol=1e-12)
        if table.counts is not None:
            np.testing.assert_allclose(table.counts, same.counts, rtol=1e-12)


def encode_mixed(y, weight):
    return SGLBClassifier(**FAST).fit(TABLE, y, sample_weight=weight)._model.recipe.encoding


# -------------------------------------------------------------------------------------- leakage


def test_random_labels_and_ten_thousand_levels_end_at_chance():
    # Labels are coins, so no model can do better than log 2 on other rows. Had rows seen their own
    # target, the chain would take the statistic for the truth: in-sample means end above 1.0 here.
    # On 10,000 fresh rows an honest AUC has a standard deviation of .006: 4 of them, error 1e-4.
    rng = np.random.default_rng(7)
    table = pl.DataFrame({"id": towns(30_000, 10_000, 1), "other": towns(30_000, 200, 2)})
    y = rng.integers(0, 2, 30_000)
    model = SGLBClassifier(random_state=0, n_estimators=100).fit(table[:20_000], y[:20_000])
    probability = model.predict_proba(table[20_000:])[:, 1]
    assert abs(roc_auc_score(y[20_000:], probability) - 0.5) < 0.024
    assert log_loss(y[20_000:], probability) < math.log(2) + 0.01


def test_weights_that_know_the_target_do_not_give_it_away():
    # Balanced classes weigh rows by their target: a level of one row must not show its weight.
    rng = np.random.default_rng(9)
    table = pl.DataFrame({"id": towns(20_000, 10_000, 1)})
    y = (rng.random(20_000) < 0.1).astype(int)
    model = SGLBClassifier(random_state=0, n_estimators=50, class_weight="balanced")
    model.fit(table[:10_000], y[:10_000])
    probability = model.predict_proba(table[10_000:])[:, 1]
    # 1,000 positives among 10,000: an AUC by chance has a standard deviation of .01, error 1e-4.
    assert abs(roc_auc_score(y[10_000:], probability) - 0.5) < 0.04
    assert log_loss(y[10_000:], probability, sample_weight=np.where(y[10_000:], 9, 1)) < 0.8


def test_training_and_fresh_rows_have_statistics_of_the_same_law():
    # A row's statistic over the rows before it and a fresh row's statistic over as many rows are
    # draws of one law: given the level, both are means of n other targets. Compared at the end of
    # the order, where n is what a fresh row meets: the last 2,000 of 40,000 rows and 2,000 fresh
    # ones. Difference of means: 4 standard errors, error rate 1e-4.
    rng = np.random.default_rng(11)
    level = rng.integers(0, 5000, 42_000)
    rate = rng.random(5000)
    y = (rng.random(42_000) < rate[level]).astype(float)
    features = labelled([f"l{number}" for number in level[:40_000]])
    encoder = Encoder(features, Target.of(y[:40_000]), most_levels=64, many=64, seed=0, n_threads=1)
    part, _ = encoder.single()
    fresh = values_of(encoder.encoding(), labelled([f"l{number}" for number in level[40_000:]]))
    codes = part.bins.encode(fresh[:, :1])[0].astype(float)
    last = part.columns[0, encoder.orders[0][-2000:]].astype(float)
    error = math.sqrt(last.var() / 2000 + codes.var() / 2000)
    assert abs(last.mean() - codes.mean()) < 4 * error
    assert abs(last.std() / codes.std() - 1) < 0.1
    # And the statistic correlates with the target alike in training rows and in new rows.
    training = np.corrcoef(last, y[encoder.orders[0][-2000:]])[0, 1]
    unseen = np.corrcoef(codes, y[40_000:])[0, 1]
    assert abs(training - unseen) < 4 * math.sqrt(2 / 2000)


def test_the_residual_variance_does_not_trust_statistics_that_know_their_rows():
    # 2,000 levels of two rows and a target of pure noise: variance 1 remains, in training too.
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"id": [f"l{number // 2}" for number in range(4000)]})
    y = rng.normal(size=4000)
    model = SGLBRegressor(random_state=0, n_estimators=50).fit(table, y)
    assert model.predict_uncertainty(table[:1]).data[0] > 0.9
