"""The best k rows: precision, recall and profit at a capacity."""

import itertools

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

from sglb import SGLBClassifier, SGLBRanker, SGLBRegressor
from sglb.costs import action_costs
from sglb.losses import StochasticRank
from sglb.metrics import best_k, get_metric, precision_at_k, profit_at_k, ranking_score, recall_at_k

#   score   9  8  8  7  5  5  5  1
#   y       1  0  1  0  1  0  0  1
SCORE = np.array([9.0, 8.0, 8.0, 7.0, 5.0, 5.0, 5.0, 1.0])
Y = np.array([1, 0, 1, 0, 1, 0, 0, 1])


@pytest.mark.parametrize(
    ("k", "hits"),
    [(1, 1.0), (2, 1.5), (3, 2.0), (4, 2.0), (5, 2 + 1 / 3), (6, 2 + 2 / 3), (7, 3.0), (8, 4.0)],
)
def test_precision_and_recall_of_a_table_by_hand(k, hits):
    assert precision_at_k(Y, SCORE, k) == pytest.approx(hits / k, rel=1e-15)
    assert recall_at_k(Y, SCORE, k) == pytest.approx(hits / 4, rel=1e-15)
    share = k / 8
    assert precision_at_k(Y, SCORE, share) == pytest.approx(hits / k, rel=1e-15)


def test_a_share_may_take_part_of_a_row():
    # Half of a row of 8: the best counts one half.
    assert profit_at_k(Y, SCORE, 1 / 16, benefit=10.0) == 5.0


def test_a_capacity_above_the_number_of_rows_takes_all():
    assert precision_at_k(Y, SCORE, 100) == 0.5
    assert recall_at_k(Y, SCORE, 100) == 1.0


def test_profit_of_a_table_by_hand():
    benefit = np.array([10.0, 1.0, 20.0, 1.0, 6.0, 1.0, 1.0, 40.0])
    cost = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    assert profit_at_k(Y, SCORE, 1, benefit=benefit, cost=cost) == 9.0
    # Of the two rows with 8 each is half selected: (-2 + 17) / 2.
    assert profit_at_k(Y, SCORE, 2, benefit=benefit, cost=cost) == 9.0 + 7.5
    assert profit_at_k(Y, SCORE, 8, benefit=benefit, cost=cost) == 76.0 - 36.0
    assert profit_at_k(Y, SCORE, 3, benefit=5.0, cost=1.0) == 2 * 5.0 - 3.0


def test_strata_have_k_rows_each():
    group = np.array(list("abababab"))
    # a: 9 8 5 5 with y 1 1 1 0; b: 8 7 5 1 with y 0 0 0 1.
    assert precision_at_k(Y, SCORE, 1, group=group) == 0.5
    assert precision_at_k(Y, SCORE, 3, group=group) == pytest.approx(2.5 / 6)
    assert recall_at_k(Y, SCORE, 0.5, group=group) == 0.5
    assert best_k(SCORE, 1, group).tolist() == [True, True] + 6 * [False]


@pytest.mark.parametrize("score", [[np.inf, np.inf, 0.0, -1.0], [1.0, 1.0, -np.inf, -np.inf]])
def test_scores_that_are_infinite_may_be_equal(score):
    y = np.array([1, 0, 1, 0])
    assert precision_at_k(y, np.array(score), 1) == 0.5
    assert precision_at_k(y, np.array(score), 3) == pytest.approx(
        2 / 3 if np.isfinite(score[2]) else 1.5 / 3
    )


def brute_force(y, score, k):
    """Mean over all orders of the rows that agree with the scores."""
    orders = [
        order
        for order in itertools.permutations(range(len(y)))
        if all(score[a] >= score[b] for a, b in itertools.pairwise(order))
    ]
    return np.mean([y[list(order)][:k].sum() for order in orders])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=6),
    k=st.integers(1, 7),
)
def test_ties_count_as_the_mean_over_their_orders(rows, k):
    y, score = np.array(rows).T
    hits = brute_force(y, score, k)
    assert precision_at_k(y, score, k) == pytest.approx(hits / min(k, len(y)), abs=1e-14)
    assert profit_at_k(y, score, k) == pytest.approx(hits, abs=1e-14)


