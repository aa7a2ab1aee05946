"""The cross-validated length of a chain."""

import time

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_classification

from sglb import BaseCallback, SGLBClassifier, SGLBRegressor
from sglb.boosting import boost
from sglb.folds import (
    N_FOLDS,
    PATIENCE,
    STRIDE,
    CrossValidation,
    assign_folds,
    folds_for_residuals,
)
from sglb.frame import read_features
from sglb.losses import get_loss
from sglb.prepare import LabelledRows, Request, prepare
from sglb.target import Target
from sglb.training_set import TrainingSet

X, Y = load_diabetes(return_X_y=True)


class Curve:
    """Stands in for a chain: the loss of its fold is a function of the step."""

    def __init__(self, losses):
        self.losses = losses
        self.n_run = 0

    def run(self, steps):
        self.n_run = steps[-1] + 1
        return np.array([self.losses(step + 1) for step in steps])


def curve_length(losses, max_steps):
    return CrossValidation(lambda inside: Curve(losses), np.arange(5)).best_length(max_steps)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_length_is_where_the_sum_of_the_folds_is_least(n_threads):
    made = []

    def make_fold(inside):
        number = len(made)
        made.append(Curve(lambda n: (n - 30 - 10 * number) ** 2))  # mean of the bottoms: 50
        return made[-1]

    assert CrossValidation(make_fold, np.arange(10) % N_FOLDS).best_length(1000, n_threads) == 50
    assert {fold.n_run for fold in made} == {50 + PATIENCE}


def test_a_curve_that_falls_to_the_end_gives_all_steps():
    assert curve_length(lambda n: -n, STRIDE + 3) == STRIDE + 3


def rows_of(columns, y, classes=()):
    """A training set of codes (n_features, n_rows) from 1 on."""
    columns = np.ascontiguousarray(columns, dtype=np.uint8)
    return TrainingSet.build(columns, np.full(len(columns), 255), Target.of(y, classes=classes))


def random_rows(y, classes):
    return rows_of(np.random.default_rng(0).integers(1, 250, (3, len(y))), y, classes)


@pytest.mark.parametrize("classes", [[0, 1, 2], []], ids=["classes", "numbers"])
def test_folds_are_of_one_size_and_spread_each_class_evenly(classes):
    y = np.repeat([0.0, 1.0, 2.0], [600, 300, 103])
    fold = assign_folds(random_rows(y, classes), 7)
    assert np.ptp(np.bincount(fold, minlength=N_FOLDS)) <= 1
    if classes:
        for label in range(3):
            assert np.ptp(np.bincount(fold[y == label], minlength=N_FOLDS)) <= 1
    assert (fold != assign_folds(random_rows(y, classes), 8)).any()
    assert (fold == assign_folds(random_rows(y, classes), 7)).all()


def test_a_row_that_is_there_three_times_is_in_one_fold():
    y = np.random.default_rng(1).integers(0, 2, 300)
    columns = np.random.default_rng(0).integers(1, 250, (3, 300))
    fold = assign_folds(rows_of(np.tile(columns, 3), np.tile(y, 3), classes=[0, 1]), 7)
    assert (fold.reshape(3, 300) == fold[:300]).all()


def repeat_some(n_rows, n_repeated):
    """Rows and targets, the last of them copies of the first, and the folds of both."""
    rng = np.random.default_rng(0)
    columns, y = rng.integers(1, 250, (3, n_rows)), rng.normal(size=n_rows)
    source = np.r_[:n_rows, :n_repeated]
    fold = assign_folds(rows_of(columns[:, source], y[source]), 7)
    return fold[:n_repeated], fold[n_rows:]


@pytest.mark.parametrize("n_repeated", [300, 90])
def test_few_copies_are_drawn_like_other_rows_and_many_stay_with_theirs(n_repeated):
    rows, copies = repeat_some(300, n_repeated)
    if n_repeated == 300:  # half of the table: it was doubled
        assert (rows == copies).all()
    else:  # 23 %: by nature
        # A binomial share of 1/5 of 90 rows is outside with a probability below 5e-4.
        assert 0.05 < np.mean(rows == copies) < 0.36


def test_a_bootstrap_sample_has_the_copies_of_a_row_in_one_fold():
    rng = np.random.default_rng(3)
    columns, y = rng.integers(1, 250, (3, 400)), rng.normal(size=400)
    drawn = rng.integers(0, 400, 400)
    fold = assign_folds(rows_of(columns[:, drawn], y[drawn]), 7)
    folds_of_row = np.zeros((400, N_FOLDS), dtype=bool)
    folds_of_row[drawn, fold] = True
    assert folds_of_row.sum(axis=1).max() == 1


