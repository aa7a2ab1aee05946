"""The quality benchmark's own machinery, on tables of a few rows; needs no peer."""

import json
import subprocess
import sys
from math import nan, sqrt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rich")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with a table for numbers, one for classes and one that cannot be read."""
    folder = tmp_path / "data"
    folder.mkdir()
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.standard_normal((120, 3)).astype(np.float32), columns=[*"abc"])
    frame.assign(target=frame.a.astype(np.float64)).to_parquet(folder / "numbers.parquet")
    frame.assign(target=(frame.a > 0).astype(np.int8), weight=1.0, row_id=range(120)).to_parquet(
        folder / "classes.parquet"
    )
    (folder / "broken.parquet").write_text("this is no table")
    frame.assign(target=0).to_parquet(folder / "mq2008.parquet")  # a ranking table by name
    monkeypatch.setenv("SGLB_DATA", str(folder))
    return folder


def result(loss):
    return {"loss": loss, "fit_seconds": 1.0}


class TestSplit:
    def test_parts_are_disjoint_complete_and_stratified(self):
        from benchmarks.quality.split import split

        y = np.repeat([0, 1, 2], [600, 300, 100])
        train, valid, test = split(y, 3, classes=True)
        assert sorted(np.concatenate([train, valid, test])) == list(range(1000))
        assert [list(np.bincount(y[part])) for part in (train, valid, test)] == [
            [390, 195, 65],
            [90, 45, 15],
            [120, 60, 20],
        ]

    def test_the_seed_alone_decides(self):
        from benchmarks.quality.split import split

        y = np.random.default_rng(0).standard_normal(50)
        again = [split(y, seed, classes=False)[0].tolist() for seed in (0, 0, 1)]
        assert again[0] == again[1]
        assert again[0] != again[2]

    def test_rows_are_not_in_the_order_of_their_class(self):
        from benchmarks.quality.split import split

        y = np.repeat([0, 1], 500)
        train, _, _ = split(y, 0, classes=True)
        assert 100 < y[train[:325]].sum() < 225  # 162.5 expected, sd 9

    def test_a_class_of_two_rows_is_learned(self):
        from benchmarks.quality.split import split

        y = np.repeat([0, 1], [100, 2])
        assert [y[part].sum() for part in split(y, 0, classes=True)] == [2, 0, 0]

    def test_max_rows_cuts_each_class_alike_and_keeps_the_rarest(self):
        from benchmarks.quality.split import split

        y = np.repeat([0, 1, 2], [800, 199, 1])
        rows = np.concatenate(split(y, 0, classes=True, max_rows=100))
        assert list(np.bincount(y[rows])) == [80, 20, 1]


class TestScores:
    def test_log_loss_error_and_area_by_hand(self):
        from benchmarks.quality.scores import scores

        probability = np.array([[0.5, 0.5], [0.2, 0.8], [0.4, 0.6], [0.9, 0.1]])
        y = np.array([0, 1, 0, 0])
        scores_found = scores("binary", y, probability)
        assert scores_found["loss"] == pytest.approx(-np.log([0.5, 0.8, 0.4, 0.9]).mean())
        assert scores_found["error_rate"] == 0.25
        assert scores_found["auc"] == 1.0

    def test_weights_are_multiplicities(self):
        from benchmarks.quality.scores import scores

        generator = np.random.default_rng(1)
        probability = generator.dirichlet([1.0, 1.0], size=20)
        y, times = generator.integers(0, 2, 20), generator.integers(1, 4, 20)
        weighted = scores("binary", y, probability, times.astype(float))
        repeated = scores("binary", y.repeat(times), probability.repeat(times, axis=0))
        assert weighted == pytest.approx(repeated)
        number = scores("regression", np.array([0.0, 3.0]), np.array([1.0, 1.0]), [3.0, 1.0])
        assert number == {"loss": pytest.approx(sqrt(7 / 4))}

    def test_a_probability_of_zero_costs_much_but_not_infinity(self):
        from benchmarks.quality.scores import scores

        scores_found = scores(
            "multiclass", np.array([0]), np.array([[0.0, 1.0, 0.0]], dtype=np.float32)
        )
        assert 30 < scores_found["loss"] < 40
        assert "auc" not in scores_found


