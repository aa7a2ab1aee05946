"""The chosen models on other splits, and long chains."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import stats

from sglb.errors import ChainDiverged
from sglb.experiments import (
    catboost_sla,
    other_splits,
    real_data,
    search,
    stumps,
    synthetic,
    table_1,
    tables_2_3,
)
from sglb.experiments.other_splits import Pair, Rival, judge
from sglb.experiments.search import Search
from sglb.experiments.tables_2_3 import TuningOptions
from sglb.plots.style import colours

# Other splits.

SEED = 3


def write_table(folder, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((300, 3))
    y = (x[:, 0] * x[:, 1] + 0.5 * generator.standard_normal(300) > 0).astype(np.int64)
    columns = {f"x{index}": column for index, column in enumerate(x.T)} | {"target": y}
    pa.parquet.write_table(pa.table(columns), folder / "higgs_26k.parquet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    write_table(data)
    monkeypatch.setenv("SGLB_DATA", str(data))
    search._split_in.cache_clear()
    yield tmp_path
    search._split_in.cache_clear()


def pair(folder, goal="zero-one", numbers=(0, 1)):
    rivals = (
        Rival(Search(folder, goal, "higgs_26k", method, 6, SEED), number)
        for number, method in zip(numbers, ("SGB", "SGLB"), strict=True)
    )
    return Pair(*rivals)


def test_the_verdict_allows_for_rows_that_splits_share():
    losses = [(0.30, 0.28), (0.31, 0.30), (0.29, 0.30), (0.33, 0.30)]
    difference = np.array([b - a for a, b in losses])
    verdict = judge(losses)
    assert verdict.losses == pytest.approx((0.3075, 0.295))
    assert verdict.difference == pytest.approx(difference.mean())
    # By hand: a quarter for four splits, and 20 test rows for 65 to learn from.
    error = math.sqrt((0.25 + 0.20 / 0.65) * difference.var(ddof=1))
    assert verdict.standard_error == pytest.approx(error)
    assert verdict.p_value == pytest.approx(2 * stats.t.cdf(difference.mean() / error, 3))
    # An ordinary t-test would be surer than the rows that are shared allow.
    assert verdict.p_value > stats.ttest_1samp(difference, 0.0).pvalue
    assert (verdict.n_better, verdict.n_splits, verdict.n_diverged) == (3, 4, 0)


def test_differences_that_are_all_the_same_prove_nothing():
    assert judge([(0.25, 0.25)] * 3).p_value == 1.0
    assert math.isnan(judge([(0.1 * k, 0.1 * k + 0.01) for k in range(3)]).p_value)


def test_splits_on_which_a_chain_diverged_are_left_out():
    nan = math.nan
    verdict = judge([(0.3, 0.2), (nan, 0.2), (0.3, 0.1), (0.3, nan)])
    assert verdict == dataclasses.replace(judge([(0.3, 0.2), (0.3, 0.1)]), n_diverged=2)
    assert judge([(0.3, 0.2), (nan, 0.2)]) is None


@pytest.mark.parametrize("goal", ["zero-one", "logloss"])
def test_a_split_is_fitted_and_tested_on_its_rows(folder, goal):
    both = pair(folder, goal)
    assert not both.is_done(2)
    both.run(2)
    assert both.is_done(2)
    split = real_data.split_table("higgs_26k", SEED + 2)
    expected = []
    for rival in (both.first, both.second):
        model = search.make_model(rival.search, rival.number)
        metric = {"zero-one": "error", "logloss": "logloss"}[goal]
        model.fit(*split.train, eval_set=[split.valid], eval_metric=metric)
        X, y = split.test
        if goal == "zero-one":
            expected.append((model.predict(X) != y).mean())
        else:
            expected.append(-np.log(model.predict_proba(X)[np.arange(60), y]).mean())
    assert both.losses() == [pytest.approx(tuple(expected))]


def test_interrupted_splits_are_continued(folder, monkeypatch):
    both = pair(folder)
    heard, fitted = [], []
    other_splits.run([both], 2, 1)
    before = both.losses()

    def fit(searched, number, split):
        fitted.append(number)
        return search.fit(searched, number, split)

    monkeypatch.setattr(other_splits, "fit", fit)
    other_splits.run([both], 4, 1, heard.append)
    assert fitted == [0, 1, 0, 1]
    assert heard == [3, 4]
    assert both.losses()[:2] == before
    # Another trial of either method, or another goal, is another pair.
    assert pair(folder, numbers=(0, 7)).losses() == []
    assert pair(folder, "logloss").losses() == []


def test_a_chain_that_diverges_is_kept_as_such(folder, monkeypatch):
    def fit(searched, number, split):
        if searched.method == "SGLB":
            raise ChainDiverged(3)
        return search.fit(searched, number, split)

    monkeypatch.setattr(other_splits, "fit", fit)
    both = pair(folder)
    other_splits.run([both], 1, 1)
    [(first, second)] = both.losses()
    assert math.isfinite(first)
    assert math.isnan(second)


def test_two_processes_give_what_one_gives(folder):
    serial, parallel = pair(folder / "one"), pair(folder / "two")
    other_splits.run([serial], 3, 1)
    other_splits.run([parallel], 3, 2)
    assert serial.losses() == parallel.losses()
    assert len(set(serial.losses())) > 1


class Tables:
    """Orders of the table, small ones."""

    def __init__(self, folder):
        self.folder = folder / "out"

    def options(self, n_splits=0):
        return TuningOptions("zero-one", self.folder, 2, ["higgs"], 5, SEED, n_splits=n_splits)

    def printed(self, capsys, n_splits=0, **options):
        tables_2_3.run(self.options(n_splits), **options)
        return capsys.readouterr().out


def test_the_table_of_other_splits_has_what_was_chosen(folder, capsys, monkeypatch):
    pytest.importorskip("optuna")
    tables = Tables(folder)
    assert "other splits" not in tables.printed(capsys)
    assert "The same parameters on other splits" in tables.printed(capsys, 3)
    data = real_data.get_data_sets(["higgs"])[0]
    row = tables_2_3.measure(tables.options(), data)
    first, second = (
        Rival(choice.search, choice.best.number)
        for choice in tables_2_3.choose(tables.options(), data)
    )
    assert row.verdict == judge(Pair(first, second).losses())
    text = tables_2_3.make_report(tables.options(), [row]).markdown()
    cells = (
        f"| {100 * row.verdict.difference:+.2f} | {100 * row.verdict.standard_error:.2f} |"
        f" {row.verdict.p_value:.2g} | {row.verdict.n_better} of 3 |"
    )
    assert cells in text
    # What is there is shown without being ordered, and not run again.
    monkeypatch.setattr(other_splits, "fit", None)
    for options in ({"only_report": True}, {"n_splits": 3}, {}):
        assert "of 3" in tables.printed(capsys, **options)


@pytest.mark.parametrize(
    ("losses", "cells"),
    [
        ([(0.2, 0.1), (0.2, 0.11), (0.2, 0.1)], "| 20.00 ± 0.00 | **10.33** ± 0.58 |"),
        ([(0.1, 0.2), (0.1, 0.21), (0.1, 0.2)], "| **10.00** ± 0.00 | 20.33 ± 0.58 |"),
        ([(0.1, 0.2), (0.2, 0.1), (0.2, 0.1)], "| 16.67 ± 5.77 | 13.33 ± 5.77 |"),
    ],
)
def test_what_is_better_on_other_splits_is_bold(folder, losses, cells):
    row = tables_2_3.DataSetResult(real_data.DATA_SETS[3], (0.2, 0.2), 1.0, 3, 60.0, judge(losses))
    assert cells in tables_2_3.make_report(Tables(folder).options(), [row]).markdown()


def test_other_splits_of_other_rows_are_rejected(folder, capsys):
    pytest.importorskip("optuna")
    tables = Tables(folder)
    tables.printed(capsys)
    write_table(folder / "data", seed=1)
    search._split_in.cache_clear()
    with pytest.raises(ValueError, match="another version of table"):
        tables.printed(capsys, 2)


def test_a_single_split_is_rejected(folder):
    with pytest.raises(ValueError, match="--splits 2 or more"):
        tables_2_3.run(Tables(folder).options(1))


# Long chains.


def test_recorded_steps_are_those_of_the_whole_curve():
    fold, method = synthetic.SyntheticFold.draw(0, 0), synthetic.METHODS[3]
    whole = synthetic.train(method, fold, 60, seed=1)
    recorded = synthetic.train(method, fold, 60, seed=1, numbers=[1, 20, 60])
    steps = np.array([1, 20, 60]) - 1
    assert np.array_equal(recorded.training, whole.training[steps])
    assert np.array_equal(recorded.error, whole.error[steps])


def test_long_chains_are_judged_at_round_numbers_and_at_the_end():
    assert table_1.long_numbers(250) == [10, 20, 30, 50, 100, 200, 250]
    assert table_1.long_numbers(300)[-2:] == [200, 300]


def test_the_table_of_long_chains_prints_what_was_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(catboost_sla, "installed", lambda: False)
    monkeypatch.setenv("COLUMNS", "200")
    order = table_1.SyntheticOptions(
        2, 20, sweep_folds=0, catboost_folds=0, long_folds=3, long_steps=400, seed=5
    )
    table_1.run(tmp_path, order)
    printed = capsys.readouterr().out
    numbers = table_1.long_numbers(400)
    result = synthetic.run(3, 400, methods=synthetic.long_methods(400), seed=6, numbers=numbers)
    against = result.training["sla + SGB"][:, -1]
    for name, training in result.training.items():
        lines = reversed(printed.splitlines())
        line = next(
            line for line in lines if line.startswith("│") and line.split("│")[1].strip() == name
        )
        assert f"{training[:, numbers.index(100)].mean():.4f}" in line
        assert f"{training[:, -1].mean():.4f}" in line
        assert f"{result.curves[name][:, -1].mean():.4f}" in line
        if name != "sla + SGB":
            assert f"{(training[:, -1] - against).mean():+.4f} ±" in line
            assert f"{synthetic.paired_p_value(training[:, -1], against):.0e}" in line
    assert (tmp_path / "synthetic_long_chains.png").read_bytes().startswith(b"\x89PNG")


def test_rows_are_sampled_at_the_rate_of_the_variant():
    generator = np.random.default_rng(0)
    for variant in stumps.VARIANTS:
        if variant.rows != "all":
            drawn = stumps._counts(variant, 100_000, generator).sum()
            # Five standard deviations of the binomial, at most 158 rows: 6e-7 each.
            assert abs(drawn - 100_000 * variant.rate) <= 5 * 158


def test_the_figures_of_table_1_have_a_colour_for_every_method():
    n_methods = len(synthetic.METHODS + synthetic.VARIANTS)
    assert len(set(colours(n_methods))) == n_methods
