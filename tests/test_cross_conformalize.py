"""Guaranteed coverage without rows set aside: five models, each fitted without a fold.

The coverage of intervals from n rows varies like that of n calibration rows, with a standard
deviation of about sqrt(.09 / n), and that of m test rows by sqrt(.09 / m). Models of all rows but a
fold are worse than they could be, so that the mean is .9 or a little more. Bounds are 4 standard
deviations, and .02 above: a right method fails with a probability below 1e-4; seeds are fixed.
"""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from sglb import SGLBClassifier, SGLBRegressor
from sglb.conformal import CrossConformalClasses
from sglb.estimators.fold_models import FoldModels, assign_rows
from sglb.target import Target
from test_conformalize import FAST, TEST, M, coverage_of, table

N = 800
BOUND = 4.0 * np.sqrt(0.09 / N + 0.09 / M)
ROWS = table(5, N)


@pytest.fixture(scope="module")
def plain():
    return SGLBRegressor(**FAST).cross_conformalize(*ROWS)


def test_cross_conformal_intervals_cover_what_was_asked_for(plain):
    scaled = SGLBRegressor(uncertainty=True, **FAST).cross_conformalize(*ROWS)
    left = TEST[0][:, 0] < 0.0
    widths = {}
    for predictor in (plain, scaled):
        intervals = predictor.predict_interval(TEST[0], 0.9)
        assert -BOUND < coverage_of(intervals, TEST[1]) - 0.9 < BOUND + 0.02
        assert intervals.n_rows == predictor.n_rows == N
        assert predictor.method == "cross"
        widths[predictor.is_scaled] = intervals.bounds[:, 1] - intervals.bounds[:, 0]
    assert widths[True][left].mean() < 0.5 * widths[True][~left].mean()
    assert widths[False][left].mean() == pytest.approx(widths[False][~left].mean(), rel=0.1)
    assert widths[True].mean() < widths[False].mean()
    assert repr(scaled) == f"CrossConformalRegressor(is_scaled=True, n_rows={N})"


def test_the_mean_coverage_over_tables_is_that_asked_for():
    # 25 tables of 60 rows: the mean has a standard deviation of sqrt(.09 / 60 / 25) = .008.
    shares = []
    for seed in range(25):
        model = SGLBRegressor(n_estimators=10, max_depth=2, random_state=seed)
        intervals = model.cross_conformalize(*table(100 + seed, 60)).predict_interval(TEST[0])
        shares.append(coverage_of(intervals, TEST[1]))
    assert 0.9 - 0.032 < np.mean(shares) < 0.92 + 0.032


def test_the_guarantee_is_that_of_the_theorem(plain):
    # 1 - 2 alpha - 2 (1 - 1/K) / (n/K + 1) with 5 folds of 160 rows
    intervals = plain.predict_interval(TEST[0][:3], 0.9)
    assert intervals.guarantee == pytest.approx(0.8 - 1.6 / 161)
    assert f"at least {intervals.guarantee:.4g}, on average over rows" in str(intervals)


def test_each_model_runs_the_whole_procedure_without_the_rows_of_its_fold():
    # Start and bins of a model are those of its own rows.
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    folds = FoldModels(SGLBRegressor(n_estimators=1, learning_rate=1e-9, random_state=0), X, y)
    for number, model in enumerate(folds.models):
        inside = folds.fold == number
        assert inside.sum() == 8
        assert model.predict(X) == pytest.approx(np.full(40, y[~inside].mean()))
        assert model._model.recipe.bins.n_thresholds.tolist() == [31]  # between 32 numbers
    means = [y[folds.fold != number].mean() for number in folds.fold]
    assert folds.out_of_fold(lambda m, rows: m.predict(rows)) == pytest.approx(np.array(means))


