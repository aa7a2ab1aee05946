"""Models of tables with categories: containers, ways to predict, no leak of the target."""

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
from sglb.target import Target
from test_encoding import FAST, NAN, labelled, towns, values_of


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
