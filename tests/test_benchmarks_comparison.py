"""Results of the quality benchmark compared, tested for chance and shown."""

from math import inf, sqrt
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parent.parent
LIBRARIES = ("sglb", "catboost", "lightgbm")


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def result(loss, seconds=1.0, **changes):
    shape = {"task": "regression", "rows": 10, "features": 2}
    times = {"fit_seconds": seconds, "predict_seconds": 0.1, "rounds": 7}
    return shape | {"loss": loss} | times | changes


def results_of(losses, **changes):
    """Results from {table: {library: [loss by seed]}}; a text is an error."""
    from benchmarks.quality.results import Conditions, Job, Results, Run

    results = Results()
    results.begin(Run("command", Conditions(1), ["- machine"]))
    for table, row in losses.items():
        for library, values in row.items():
            for seed, value in enumerate(values):
                failed = isinstance(value, str)
                kept = {"error": value} if failed else result(value, **changes)
                results.add(Job(table, seed, library), kept)
    return results


class TestSignificance:
    def test_without_overlap_it_is_scipys_paired_test(self):
        from benchmarks.quality.significance import paired
        from scipy import stats

        first, second = np.random.default_rng(0).standard_normal((2, 7))
        expected = stats.ttest_rel(first, second)
        assert paired(first, second, 0.0) == pytest.approx((expected.statistic, expected.pvalue))

    def test_overlap_widens_the_variance_as_nadeau_and_bengio_say(self):
        from benchmarks.quality.significance import paired

        first, second = [1.0, 2.0, 3.0, 4.0, 5.0], [0.0] * 5
        # mean 3, variance 2.5: 3 / sqrt(2.5 (1/5 + 1/4)) = 2.828...
        assert paired(first, second, 0.25).t == pytest.approx(sqrt(8))

    def test_equal_differences_and_single_splits_are_no_trouble(self):
        from benchmarks.quality.significance import paired

        assert paired([1.0, 1.0], [1.0, 1.0], 0.25) == (0.0, 1.0)
        assert paired([1.0, 1.0], [2.0, 2.0], 0.25) == (-inf, 0.0)
        assert paired([1.0], [2.0], 0.25) is None

    def test_ranks_share_ties_and_put_failures_last(self):
        from benchmarks.quality.significance import mean_ranks

        losses = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, inf], [inf, 1.0, inf]])
        assert mean_ranks(losses) == pytest.approx([5 / 3, 1.5, 17 / 6])

    def test_the_critical_difference_is_that_of_demsars_table(self):
        from benchmarks.quality.significance import critical_difference

        # Demsar (2006), table 5: q.05 is 1.960, 2.343, 2.569, 2.728 for 2, 3, 4, 5 classifiers,
        # and 4 classifiers on 14 data sets have CD 1.25.
        for k, q in ((2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728)):
            assert critical_difference(k, 10) == pytest.approx(q * sqrt(k * (k + 1) / 60), abs=1e-3)
        assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)

    def test_friedman_is_scipys_and_needs_three_libraries(self):
        from benchmarks.quality.significance import friedman
        from scipy import stats

        losses = np.random.default_rng(0).standard_normal((9, 4))
        assert friedman(losses) == stats.friedmanchisquare(*losses.T).pvalue
        assert friedman(losses[:, :2]) is None

    def test_bars_join_the_longest_runs_within_the_difference(self):
        from benchmarks.quality.significance import alike

        assert alike([1.0, 1.5, 2.2, 4.0], 1.0) == [(0, 1), (1, 2)]
        assert alike([1.0, 1.5, 1.9, 4.0], 1.0) == [(0, 2)]
        assert alike([1.0, 3.0, 5.0], 1.0) == []