def test_folds_come_from_the_seed_and_spread_the_classes():
    target = Target.of(np.repeat([0.0, 1.0], [30, 10]), classes=["a", "b"])
    order, fold = assign_rows(target, 7)
    assert sorted(order) == list(range(40))
    assert np.bincount(fold[30:]).tolist() == [2] * 5
    assert (assign_rows(target, 7)[1] == fold).all()
    assert (assign_rows(target, 8)[1] != fold).any()
    numbers = assign_rows(Target.of(np.arange(42.0)), 7)[1]
    assert sorted(np.bincount(numbers)) == [8, 8, 8, 9, 9]
    assert (numbers != np.arange(42) % 5).any()


def test_a_fitted_estimator_is_left_alone():
    X, y = ROWS
    model = SGLBRegressor(**FAST).fit(X, y)
    before = model.predict(X)
    predictor = model.cross_conformalize(X, y)
    assert (model.predict(X) == before).all()
    assert predictor.predict(X) == pytest.approx(before, abs=1.0)
    new = SGLBRegressor(**FAST).cross_conformalize(X, y)
    assert (new.predict_interval(X[:9]).bounds == predictor.predict_interval(X[:9]).bounds).all()


TOWNS = np.array(["Rom", "Bern", "Oslo"])


def town_rows():
    rng = np.random.default_rng(2)
    town, size = rng.integers(0, 3, 200), rng.normal(size=200)
    return {"town": TOWNS[town], "size": size}, town + 0.3 * rng.normal(size=200)


@pytest.mark.parametrize(
    "make",
    [
        lambda columns: pd.DataFrame(columns, index=np.arange(200)[::-1]),
        lambda columns: pd.DataFrame(columns).astype({"town": "category"}),
        pl.DataFrame,
        pl.LazyFrame,
        pa.table,
    ],
    ids=["pandas", "categories", "polars", "lazy", "arrow"],
)
def test_frames_with_categorical_columns_are_divided_into_folds(make):
    columns, y = town_rows()
    model = SGLBRegressor(**FAST)
    predictor = model.cross_conformalize(make(columns), pd.Series(y))
    result = predictor.predict_interval(make(columns))
    assert result.mean_width < 2.0
    array = np.column_stack([columns["town"].astype(object), columns["size"].astype(object)])
    for rows in (array, array.tolist()):
        same = model.cross_conformalize(rows, y).predict_interval(array)
        np.testing.assert_allclose(same.bounds, result.bounds)


def test_weights_count_in_the_fits_and_rows_of_weight_zero_are_not_there():
    X, y = ROWS
    weight = np.where(np.arange(N) < 100, 0.0, 1.0)
    predictor = SGLBRegressor(**FAST).cross_conformalize(X, y, weight)
    kept = SGLBRegressor(**FAST).cross_conformalize(X[100:], y[100:])
    assert predictor.n_rows == kept.n_rows == N - 100
    np.testing.assert_allclose(
        predictor.predict_interval(X[:9]).bounds, kept.predict_interval(X[:9]).bounds
    )
    heavy = SGLBRegressor(**FAST).cross_conformalize(X, y, np.where(y > 0, 9.0, 1.0))
    assert heavy.predict(X).mean() > predictor.predict(X).mean() + 0.2


def test_counts_are_never_below_zero():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(400, 2))
    y = rng.poisson(np.exp(2.0 * X[:, 0] - 1.0))
    model = SGLBRegressor(loss="poisson", uncertainty=True, **FAST)
    assert model.cross_conformalize(X, y).predict_interval(X).bounds.min() == 0.0


def test_sets_of_classes_cover_each_class():
    rng = np.random.default_rng(4)

    def rows(n_rows):
        label = rng.choice(3, p=[0.6, 0.25, 0.15], size=n_rows)
        return rng.normal(size=(n_rows, 2)) + 1.2 * label[:, None], np.array(["a", "b", "c"])[label]

    predictor = SGLBClassifier(**FAST).cross_conformalize(*rows(2000))
    X, y = rows(M)
    sets = predictor.predict_set(X, 0.9)
    assert sets.guarantee == pytest.approx(0.8)
    for index, name in enumerate(predictor.classes_):
        n, m = predictor.n_rows[index], np.sum(y == name)
        bound = 4.0 * np.sqrt(0.09 / n + 0.09 / m)
        assert -bound < sets.members[y == name, index].mean() - 0.9 < bound + 0.02
    assert 1.0 < sets.mean_size < 3.0
    assert repr(predictor) == f"CrossConformalClassifier(n_rows={predictor.n_rows.tolist()})"


