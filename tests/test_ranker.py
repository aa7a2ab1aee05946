"""SGLBRanker: from a table and ids of queries to a ranking."""

import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import sglb
from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor, losses
from sglb.defaults import Size
from sglb.leaves import LeafRule
from sglb.metrics import ranking_score
from sglb.settings import resolve

FAST = {"n_estimators": 30, "random_state": 0, "n_jobs": 1}


def make(n_queries=60, n_rows=1200, seed=0):
    """Relevance by two columns; a third is a level of the query that says nothing within it."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_queries, n_rows)
    X = rng.normal(size=(n_rows, 5))
    X[:, 2] = 3.0 * np.sin(group)
    hidden = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n_rows)
    y = np.digitize(hidden, [0.5, 1.5, 3.0]).astype(float)
    return X, y, group


RANKING_LOSSES = sorted(name for name, loss in losses.LOSSES.items() if loss.by_group)
X, Y, GROUP = make()
X_TEST, Y_TEST, GROUP_TEST = make(seed=1)


def trees(model):
    return b"".join(array.tobytes() for array in model.trace_.arrays().values())


# --- fit, predict, rank, score ---


@pytest.mark.parametrize("loss", [*RANKING_LOSSES, losses.XeNdcg()])
def test_a_ranker_learns_to_rank_queries_it_has_not_seen(loss):
    model = SGLBRanker(**FAST, loss=loss).fit(X, Y, GROUP)
    chance = ranking_score("ndcg", Y_TEST, np.zeros(len(Y_TEST)), GROUP_TEST)
    results = model.score(X_TEST, Y_TEST, GROUP_TEST)
    assert results > chance + 0.5 * (1.0 - chance)
    assert results == ranking_score("ndcg", Y_TEST, model.predict(X_TEST), GROUP_TEST)
    assert model.predict(X_TEST).shape == (len(X_TEST),)


def test_a_column_that_is_constant_within_queries_is_hardly_used():
    # Relevance also rises by 2 in every second query, which X[:, 2] tells.
    Z = np.column_stack([X, GROUP % 2])
    y = Y + 2.0 * (GROUP % 2)
    importance = SGLBRanker(**FAST, max_depth=1).fit(Z, y, GROUP).feature_importances_
    assert importance[5] < 0.02
    assert SGLBRegressor(**FAST, max_depth=1).fit(Z, y).feature_importances_[5] > 0.2


def test_rank_places_rows_in_their_queries():
    model = SGLBRanker(**FAST).fit(X, Y, GROUP)
    score, position = model.predict(X_TEST), model.rank(X_TEST, GROUP_TEST)
    for query in np.unique(GROUP_TEST):
        rows = (query == GROUP_TEST).nonzero()[0]
        assert rows[np.argsort(-score[rows], kind="stable")].tolist() == (
            rows[np.argsort(position[rows])].tolist()
        )
        assert sorted(position[rows]) == list(range(1, len(rows) + 1))
    assert model.rank(np.repeat(X_TEST[:1], 3, axis=0), qid=[0, 0, 1]).tolist() == [1, 2, 1]


def test_ids_in_any_type_and_order_and_sizes_give_the_same_model():
    order = np.argsort(GROUP, kind="stable")
    X_sorted, y_sorted, group = X[order], Y[order], GROUP[order]
    wanted = trees(SGLBRanker(**FAST).fit(X_sorted, y_sorted, group))
    sizes = np.unique(group, return_counts=True)[1]
    for ids in (sizes, list(sizes), group + 1000, pd.Series([f"q{g:03}" for g in group])):
        assert trees(SGLBRanker(**FAST).fit(X_sorted, y_sorted, ids)) == wanted
    assert trees(SGLBRanker(**FAST).fit(X_sorted, y_sorted, qid=group)) == wanted
    assert trees(SGLBRanker(**FAST).fit(X, Y, GROUP)) != wanted  # noise is by row number


def test_any_table_is_ranked():
    names = list("abcde")
    wanted = SGLBRanker(**FAST).fit(X, Y, GROUP).predict(X_TEST)
    for table in (pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table):
        frame, test = (table(dict(zip(names, Z.T, strict=True))) for Z in (X, X_TEST))
        model = SGLBRanker(**FAST).fit(frame, pl.Series(Y), pl.Series(GROUP))
        np.testing.assert_array_equal(model.predict(test), wanted)
        model.score(test, pd.Series(Y_TEST), pa.array(GROUP_TEST))


@pytest.mark.parametrize("loss", RANKING_LOSSES)
def test_seeds_decide_and_threads_do_not(loss):
    first, again, threads, other = (
        trees(SGLBRanker(**FAST | {"loss": loss} | change).fit(X, Y, GROUP))
        for change in ({}, {}, {"n_jobs": 2}, {"random_state": 1})
    )
    assert first == again == threads
    assert first != other


def test_relevances_in_another_unit_give_the_same_ranking():
    first, second = (
        SGLBRanker(**FAST).fit(X, unit * Y, GROUP).predict(X_TEST) for unit in (1.0, 8.0)
    )
    np.testing.assert_allclose(second, 8.0 * first)


# --- weights ---


def test_weights_of_queries_are_weights_of_their_rows():
    weight = np.random.default_rng(3).uniform(0.5, 2.0, 60)
    order = np.argsort(GROUP, kind="stable")
    X_sorted, y, group = X[order], Y[order], GROUP[order]
    by_query = SGLBRanker(**FAST).fit(X_sorted, y, group, weight)
    by_row = SGLBRanker(**FAST).fit(X_sorted, y, group, weight[group])
    assert trees(by_query) == trees(by_row)
    assert trees(by_query) != trees(SGLBRanker(**FAST).fit(X_sorted, y, group))


def test_a_query_of_weight_two_is_a_query_that_is_there_twice():
    # Without noise and samples of rows; of few values, because thresholds do not know weights.
    plain, Z = SGLBRanker(**FAST, sampler="plain"), np.round(X, 1)
    twice = GROUP < 20
    repeated = [np.concatenate([v, v[twice]]) for v in (Z, Y, GROUP)]
    repeated[2][len(GROUP) :] += 100
    weighted = plain.fit(Z, Y, GROUP, np.where(twice, 2.0, 1.0)).predict(X_TEST)
    np.testing.assert_allclose(clone(plain).fit(*repeated).predict(X_TEST), weighted, atol=1e-12)


def test_a_heavy_query_is_followed_and_one_of_no_weight_is_not_there():
    kept = GROUP < 40
    weight = np.where(kept, 1.0, 0.0)
    wanted = SGLBRanker(**FAST).fit(X[kept], Y[kept], GROUP[kept])
    assert trees(SGLBRanker(**FAST).fit(X, Y, GROUP, weight)) == trees(wanted)


# --- queries of all shapes ---


def test_equal_relevances_teach_nothing():
    with pytest.warns(UserWarning, match="nothing to learn"):
        model = SGLBRanker(**FAST).fit(X, np.full(len(X), 2.0), GROUP)
    assert (model.predict(X_TEST) == 0.0).all()
    assert model.score(X_TEST, Y_TEST, GROUP_TEST) > 0.0


def test_one_query_of_many_rows():
    Z, y, _ = make(1, 20_000)
    model = SGLBRanker(**FAST).fit(Z, y, np.zeros(len(Z)))
    assert model.score(Z, y, np.zeros(len(Z))) > 0.9
    assert sorted(model.rank(Z, np.zeros(len(Z)))) == list(range(1, 20_001))


def test_categories_of_many_levels_are_ranked_by():
    rng = np.random.default_rng(5)
    level = rng.integers(0, 150, len(X))
    y = np.round(2.0 + 2.0 * np.sin(level))
    frame = pd.DataFrame({"level": pd.Categorical(level), "x": X[:, 0]})
    model = SGLBRanker(**FAST).fit(frame, y, GROUP)
    assert model.score(frame, y, GROUP) > 0.95


def test_the_length_is_cross_validated_for_few_rows_in_enough_queries():
    model = SGLBRanker(random_state=0, n_jobs=1).fit(X, Y, GROUP)
    assert 1 < model.n_iter_ < 450
    assert trees(clone(model).set_params(n_jobs=3).fit(X, Y, GROUP)) == trees(model)
    assert SGLBRanker(random_state=0).fit(X, Y, GROUP % 40).n_iter_ == 450


def test_defaults_of_rankings():
    def settings(n_rows, n_groups, **parameters):
        size = Size(n_rows, float(n_rows), curvature=0.5, spread=2.0, n_groups=n_groups)
        return resolve(SGLBRanker(**parameters).get_params(), losses.QuerySquared(), size)

    results = settings(50_000, 50)
    assert (results.search_length, results.n_steps, results.max_depth, results.max_bins) == (
        True,
        1000,
        6,
        254,
    )
    assert results.temperature == pytest.approx(1e-3 * 0.5 * 2.0**2)
    assert (results.learning_rate, results.shrink_rate, results.random_strength) == (
        0.05,
        1e-3,
        1.0,
    )
    assert results.leaves == LeafRule("newton", 1.5)
    assert results.structure_rows == 25_000
    large, few = settings(50_001, 51), settings(1000, 49)
    for fixed in (large, few):
        assert (fixed.search_length, fixed.n_steps, fixed.learning_rate) == (False, 450, 0.05)
    short = settings(1000, 60, n_estimators=100)
    assert short.learning_rate == pytest.approx(0.05 * 4.5**0.451)
    calm = settings(1000, 60, sampler="plain")
    assert (calm.random_strength, calm.structure_rows) == (0.0, 1000)


def test_early_stopping_watches_ndcg_of_the_evaluation_queries():
    order = np.random.default_rng(0).permutation(len(X_TEST))
    evaluation = X_TEST[order], Y_TEST[order]
    model = SGLBRanker(**FAST | {"n_estimators": 300}, early_stopping_rounds=10)
    model.fit(X, Y, GROUP, eval_set=[evaluation], eval_group=[GROUP_TEST[order]])
    result = model.evals_result_["validation_0"]["ndcg"]
    assert model.best_iteration_ == int(np.argmax(result)) + 1 == model.n_iter_ < 300
    assert model.score(X_TEST, Y_TEST, GROUP_TEST) == pytest.approx(max(result), abs=1e-12)
    several = SGLBRanker(**FAST).fit(
        X,
        Y,
        GROUP,
        eval_set=evaluation,
        eval_group=GROUP_TEST[order],
        eval_metric=["map@5", "loss"],
    )
    assert set(several.evals_result_["validation_0"]) == {"map@5", "loss"}


def test_a_pipeline_scales_the_evaluation_queries_too():
    with sklearn.config_context(enable_metadata_routing=True):
        model = SGLBRanker(**FAST, early_stopping_rounds=5)
        model.set_fit_request(group=True, X_val=True, y_val=True, group_val=True)
        pipeline = Pipeline(
            [("scale", StandardScaler()), ("model", model)], transform_input=["X_val"]
        )
        pipeline.fit(X, Y, group=GROUP, X_val=X_TEST, y_val=Y_TEST, group_val=GROUP_TEST)
    scale = pipeline["scale"].transform
    alone = clone(model).fit(
        scale(X), Y, GROUP, eval_set=(scale(X_TEST), Y_TEST), eval_group=GROUP_TEST
    )
    assert pipeline["model"].evals_result_ == alone.evals_result_


def test_several_chains_and_subsamples():
    model = SGLBRanker(**FAST, n_chains=2, subsample=0.7).fit(X, Y, GROUP)
    np.testing.assert_allclose(
        model.predict_raw_chains(X_TEST).mean(axis=0), model.predict(X_TEST), atol=1e-12
    )
    assert model.score(X_TEST, Y_TEST, GROUP_TEST) > 0.85


# --- errors ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"group": None},
            "a ranking needs to know which rows are ranked together.*set_fit_request",
        ),
        ({"group": GROUP, "qid": GROUP}, "the same thing under two names"),
        ({"group": GROUP[:-1]}, "group has 1199 values.*X has 1200 rows"),
        ({"group": np.where(GROUP == 3, np.nan, GROUP)}, "group must have an id in every row; row"),
        ({"y": np.where(np.arange(1200) == 5, np.nan, Y)}, "y must be finite; row 5 is nan"),
        ({"y": np.where(np.arange(1200) == 5, -1.0, Y)}, "a relevance of 0 or more.*row 5 has -1"),
        ({"y": ["high"] * 1200}, "y must be numbers; row 0 is 'high'"),
        ({"sample_weight": [1.0, 2.0]}, "pass one for each of 1200 rows or of 60 queries"),
        ({"eval_set": [(X, Y)]}, "eval_set needs eval_group"),
        ({"eval_group": [GROUP]}, "eval_group goes with eval_set"),
        ({"X_val": X}, "X_val and y_val must be passed together"),
        ({"X_val": X, "y_val": Y}, r"eval_set\[0\]: .* eval_group\[0\] is None"),
        ({"eval_set": [(X, Y)], "eval_group": GROUP}, "eval_group has 1200 entries, eval_set 1"),
        (
            {"eval_set": [(X, Y)], "eval_group": [GROUP[1:]]},
            r"eval_set\[0\]: eval_group\[0\] has 1199 values",
        ),
        (
            {"eval_set": [(X, -Y)], "eval_group": [GROUP]},
            r"eval_set\[0\]: loss 'query_squared' needs a relevance of 0 or more",
        ),
        (
            {"eval_set": [(X, Y)], "eval_group": [GROUP], "eval_metric": "auc"},
            "'auc' has no meaning for a ranking task",
        ),
    ],
)
def test_what_cannot_be_fitted_is_rejected_before_any_work(change, message):
    arguments = {"X": X, "y": Y, "group": GROUP} | change
    with pytest.raises(ValueError, match=message):
        SGLBRanker(**FAST).fit(**arguments)


def test_losses_belong_to_their_estimators():
    with pytest.raises(ValueError, match="'squared' is not a ranking loss; known: lambdarank"):
        SGLBRanker(**FAST, loss="squared").fit(X, Y, GROUP)
    with pytest.raises(ValueError, match="loss='xendcg' is for rankings; use SGLBRanker"):
        SGLBRegressor(**FAST, loss="xendcg").fit(X, Y)
    with pytest.raises(ValueError, match="loss='xendcg' is for ranking; use SGLBRanker"):
        SGLBClassifier(**FAST, loss=losses.XeNdcg()).fit(X, Y > 0)
    assert not hasattr(SGLBRanker(), "posterior")
    with pytest.raises(AttributeError, match="minus a log likelihood; predict_raw_chains returns"):
        SGLBRanker().posterior(X, Y)


# --- files and scikit-learn's tools ---


@pytest.mark.parametrize("loss", RANKING_LOSSES)
def test_files_and_pickles_predict_the_same(loss, tmp_path):
    model = SGLBRanker(**FAST, loss=loss).fit(X, Y, GROUP)
    model.save(tmp_path / "model.sglb")
    for again in (sglb.load(tmp_path / "model.sglb"), pickle.loads(pickle.dumps(model))):
        assert isinstance(again, SGLBRanker)
        assert again.get_params() | {"n_jobs": 1} == model.get_params()
        np.testing.assert_array_equal(again.predict(X_TEST), model.predict(X_TEST))
        assert again.score(X_TEST, Y_TEST, GROUP_TEST) == model.score(X_TEST, Y_TEST, GROUP_TEST)
    assert not hasattr(clone(model), "trace_")


@pytest.mark.parametrize(
    ("requested", "passed"),
    [(True, {"group": GROUP, "groups": GROUP}), ("groups", {"groups": GROUP})],
    ids=["group beside groups", "groups for both"],
)
def test_ids_are_routed_through_searches_and_pipelines(requested, passed):
    with sklearn.config_context(enable_metadata_routing=True):
        model = SGLBRanker(**FAST).set_fit_request(group=requested)
        model.set_score_request(group=requested)
        scores = cross_val_score(model, X, Y, cv=GroupKFold(3), params=passed)
        assert (scores > 0.85).all()
        search = GridSearchCV(
            make_pipeline(StandardScaler(), model),
            {"sglbranker__max_depth": [1, 4]},
            cv=GroupKFold(3),
        ).fit(X, Y, **passed)
        assert search.best_params_ == {"sglbranker__max_depth": 4}
        folds = GroupKFold(3).split(X, Y, GROUP)
        for (train, test), score in zip(folds, scores, strict=True):
            alone = clone(model).fit(X[train], Y[train], GROUP[train])
            assert alone.score(X[test], Y[test], GROUP[test]) == score


def test_the_signature_shows_every_parameter_with_its_default():
    assert SGLBRanker().get_params()["loss"] == "query_squared"
    with pytest.raises(TypeError, match="SGLBRanker has no parameter 'n_estimator'; did you mean"):
        SGLBRanker(n_estimator=5)


def test_the_page_about_rankings_runs():
    page = (Path(__file__).parent.parent / "docs" / "ranking.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    assert len(blocks) == 4
    names = {}
    with sklearn.config_context():  # a block changes the configuration
        for block in blocks:
            exec(compile(block, "docs/ranking.md", "exec"), names)
    assert names["search"].best_params_["max_depth"] in (3, 6)
    assert names["place"].min() == 1