def test_folds_of_a_table_with_few_copies_do_not_depend_on_the_order_of_its_rows():
    rng = np.random.default_rng(0)
    columns, y = rng.integers(1, 250, (3, 300)), rng.normal(size=305)
    columns = np.concatenate([columns, columns[:, 55:60]], axis=1)  # with targets of their own
    source = np.r_[:305, :55]

    def contents(rows):
        """How many copies of each row each fold holds."""
        table = np.zeros((305, N_FOLDS), dtype=int)
        np.add.at(table, (rows, assign_folds(rows_of(columns[:, rows], y[rows]), 7)), 1)
        return table

    assert (contents(source) == contents(rng.permutation(source))).all()


def test_rows_of_a_table_of_few_values_are_different_rows():
    rng = np.random.default_rng(0)
    columns = rng.integers(1, 3, (8, 2000))  # 256 cells
    fold = assign_folds(rows_of(columns, rng.integers(0, 2, 2000), classes=[0, 1]), 7)
    same = (columns == columns[:, :1]).all(axis=0)
    assert len(set(fold[same])) > 1


def test_without_noise_a_weight_of_three_is_three_rows_for_the_length_too():
    rows, labels = make_classification(300, 6, flip_y=0.2, random_state=0)
    rows = np.round(rows, 1)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    often = np.repeat(np.arange(300), weight)
    model = SGLBClassifier(sampler="plain", random_state=0)
    by_weight = model.fit(rows, labels, weight).predict_proba(rows)
    by_rows = model.fit(rows[often], labels[often]).predict_proba(rows)
    np.testing.assert_allclose(by_weight, by_rows, rtol=1e-9)


def test_a_small_noisy_table_gets_fewer_trees_and_a_better_score():
    train, test = slice(0, 350), slice(350, None)
    auto = SGLBRegressor(random_state=0).fit(X[train], Y[train])
    long = SGLBRegressor(random_state=0, n_estimators=1000).fit(X[train], Y[train])
    assert auto.n_iter_ < 300
    assert auto.score(X[test], Y[test]) > long.score(X[test], Y[test]) + 0.02


def test_the_chain_is_that_of_its_length():
    auto = SGLBRegressor(random_state=0).fit(X, Y)
    # The rate is that of 1,000 steps, which a stated length does not know.
    same = SGLBRegressor(
        random_state=0, n_estimators=auto.n_iter_, learning_rate=auto.learning_rate_
    )
    np.testing.assert_array_equal(auto.predict(X), same.fit(X, Y).predict(X))


def test_the_length_is_the_same_for_any_number_of_threads():
    rows, labels = make_classification(600, 8, flip_y=0.3, random_state=0)
    lengths = {
        SGLBClassifier(random_state=3, n_jobs=jobs).fit(rows, labels).n_iter_ for jobs in (1, 2, 4)
    }
    assert len(lengths) == 1


def test_rows_with_categories_and_weights_have_a_cross_validated_length():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 150, 800).astype(str).astype(object)
    table = np.column_stack([town, rng.normal(size=800).astype(object)])
    y = (rng.random(800) < 0.3 + 0.4 * (town.astype(int) % 2)).astype(int)
    weight = rng.uniform(0.5, 2.0, 800)
    model = SGLBClassifier(random_state=0, categorical_features=[0])
    model.fit(table[:600], y[:600], weight[:600])
    assert model.n_iter_ < 1000
    assert model.score(table[600:], y[600:]) > 0.6


def test_the_best_loss_of_the_folds_is_near_the_best_of_the_test_rows():
    rows, labels = make_classification(3000, 10, flip_y=0.2, random_state=1)
    auto = SGLBClassifier(random_state=0).fit(rows[:1000], labels[:1000])
    long = SGLBClassifier(random_state=0, n_estimators=1000, learning_rate=auto.learning_rate_).fit(
        rows[:1000], labels[:1000], eval_set=[(rows[1000:], labels[1000:])]
    )
    curve = np.array(long.evals_result_["validation_0"]["loss"])
    assert curve[auto.n_iter_ - 1] < 1.02 * curve.min()
    assert curve[-1] > 1.1 * curve.min()  # else there would be nothing to find


def test_the_length_is_told_where_progress_is_shown(capfd):
    model = SGLBRegressor(random_state=0, verbose=1).fit(X, Y)
    said = capfd.readouterr().err
    assert "sglb: cross-validation of the number of trees, at most 1,000\n" in said
    assert f"sglb: {model.n_iter_} trees are best\n" in said