def test_the_p_value_of_a_class_is_the_mean_over_folds():
    # Scores of class 1: .2 and .6 in fold 0, .4 in fold 1.
    law = CrossConformalClasses([1, 1, 0, 1, 0], [0.8, 0.4, 0.3, 0.6, 0.1], [0, 0, 0, 1, 1])
    new = np.array([[0.6, 0.3], [0.6, 0.5]])  # probability of class 1: scores .4, .7 and .4, .5
    both = np.stack([1.0 - new, new], axis=2)
    # fold 0: .4 -> (1 + 1)/3, .7 -> 1/3; fold 1: .4 -> 2/2, .5 -> 1/2
    assert law.p_values(both)[:, 1] == pytest.approx([(2 / 3 + 1) / 2, (1 / 3 + 1 / 2) / 2])
    with pytest.warns(UserWarning, match=r"2 rows of a class in 2 folds .* needs 18; .* 0, 1$"):
        assert law.sets(both, 0.9).members.all()
    sets = law.sets(both, 0.45)  # of p-values above .55
    assert sets.members[:, 1].tolist() == [True, False]
    assert sets.guarantee == 0.0
    with pytest.raises(ValueError, match=r"probability must have shape \(2, n_rows, 2\)"):
        law.sets(new)


def test_sets_are_valid_in_repeated_experiments():
    # Models that agree, 6 rows of the class in each of 5 folds: the mean p-value is (5 + k) / 35 if
    # k of the 30 rows have a larger score. It is above .2 for k > 2, with probability 28 / 31. The
    # bound is 4 standard errors.
    rng = np.random.default_rng(5)
    fold, label = np.arange(60) % 5, np.repeat([0, 1], 30)
    inside = []
    for _ in range(2000):
        law = CrossConformalClasses(label, rng.uniform(size=60), fold)
        new = np.full((5, 1), rng.uniform())
        inside.append(law.sets(np.stack([1.0 - new, new], axis=2), 0.8).members[0, 1])
    assert np.mean(inside) == pytest.approx(28 / 31, abs=4.0 * np.sqrt(0.0875 / 2000))


def test_what_cannot_be_divided_into_folds_says_why():
    X, y = ROWS
    with pytest.raises(ValueError, match="5 folds need at least as many rows, got 4"):
        SGLBRegressor().cross_conformalize(X[:4], y[:4])
    with pytest.raises(ValueError, match="X has 800 rows but y has 3"):
        SGLBRegressor().cross_conformalize(X, y[:3])
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        SGLBRegressor().cross_conformalize(csr_array(X), y)
    with pytest.raises(ValueError, match="Expected 2D array, got scalar array"):
        SGLBRegressor().cross_conformalize(None, y)
    with pytest.raises(ValueError, match="early_stopping_rounds=5 needs an evaluation set, which"):
        SGLBRegressor(early_stopping_rounds=5).cross_conformalize(X, y)
    with pytest.raises(ValueError, match=r"quantile=\(0.1, 0.9\) are 2; with calibration rows"):
        SGLBRegressor(loss="quantile", quantile=[0.1, 0.9]).cross_conformalize(X, y)
    with pytest.raises(
        ValueError, match="loss 'poisson' needs a number >= 0 as target, row 2 has -1"
    ):
        SGLBRegressor(loss="poisson").cross_conformalize(X, np.where(np.arange(N) == 2, -1, 1))
    with pytest.raises(ValueError, match="class 'b' has fewer than two rows"):
        SGLBClassifier().cross_conformalize(X, np.where(np.arange(N) == 3, "b", "a"))
    with pytest.raises(ValueError, match="a single class"):
        SGLBClassifier().cross_conformalize(X, np.ones(N))
