"""SGLBRanker on tables of all shapes: few rows, long queries, ids of all types, invalid input."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from sglb import SGLBRanker
from sglb.losses import OwnMetric, StochasticRank
from sglb.metrics import ranking_score
from test_ranker import FAST, GROUP, RANKING_LOSSES, X_TEST, X, Y, make, trees

every_loss = pytest.mark.parametrize("loss", RANKING_LOSSES)


@pytest.fixture(scope="module")
def model():
    return SGLBRanker(**FAST).fit(X, Y, GROUP)


IDS = {
    "int8": lambda g: g.astype(np.int8),
    "uint64": lambda g: g.astype(np.uint64),
    "float": lambda g: g / 2.0,
    "str": lambda g: np.array([f"{i:03}" for i in g]),
    "bytes": lambda g: np.array([b"%03d" % i for i in g]),
    "object": lambda g: np.array([f"{i:03}" for i in g], dtype=object),
    "list": lambda g: g.tolist(),
    "days": lambda g: np.datetime64("2020-01-01") + g,
    "durations": lambda g: g.astype("m8[s]"),
    "time stamps": lambda g: pd.Series(
        pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(g, "D")
    ),
    "categorical": lambda g: pd.Series(g).astype("category"),
    "nullable": lambda g: pd.Series(g, dtype="Int64"),
    "column": lambda g: g[:, None],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_of_any_type_give_the_same_model(ids, model):
    assert trees(SGLBRanker(**FAST).fit(X, Y, ids(GROUP))) == trees(model)


def with_first(value, kind=object):
    ids = np.array([f"{i:03}" for i in GROUP], dtype=kind)
    ids[0] = value
    return ids


@pytest.mark.parametrize(
    "ids",
    [
        with_first(None),
        with_first(np.nan),
        with_first(pd.NA),
        with_first(pd.NaT),
        np.where(np.arange(1200) == 0, np.nan, GROUP),
        np.where(np.arange(1200) == 0, np.inf, GROUP),
        np.append(np.datetime64("NaT"), np.datetime64("2020-01-01") + GROUP[1:]),
        pd.Series([pd.NA, *GROUP[1:]], dtype="Int64"),
        pd.Series(with_first(None)).astype("category"),
    ],
    ids=["None", "nan", "NA", "NaT", "float nan", "inf", "datetime", "nullable", "categorical"],
)
def test_missing_ids_are_rejected_everywhere_with_their_row(ids, model):
    message = "must have an id in every row; row 0 is"
    with pytest.raises(ValueError, match=f"group {message}"):
        SGLBRanker(**FAST).fit(X, Y, ids)
    with pytest.raises(ValueError, match=message):
        model.score(X, Y, ids)
    with pytest.raises(ValueError, match=message):
        model.rank(X, ids)
    with pytest.raises(ValueError, match=rf"eval_set\[0\]: eval_group\[0\] {message}"):
        SGLBRanker(**FAST).fit(X, Y, GROUP, eval_set=[(X, Y)], eval_group=[ids])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([600, 601], "group has 2 values, and their sum is 1201; X has 1200 rows"),
        ([1201, -1], "group has 2 values; X has 1200 rows"),
        ([600.0, 600.5], "group has 2 values; X has 1200 rows"),
        ([np.inf, 1.0], "group has 2 values; X has 1200 rows"),
        ([], "group has 0 values"),
        (np.column_stack([GROUP, GROUP]), r"must be a vector, not an array of shape \(1200, 2\)"),
    ],
)
def test_sizes_that_do_not_add_up_are_rejected(sizes, message):
    with pytest.raises(ValueError, match=message):
        SGLBRanker(**FAST).fit(X, Y, sizes)


def test_as_many_values_as_rows_are_ids_never_sizes():
    ones = np.ones(1200, dtype=int)  # as sizes: each row alone; as ids: a single query
    assert trees(SGLBRanker(**FAST).fit(X, Y, ones)) == trees(SGLBRanker(**FAST).fit(X, Y, [1200]))


def test_no_rows_and_one_row(model):
    assert model.predict(X[:0]).shape == (0,)
    assert model.rank(X[:0], []).shape == (0,)
    assert [scores.shape for scores in model.staged_predict(X[:0])] == [(0,)] * 30
    with pytest.raises(ValueError, match="0 sample"):
        SGLBRanker(**FAST).fit(X[:0], Y[:0], GROUP[:0])
    with pytest.warns(UserWarning, match="nothing to learn"):
        alone = SGLBRanker(**FAST).fit(X[:1], Y[:1], GROUP[:1])
    assert (alone.predict(X_TEST) == 0.0).all()


@every_loss
def test_a_single_query_is_learned(loss):
    group = np.zeros(1200)
    model = SGLBRanker(**FAST | {"n_estimators": 60}, loss=loss).fit(X, Y, group)
    assert model.score(X, Y, group) > ranking_score("ndcg", Y, np.zeros(1200), group) + 0.02


@every_loss
def test_nothing_is_learned_where_there_is_nothing_to_rank(loss):
    """Documents of equal relevance or alone in their query: no gradient, so that without noise no
    tree has a value. In xendcg equal relevances have random shares.
    """
    plain = {"sampler": "plain", "loss": loss}
    with pytest.warns(UserWarning, match="nothing to learn: no query of 1200 has rows of diff"):
        alone = SGLBRanker(**FAST, **plain).fit(X, Y, np.arange(1200))
    assert (alone.predict(X_TEST) == 0.0).all()
    with pytest.warns(UserWarning, match="nothing to learn: no query of 60 has rows of different"):
        equal = SGLBRanker(**FAST, **plain).fit(X, np.full(1200, 3.0), GROUP).predict(X_TEST)
    assert np.abs(equal).max() < 0.5 if loss == "xendcg" else (equal == 0.0).all()
    # Queries without a relevant document have no score.
    assert np.isnan(SGLBRanker(**FAST).fit(X, Y, GROUP).score(X, 0.0 * Y, GROUP))


@every_loss
def test_rows_that_are_equal_have_equal_scores_and_ties_are_placed_in_order(loss):
    twice, group = np.repeat(X[:300], 2, axis=0), np.repeat(GROUP[:300], 2)
    model = SGLBRanker(**FAST, loss=loss).fit(twice, np.repeat(Y[:300], 2), group)
    score, position = model.predict(twice), model.rank(twice, group)
    np.testing.assert_array_equal(score[::2], score[1::2])
    assert (position[::2] < position[1::2]).all()


@pytest.mark.parametrize("loss", [*RANKING_LOSSES, StochasticRank("map", 1000)], ids=str)
def test_20000_documents_in_one_query_take_memory_in_proportion(loss):
    """A matrix of pairs would take 3.2 GB; the arrays of a fit take less than 2 KB a document."""
    Z, y, _ = make(1, 20_000)
    group = np.zeros(len(Z))
    tracemalloc.start()
    try:
        model = SGLBRanker(n_estimators=1, max_depth=3, random_state=0, n_jobs=1, loss=loss)
        score = model.fit(Z, y, group).score(Z, y, group)
        assert tracemalloc.get_traced_memory()[1] < 2000 * len(Z)
    finally:
        tracemalloc.stop()
    assert score > ranking_score("ndcg", y, np.zeros(len(y)), group)


def test_a_users_metric_of_long_queries_is_rejected_before_any_work():
    Z, y, _ = make(1, 20_000)
    with pytest.raises(ValueError, match="call the metric up to 400,000,000 times a step"):
        SGLBRanker(loss=OwnMetric(lambda ranked: ranked[0])).fit(Z, y, np.zeros(len(Z)))


@every_loss
@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "row 7 is nan"), (-1.0, "row 7 has -1"), (np.inf, "row 7 is")]
)
def test_relevances_outside_of_the_domain_are_rejected_with_their_row(loss, value, message):
    y = np.where(np.arange(1200) == 7, value, Y)
    with pytest.raises(ValueError, match=message):
        SGLBRanker(**FAST, loss=loss).fit(X, y, GROUP)


@every_loss
@pytest.mark.parametrize("per", ["rows", "queries"])
def test_weights_reach_every_loss_and_the_evaluation(loss, per):
    rng = np.random.default_rng(8)
    first = np.unique(GROUP, return_index=True)[1]
    of_queries = rng.uniform(0.2, 3.0, 60)
    appearance = np.empty(60, dtype=int)
    appearance[np.argsort(first)] = np.arange(60)
    weight = of_queries if per == "queries" else of_queries[appearance[GROUP]]
    model = SGLBRanker(**FAST, loss=loss).fit(
        X, Y, GROUP, weight, eval_set=[(X, Y, weight)], eval_group=[GROUP]
    )
    assert trees(model) != trees(SGLBRanker(**FAST, loss=loss).fit(X, Y, GROUP))
    score = model.score(X, Y, GROUP, weight)
    assert model.evals_result_["validation_0"]["ndcg"][-1] == pytest.approx(score, abs=1e-12)
    wanted = ranking_score("ndcg", Y, model.predict(X), GROUP, sample_weight=weight)
    assert score == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.full(60, -1.0), "at least 0"),
        (np.append(np.nan, np.ones(59)), "finite"),
        (np.zeros(60), "zero in every row"),
        (np.ones(61), "pass one for each of 1200 rows or of 60 queries"),
    ],
)
def test_invalid_weights_of_queries_are_rejected(weight, message):
    with pytest.raises(ValueError, match=message):
        SGLBRanker(**FAST).fit(X, Y, GROUP, weight)


@every_loss
def test_subsamples_of_queries_learn(loss):
    model = SGLBRanker(**FAST | {"n_estimators": 60}, loss=loss, subsample=0.5).fit(X, Y, GROUP)
    assert model.score(X, Y, GROUP) > 0.85
    threads = SGLBRanker(**FAST | {"n_estimators": 60, "n_jobs": 2}, loss=loss, subsample=0.5)
    assert trees(threads.fit(X, Y, GROUP)) == trees(model)


def test_xendcg_does_not_run_away_at_temperature_one():
    """With the curvature q (1 - q) alone the scores of this chain are 656 apart after 300 steps."""
    hot = {"temperature": 1.0, "l2_regularization": 0.0, "leaf_method": "newton"}
    model = SGLBRanker(**FAST | {"n_estimators": 300}, **hot, loss="xendcg").fit(X, Y, GROUP)
    assert model.predict(X).std() < 20.0