def test_losses_that_are_not_numbers_are_no_reason_for_a_single_tree():
    with pytest.raises(ValueError, match=r"not finite at any step.*state n_estimators"):
        curve_length(lambda n: np.nan, 100)
    curve = lambda n: np.nan if n % 2 else abs(n - 40)  # noqa: E731
    assert curve_length(curve, 100) == 40


def test_a_users_loss_is_asked_by_one_thread_at_a_time_and_under_the_callers_settings():
    class Scratch:
        busy = False

        def loss(self, y, raw):
            return 0.5 * (raw - y) ** 2

        def gradient(self, y, raw):
            assert not self.busy
            self.busy = True
            np.float64(1.0) / np.zeros(1)  # a warning, which is an error here, unless ignored
            time.sleep(1e-4)
            self.busy = False
            return raw - y

    with np.errstate(all="ignore"):
        SGLBRegressor(loss=Scratch(), random_state=0, n_jobs=2, max_depth=2).fit(X[:80], Y[:80])


def test_whoever_looks_on_decides_on_the_length():
    watch = {"random_state": 0, "max_depth": 2}
    seen = SGLBRegressor(**watch).fit(X, Y, eval_set=[(X, Y)])
    assert seen.n_iter_ == 1000
    assert SGLBRegressor(**watch).fit(X, Y, callbacks=[BaseCallback()]).n_iter_ == 1000


def prepared_diabetes():
    request = Request(
        "regressor",
        SGLBRegressor(random_state=1).get_params(),
        None,
        alone=True,
        check_gradient=True,
    )
    features = read_features(SGLBRegressor(), X, reset=True)
    prepared = prepare(LabelledRows(features, Target.of(Y)), get_loss("squared"), request, 1)
    return prepared.recipe, prepared.data


@pytest.mark.parametrize("chain", [0, 2])
@pytest.mark.parametrize("n_steps", [7, 30])  # in the middle of the steps taken, and beyond them
def test_every_row_is_predicted_by_the_chain_that_has_not_seen_it(n_steps, chain):
    recipe, data = prepared_diabetes()
    validation = recipe.cross_validation(data, number=chain)
    validation.run_to(20)
    raw = validation.out_of_fold(n_steps, 2)
    assert raw.shape == (1, len(Y))
    for number in range(N_FOLDS):
        inside = validation.fold_of == number
        trace = boost(recipe.make_chain(data.take(~inside), 1, number=chain), n_steps)
        assert trace.predict(X[inside])[0] == pytest.approx(raw[0, inside], rel=1e-6)


def test_fewer_folds_hold_out_fewer_rows_and_predict_them_as_all_folds_do():
    recipe, data = prepared_diabetes()
    every, few = recipe.cross_validation(data), recipe.cross_validation(data, n_folds=2)
    held_out = every.fold_of < 2
    assert (few.held_out == held_out).all()
    assert every.held_out.all()
    assert (few.out_of_fold(12) == every.out_of_fold(12)[:, held_out]).all()


@pytest.mark.parametrize(
    ("n_rows", "n_folds"), [(50, 5), (10_000, 5), (10_001, 4), (20_000, 3), (10**6, 2)]
)
def test_residuals_come_from_fewer_folds_where_rows_are_many(n_rows, n_folds):
    assert folds_for_residuals(n_rows) == n_folds


def test_scored_steps_and_those_that_are_not_lead_to_the_same_raw_scores():
    recipe, data = prepared_diabetes()
    scored, other = recipe.cross_validation(data), recipe.cross_validation(data)
    scored.run_to(30)
    assert (scored.out_of_fold(30) == other.out_of_fold(30)).all()


def test_chains_of_another_number_have_the_same_folds_and_other_noise():
    recipe, data = prepared_diabetes()
    first, other = (recipe.cross_validation(data, number=number) for number in (0, 1))
    assert (first.fold_of == other.fold_of).all()
    assert (first.out_of_fold(20) != other.out_of_fold(20)).any()


def test_chains_that_are_made_anew_from_their_traces_take_the_same_steps():
    recipe, data = prepared_diabetes()
    kept, lazy = recipe.cross_validation(data), recipe.lazy_cross_validation(data)
    assert lazy.best_length(1000, 2) == kept.best_length(1000)
    assert (lazy.run_to(230) == kept.run_to(230)).all()  # further than the first tasks went
    for n_steps in (7, 230, 310):
        assert (lazy.out_of_fold(n_steps) == kept.out_of_fold(n_steps)).all()


def test_chains_that_are_made_anew_go_no_further_than_there_is_use_for():
    recipe, data = prepared_diabetes()
    lazy = recipe.lazy_cross_validation(data)
    lazy.best_length(60)
    assert {len(fold.trace) for fold in lazy.lazy_folds} == {60}