class TestResults:
    def test_a_killed_run_is_taken_up_where_it_was(self, tmp_path):
        from benchmarks.quality.results import Conditions, Job, Results, Run

        path = tmp_path / "results.jsonl"
        first = Results.resume(path)
        first.begin(Run("command", Conditions(1)))
        first.add(Job("a", 0, "sglb"), {"loss": 1.0})
        with path.open("a") as lines:
            lines.write('{"table": "b", "se')  # half a line
        again = Results.resume(path)
        assert again.done == {Job("a", 0, "sglb"): {"loss": 1.0}}
        again.add(Job("b", 0, "sglb"), {"loss": 2.0})
        assert Results.read(path).done == again.done

    def test_other_conditions_are_refused(self, tmp_path):
        from benchmarks.quality.results import Conditions, Results, Run

        results = Results.resume(tmp_path / "results.jsonl")
        results.begin(Run("command", Conditions(1)))
        with pytest.raises(ValueError, match=r"max_rows=100.*use another file"):
            results.begin(Run("command", Conditions(1, max_rows=100)))

    def test_of_two_files_the_later_counts(self, tmp_path):
        from benchmarks.quality.results import Conditions, Job, Results, Run

        for name, loss in (("old", 1.0), ("new", 2.0)):
            results = Results.resume(tmp_path / name)
            results.begin(Run(name, Conditions(1)))
            results.add(Job("a", 0, "sglb"), {"loss": loss})
        both = Results.read(tmp_path / "old", tmp_path / "new")
        assert both.done == {Job("a", 0, "sglb"): {"loss": 2.0}}

    def test_a_line_that_is_no_result_is_named(self, tmp_path):
        from benchmarks.quality.results import Results

        path = tmp_path / "results.jsonl"
        path.write_text('{"table": "a"}\n')
        with pytest.raises(ValueError, match=r"results\.jsonl, line 1"):
            Results.read(path)


class TestRun:
    def run(self, jobs, results, answers):
        """Run jobs with a library that is a table of answers; the jobs that were computed."""
        from benchmarks.quality.runner import run
        from rich.console import Console

        computed = []

        def compute(job):
            computed.append(job)
            return dict(answers(job))

        run(jobs, results, compute, Console(quiet=True))
        return computed

    def test_only_what_is_missing_is_computed(self):
        from benchmarks.quality.results import Job, Results
        from benchmarks.quality.runner import missing

        jobs = [Job("a", seed, "sglb") for seed in range(4)]
        done = {jobs[0]: result(1.0), jobs[1]: {"error": "no memory"}}
        assert missing(jobs, done, retry_failed=False) == jobs[2:]
        assert missing(jobs, done, retry_failed=True) == jobs[1:]
        results = Results(done=dict(done))
        assert self.run(jobs[2:], results, lambda job: result(2.0)) == jobs[2:]
        assert [results.done[job].get("loss") for job in jobs] == [1.0, None, 2.0, 2.0]

    def test_after_a_time_out_the_other_seeds_of_that_table_are_not_tried(self):
        from benchmarks.quality.results import Job, Results

        results = Results()
        jobs = [
            Job(table, seed, name) for seed in (0, 1) for table in "ab" for name in ("x", "sglb")
        ]
        late = {"error": "no result within 1 s", "late": True}
        computed = self.run(
            jobs, results, lambda job: late if job[::2] == ("a", "x") else result(1.0)
        )
        assert [job for job in jobs if job not in computed] == [Job("a", 1, "x")]
        assert results.done[Job("a", 1, "x")] == {"error": "not tried: seed 0 took too long"}
        # A retry asks again, and what is late again stops the rest again.
        retried = [Job("a", 0, "x"), Job("a", 1, "x")]
        assert self.run(retried, results, lambda job: result(1.0)) == retried

    def test_a_late_seed_that_stays_on_file_stops_those_after_it(self):
        from benchmarks.quality.results import Job, Results

        results = Results(done={Job("a", 0, "x"): {"error": "late", "late": True}})
        assert self.run([Job("a", 1, "x")], results, lambda job: result(1.0)) == []

    def test_every_table_is_seen_once_before_the_next_seed(self):
        from benchmarks.quality.runner import jobs_of

        options = SimpleNamespace(seeds=2, tables=["a", "b"], libraries=["x", "y"])
        assert ["".join(map(str, job)) for job in jobs_of(options)] == [
            *("a0x", "a0y", "b0x", "b0y"),
            *("a1y", "a1x", "b1y", "b1x"),
        ]

    def test_all_tables_but_those_for_ranking(self, data):
        from benchmarks.quality import left_out
        from benchmarks.quality.runner import parse

        others = set(left_out.LEFT_OUT) if left_out.installed() else set()
        assert set(parse([]).tables) == {"broken", "classes", "numbers"} | others

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--tables", "nope"], "no table 'nope'; there are"),
            (["--libraries", "nope"], "no library 'nope'; there are sglb, catboost"),
            (["--seeds", "0"], "--seeds must be above 0, not 0"),
            (["--max-rows", "-5"], "--max-rows must be above 0, not -5"),
        ],
    )
    def test_bad_options_are_named(self, data, arguments, message, capsys):
        from benchmarks.quality.runner import parse

        with pytest.raises(SystemExit):
            parse(arguments)
        assert message in capsys.readouterr().err