@pytest.mark.parametrize("k", [1, 7, 0.05, 0.31, 1.0])
def test_neither_the_order_of_the_rows_nor_repeated_rows_change_a_bit(k):
    rng = np.random.default_rng(3)
    y, score = rng.integers(0, 2, 200), rng.integers(0, 30, 200) / 7
    count, benefit = rng.integers(0, 4, 200), rng.normal(size=200)
    group = rng.integers(0, 3, 200)
    shuffled = rng.permutation(200)
    for groups in (None, group):
        values, repeated, moved = (
            (
                precision_at_k(y[rows], score[rows], k, **options),
                recall_at_k(y[rows], score[rows], k, **options),
                profit_at_k(y[rows], score[rows], k, benefit=benefit[rows], **options),
            )
            for rows, options in (
                (slice(None), {"sample_weight": count, "group": groups}),
                (np.repeat(np.arange(200), count),) * 1
                + ({"group": None if groups is None else np.repeat(groups, count)},),
                (
                    shuffled,
                    {
                        "sample_weight": count[shuffled],
                        "group": None if groups is None else groups[shuffled],
                    },
                ),
            )
        )
        assert values == moved
        np.testing.assert_allclose(values, repeated, rtol=1e-13)


def test_one_query_has_the_precision_of_a_ranking():
    rng = np.random.default_rng(4)
    y, score = rng.integers(0, 2, 500), rng.integers(0, 90, 500) / 3
    for name, function in (("precision", precision_at_k), ("recall", recall_at_k)):
        expected = ranking_score(f"{name}@40", y, score, np.zeros(500))
        assert function(y, score, 40) == pytest.approx(expected, rel=1e-12)


def test_the_best_k_are_the_first_rows_among_equals():
    assert np.flatnonzero(best_k(SCORE, 2)).tolist() == [0, 1]
    assert np.flatnonzero(best_k(SCORE, 0.5)).tolist() == [0, 1, 2, 3]
    assert best_k(np.arange(100.0), 0.29).sum() == 29
    assert best_k(np.arange(10.0), 0.05).sum() == 0


@pytest.mark.parametrize("k", [0, -1, 1.5, 0.0, np.nan, True, "5", None])
def test_what_is_not_a_capacity_is_rejected(k):
    with pytest.raises(ValueError, match="is not a capacity"):
        precision_at_k(Y, SCORE, k)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": SCORE[:3]}, "same length"),
        ({"score": np.column_stack([SCORE, SCORE])}, "same length"),
        ({"score": np.where(SCORE == 1.0, np.nan, SCORE)}, "score must be a number; row 7"),
        ({"y": np.array(list("abababab"))}, "pos_label"),
        ({"y": np.where(Y, np.nan, 1.0)}, "y must be a finite number; row 0"),
        ({"sample_weight": -SCORE}, "sample_weight must be at least 0"),
        ({"group": [1, 2]}, "group has 2 values"),
        ({"benefit": [1.0, 2.0]}, "benefit must be a number or have one for each of 8 rows"),
        ({"cost": np.full(8, np.inf)}, "cost must be a finite number; row 0"),
    ],
)
def test_invalid_rows_are_rejected(change, message):
    with pytest.raises(ValueError, match=message):
        profit_at_k(**({"y": Y, "score": SCORE, "k": 2} | change))


def test_a_label_can_be_named():
    assert precision_at_k(np.where(Y, "yes", "no"), SCORE, 2, pos_label="yes") == 0.75


# --- with estimators ---


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] + rng.normal(size=600) > 1.0).astype(int)
    return X, y, rng.gamma(2.0, 3.0, 600)


def last(model, metric):
    return model.evals_result_["validation_0"][metric][-1]