class TestComparison:
    def test_a_library_that_fails_once_has_failed_and_is_last(self):
        from benchmarks.quality.comparison import Comparison

        comparison = Comparison(
            results_of({"a": {"sglb": [1.0, 2.0], "catboost": [3.0, "no memory"]}})
        )
        assert comparison.losses.tolist() == [[1.5, inf]]
        assert comparison.best("a") == "sglb"
        assert comparison.verdict("a", "catboost") == "better"
        assert comparison.wins("catboost") == (["a"], [])
        assert comparison.times("catboost", "sglb") is None

    def test_only_splits_that_everyone_has_seen_count(self):
        from benchmarks.quality.comparison import Comparison

        rows = {"a": {"sglb": [1.0, 9.0], "catboost": [2.0]}, "b": {"sglb": [1.0]}}
        comparison = Comparison(results_of(rows))
        assert comparison.tables == ["a"]
        assert comparison.unfinished == ["b"]
        assert comparison.loss("a", "sglb") == 1.0

    def test_marks_need_a_difference_beyond_chance(self):
        from benchmarks.quality.comparison import Comparison

        noisy = {"sglb": [1.0, 2.0, 3.0], "catboost": [2.0, 1.0, 3.1], "lightgbm": [0.5, 1.5, 2.49]}
        comparison = Comparison(results_of({"a": noisy}))
        assert comparison.verdict("a", "catboost") == "alike"
        assert comparison.verdict("a", "lightgbm") == "worse"

    def test_goals_are_judged_by_numbers(self):
        from benchmarks.quality.comparison import Comparison
        from benchmarks.quality.goals import goals

        losses = {
            "near": dict(zip(LIBRARIES, ([1.009], [1.0], [2.0]), strict=True)),
            "far": dict(zip(LIBRARIES, ([1.02], [1.03], [1.0]), strict=True)),
        }
        results = results_of(losses)
        for job, kept in results.done.items():
            kept["fit_seconds"] = {"sglb": 1.0, "catboost": 9.0, "lightgbm": 1.0}[job.library]
        result = goals(Comparison(results))
        assert [goal.met for goal in result] == [False, True, False, True]
        assert result[0].result == "1 of 2 tables; not on far"
        assert result[1].result == "1 of 2"
        assert result[2].result == "2.0 s against 18.0 s, a ratio of 9.00"


class TestReport:
    def losses(self):
        single, two = (
            ([1.0, 1.1], [1.2, 1.3], [0.9, 1.0]),
            ([2.0, 2.2], ["broke", "broke"], [4.0, 4.4]),
        )
        return {
            name: dict(zip(LIBRARIES, row, strict=True))
            for name, row in (("a", single), ("b", two))
        }

    def test_wins_losses_and_failures_are_all_there(self):
        from benchmarks.quality.report import markdown

        text = markdown(results_of(self.losses()))
        assert "| a | 10 × 2 | 1.050 +10.5 % | 1.250 +31.6 % ▲ | **0.9500** ▼ |" in text
        assert "| b | 10 × 2 | **2.100** | failed ▲ | 4.200 +100.0 % ▲ |" not in text
        assert "| b | 10 × 2 | **2.100** | failed | 4.200 +100.0 %" in text
        assert "### Where sglb is behind the best peer" in text
        assert "| a | +10.53 % | LightGBM | yes |" in text
        assert "- CatBoost on b, seed 0, 1: `broke`" in text
        assert "| sglb | 1.50 | 1 | 5.26 % | 5.26 % | 0 |" in text

    def test_failures_keep_names_of_files_but_not_the_machines_folders(self):
        from benchmarks.quality.report import markdown

        losses = {
            "a": {"sglb": ["/home/me/a.parquet: broken and/or/else ./x/y"], "catboost": [1.0]}
        }
        text = markdown(results_of(losses))
        assert "- sglb on a, seed 0: `a.parquet: broken and/or/else ./x/y`" in text

    def test_figures_are_drawn_beside_the_page(self, tmp_path):
        pytest.importorskip("matplotlib")
        from benchmarks.quality.report import markdown, write

        results = results_of(self.losses())
        write(markdown(results), results, tmp_path)
        page = (tmp_path / "quality.md").read_text()
        for figure in ("quality_ranks.png", "quality_time.png"):
            assert f"({figure})" in page
            assert (tmp_path / figure).stat().st_size > 1000

    def test_the_docs_have_a_place_for_the_results(self):
        from benchmarks.quality.report import BEGIN, END

        page = (REPOSITORY / "docs" / "quality.md").read_text()
        assert page.index(BEGIN) < page.index(END)

    def test_a_run_without_any_result_says_so(self):
        from benchmarks.quality.report import markdown

        assert "No table that every library has seen yet." in markdown(results_of({}))