class FakeLibrary:
    """Predicts the training mean, or the shares of the classes."""

    @staticmethod
    def prepare(*frames):
        return [frame.assign(seen=1.0) for frame in frames]

    @staticmethod
    def fit(train, valid, protocol):
        kind = protocol.task == "regression"
        share = np.bincount(train.y.astype(int), train.weight) if not kind else None
        mean = train.y.mean() if kind else share / share.sum()
        return SimpleNamespace(mean=mean, rows=(len(train.y), len(valid.y)), protocol=protocol)

    @staticmethod
    def predict(model, X):
        return np.full((len(X), *np.shape(model.mean)), nan)

    @staticmethod
    def predict_best(model, X):
        assert (X.seen == 1.0).all()
        return np.broadcast_to(model.mean, (len(X), *np.shape(model.mean)))

    @staticmethod
    def rounds(model):
        return model.protocol.max_rounds


class TestWorker:
    def test_a_library_is_scored_on_the_test_rows(self, data):
        from benchmarks.quality.split import split
        from benchmarks.quality.worker import measure

        from sglb.datasets import load_table

        scores_found = measure({"table": "numbers", "seed": 1, "max_rounds": 9}, FakeLibrary)
        y = load_table("numbers").y
        train, _, test = split(y, 1, classes=False)
        assert scores_found["loss"] == pytest.approx(
            np.sqrt(np.mean((y[test] - y[train].mean()) ** 2))
        )
        assert (scores_found["task"], scores_found["rows"], scores_found["features"]) == (
            "regression",
            78,
            3,
        )
        assert scores_found["rounds"] == 9
        assert min(scores_found["fit_seconds"], scores_found["predict_seconds"]) >= 0

    def test_columns_that_are_no_features_are_not_given(self, data):
        from benchmarks.quality.worker import measure

        scores_found = measure({"table": "classes", "seed": 0}, FakeLibrary)
        assert (scores_found["task"], scores_found["features"]) == ("binary", 3)
        assert scores_found.keys() >= {"loss", "error_rate", "auc"}

    def test_sglb_runs_from_the_command_line_and_failures_are_told(self, data, tmp_path):
        pytest.importorskip("matplotlib")
        kept = tmp_path / "results.jsonl"
        call = [sys.executable, "-m", "benchmarks.quality", "--libraries", "sglb", "--seeds", "1"]
        call += ["--rounds", "5", "--threads", "1", "--results", str(kept)]
        call += ["--tables", "broken,classes,numbers"]

        def text():
            done = subprocess.run(
                [*call, "--write", "--output", str(tmp_path)],
                cwd=REPOSITORY,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        page = text()
        assert "| numbers | 78 × 3 | **" in page
        assert "| classes | 78 × 3 | **" in page
        assert "- sglb on broken, seed 0: `exit code 1: sglb.tables.errors.TableError:" in page
        assert page.strip() in (tmp_path / "quality.md").read_text()
        assert str(tmp_path) not in page
        before = [json.loads(line) for line in kept.read_text().splitlines()]
        text()
        after = [json.loads(line) for line in kept.read_text().splitlines()]
        assert ["run" in line for line in before] == [True, False, False, False]
        assert after[:4] == before
        assert ["run" in line for line in after[4:]] == [True]  # nothing was computed again

    def test_a_process_that_takes_too_long_is_a_failure(self, data):
        from benchmarks.quality.results import Job
        from benchmarks.quality.runner import compute, parse

        options = parse(["--time-limit", "0.01"])
        scores_found = compute(Job("numbers", 0, "sglb"), options)
        assert scores_found == {"error": "no result within 0.01 s", "late": True}


class TestLibraries:
    def test_every_library_says_who_it_is_without_being_installed(self):
        from benchmarks.quality.libraries import LIBRARIES, get_library

        for name in LIBRARIES:
            library = get_library(name)
            assert all(
                isinstance(getattr(library, key), str) for key in ("NAME", "PACKAGE", "NOTE")
            )
            assert all(callable(getattr(library, key)) for key in ("fit", "predict", "rounds"))

    def test_hgb_gets_at_most_255_levels_and_no_empty_column(self):
        from benchmarks.quality.libraries.sklearn_hgb import POOLED, prepare

        levels = [f"level {number:03}" for number in range(300)]
        many = pd.Categorical([*levels, *levels[:254], None], categories=[*levels, "unseen"])
        train = pd.DataFrame({"many": many, "few": pd.Categorical(["x"] * 555), "none": nan})
        test = pd.DataFrame(
            {
                "many": pd.Categorical(["level 000", "level 299", "unseen", None]),
                "few": pd.Categorical(["x"] * 4),
                "none": 1.0,
            }
        )
        ready, scored = prepare(train, test)
        assert ready["many"].nunique() == 255
        assert (ready["many"] == POOLED).sum() == 46
        assert ready["many"].isna().sum() == 1
        assert scored["many"].astype(object).fillna("missing").tolist() == [
            *("level 000", POOLED, POOLED, "missing")
        ]
        assert list(ready.columns) == list(scored.columns) == ["many", "few"]
        assert ready["few"].equals(train["few"])

    def test_catboost_gets_text_without_gaps(self):
        from benchmarks.quality.libraries.catboost import MISSING, prepare

        frame = pd.DataFrame({"c": pd.Categorical(["a", None]), "x": [1.0, nan]})
        (ready,) = prepare(frame)
        assert ready["c"].tolist() == ["a", MISSING]
        assert ready["x"].isna().tolist() == [False, True]

    @pytest.mark.parametrize("name", ["sglb", "catboost", "lightgbm", "xgboost", "sklearn_hgb"])
    @pytest.mark.filterwarnings("ignore")
    def test_installed_libraries_learn_both_tables(self, data, name):
        from benchmarks.quality.libraries import get_library, version
        from benchmarks.quality.worker import measure
        from threadpoolctl import threadpool_limits

        if version(name) is None:
            pytest.skip(f"{name} is not installed")
        for table, limit in (("numbers", 1.0), ("classes", 0.69)):
            request = {"table": table, "seed": 0, "max_rounds": 60}
            with threadpool_limits(1):  # as the runner does by OMP_NUM_THREADS
                scores_found = measure(request, get_library(name))
            assert scores_found["loss"] < limit  # what a constant has
            assert 1 <= scores_found["rounds"] <= 60