def test_metrics_of_evaluation_sets_are_those_of_the_functions(rows):
    X, y, benefit = rows
    costs = action_costs(1.0, benefit)
    metrics = ["precision@50", "recall@5%", "profit@30", "expected_cost"]
    model = SGLBClassifier(n_estimators=10, random_state=0)
    model.fit(X, y, eval_set=[(X, y)], eval_costs=[costs], eval_metric=metrics)
    score = model.decision_function(X)
    assert last(model, "precision@50") == precision_at_k(y, score, 50)
    assert last(model, "recall@5%") == recall_at_k(y, score, 0.05)
    # Profits are ranked by what is expected of them.
    expected = model.predict_proba(X)[:, 1] * benefit - 1.0
    profit = profit_at_k(y, expected, 30, benefit=benefit, cost=1.0)
    assert last(model, "profit@30") == pytest.approx(profit, rel=1e-12)
    made = model.decide(X, costs)
    paid = np.where(made == 1, 1.0 - benefit * y, 0.0).mean()
    assert last(model, "expected_cost") == pytest.approx(paid, rel=1e-12)


def test_y_of_a_regression_is_the_profit(rows):
    X, y, benefit = rows
    gained = benefit * y - 1.0
    model = SGLBRegressor(n_estimators=10, random_state=0)
    metrics = ["profit@5%", "precision@50"]
    model.fit(X, gained, eval_set=[(X, gained)], eval_metric=metrics)
    everywhere = np.ones(len(y))
    expected = profit_at_k(everywhere, model.predict(X), 0.05, benefit=gained)
    assert last(model, "profit@5%") == pytest.approx(expected, rel=1e-12)
    assert last(model, "precision@50") == precision_at_k(gained, model.predict(X), 50)


def test_a_ranker_of_one_query_is_trained_for_the_precision_of_the_best(rows):
    X, y, _ = rows
    group = np.zeros(len(y))
    model = SGLBRanker(loss=StochasticRank("precision", 60), n_estimators=60, random_state=0)
    metrics = ["precision@60", "precision@10%", "profit@60"]
    model.fit(X, y, group=group, eval_set=[(X, y)], eval_group=[group], eval_metric=metrics)
    values = [last(model, metric) for metric in metrics]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    assert values[2] == pytest.approx(60 * values[0], rel=1e-12)
    assert values[0] > 2.0 * y.mean()


def test_a_ranker_of_one_query_needs_to_be_told_so(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="A table that is a single ranking has the same id"):
        SGLBRanker().fit(X, y)


@pytest.mark.parametrize("spec", ["profit", "profit@", "profit@0", "profit@x", "precision@101%"])
def test_a_metric_without_a_capacity_is_rejected(spec):
    with pytest.raises(ValueError, match="is not a metric"):
        get_metric(spec, "binary")


def test_profits_of_classes_need_costs_before_any_work(rows):
    X, y, _ = rows
    with pytest.raises(
        ValueError, match=r"eval_set\[0\] has no costs, which eval_metric='profit@5'"
    ):
        SGLBClassifier().fit(X, y, eval_set=[(X, y)], eval_metric="profit@5")


def test_scorers_of_scikit_learn_rank_by_them(rows):
    X, y, benefit = rows
    model = SGLBClassifier(n_estimators=5, random_state=0)
    scorer = make_scorer(precision_at_k, response_method="decision_function", k=0.1)
    scores = cross_val_score(model, X, y, scoring=scorer, cv=3)
    assert (scores > 1.5 * y.mean()).all()
    search = GridSearchCV(model, {"max_depth": [1, 3]}, scoring=scorer, cv=3).fit(X, y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    with sklearn.config_context(enable_metadata_routing=True):
        profit = make_scorer(profit_at_k, response_method="decision_function", k=0.1, cost=1.0)
        profit = profit.set_score_request(benefit=True)
        routed = cross_val_score(model, X, y, scoring=profit, cv=3, params={"benefit": benefit})
    assert (routed > 0.0).all()
