"""The benchmark's own machinery, on problems of seconds; needs no peer."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich")
REPOSITORY = Path(__file__).parent.parent
SMALL = ["--rows", "300", "--trees", "25", "--repeats", "1", "--threads", "1"]
OWN = ["--libraries", "sglb_langevin,sglb_gradient"]


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def run(module, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_structure_rows_are_tabulated_from_most_to_fewest():
    shown = run(
        "benchmarks.structure_rows", "--problems", "rows_10k", "--rows", "6000", "--trees", "2"
    )
    rows = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    assert rows[:2] == ["structure rows", "**6,000** (auto)"]


def test_leaf_steps_are_tabulated_with_and_without_a_longest():
    shown = run("benchmarks.leaf_steps", "--rows", "20000", "--trees", "40", "--seeds", "1")
    lines = [line.split("|")[1:-1] for line in shown.splitlines() if line.startswith("| ")]
    cells = {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines}
    assert float(cells["3"][1]) < float(cells["1"][1])  # test loss
    bounded, unbounded = cells["1 steps, longest 2"], cells["1 steps, longest inf"]
    assert float(bounded[3]) < 1.5 < float(unbounded[3])  # largest leaf value


def test_a_worker_prints_one_line_of_numbers():
    request = {"problem": "stumps_1k", "library": "sglb_langevin", "rows": 300, "trees": 5}
    result = json.loads(run("benchmarks.worker", json.dumps(request)))
    assert result.keys() == {"seconds", "cpu_seconds", "memory", "loss"}
    assert 0 < result["seconds"] < 60
    assert 0 < result["loss"] < 0.7  # a constant has log 2


def test_a_run_prints_writes_and_can_be_read_again(tmp_path):
    pytest.importorskip("matplotlib")
    problems = "stumps_1k,custom_loss,predict_100_1,one_row,one_row_default,states,imports"
    kept = tmp_path / "results.jsonl"
    options = [*SMALL, *OWN, "--problems", problems, "--results", str(kept)]
    text = run("benchmarks", *options, "--write", "--output", str(tmp_path / "docs"))
    assert "failed" not in text
    assert text.count("| sglb |") == 7
    assert "### Fit: 300 rows, 3 features; 25 trees of depth 1" in text
    assert "### Predict one row: 28 features; 25 trees of depth 6, threads by default" in text
    assert text.splitlines()[-2].startswith("- **sglb**")
    page = (tmp_path / "docs" / "benchmarks.md").read_text()
    assert text.strip() in page
    assert (tmp_path / "docs" / "benchmarks.png").stat().st_size > 1000
    assert run("benchmarks", "--read", str(kept), *OWN) == text


def test_a_crash_is_reported_not_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("SGLB_DATA", str(tmp_path / "missing"))
    text = run("benchmarks", *SMALL, *OWN, "--problems", "adult")
    assert "| sglb | failed | –" in text
    assert "sglb failed: `exit code 1: FileNotFoundError: SGLB_DATA names a folder" in text


def test_calls_are_compared_in_turn():
    from benchmarks.process import TIMES, least_in_turn

    made = []
    naps = {"a": iter([0.02, *[0.01] * 20]), "b": iter([0.0] * 20)}

    def call(name):
        made.append(name)
        time.sleep(next(naps[name]))

    slow, quick = least_in_turn(lambda: call("a"), lambda: call("b"), seconds=0.0)
    assert made == ["a", "b"] * TIMES
    assert slow.seconds >= 0.01
    assert quick.seconds < slow.seconds


def test_a_process_that_takes_too_long_is_reported():
    from dataclasses import replace

    from benchmarks import runner
    from benchmarks.problems import PROBLEMS

    problem = replace(PROBLEMS["stumps_1k"], timeout=0.01)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROBLEMS, "stumps_1k", problem)
        options = runner.parse([*SMALL, *OWN])
        result = runner.run_one("stumps_1k", "sglb_langevin", 0, options)
    assert result == {"error": "no result within 0 s"}


def test_tables_hold_medians_and_ratios_to_sglb():
    from benchmarks.problems import PROBLEMS
    from benchmarks.tables import table

    def repeats(*seconds):
        return [{"seconds": s, "cpu_seconds": s, "memory": 2e6, "loss": 0.5} for s in seconds]

    rows = {"sglb_langevin": repeats(1.0, 9.0, 2.0), "xgboost_hist": repeats(7.0, 8.0, 9.0)}
    rows["xgboost_hist"].append({"error": "exit code -9: no message"})
    lines = table(PROBLEMS["rows_1m"], rows, 2)
    assert lines[2] == "| sglb | 2.00 | 1.00 – 9.00 | 1.00 | – | 2.00 | 2.00 | 0.5000 |"
    assert lines[3] == "| XGBoost | 8.00 | 7.00 – 9.00 | 4.00 | – | 8.00 | 2.00 | 0.5000 |"
    assert lines[-1] == "XGBoost failed: `exit code -9: no message`"


def test_the_largest_problem_is_for_sglb_and_the_two_fastest_peers():
    from benchmarks.peers import PEERS
    from benchmarks.problems import PROBLEMS
    from benchmarks.schedule import entrants

    times = {"xgboost_hist": 3.0, "catboost_sglb": 5.0, "lightgbm_plain": 4.0, "sglb_plain": 1.0}
    results = {"rows_1m": {name: [{"seconds": s}] for name, s in times.items()}}
    participants = entrants(PROBLEMS["rows_10m"], PEERS, results)
    assert set(participants) == {
        "sglb_langevin", "sglb_gradient", "sglb_plain", "sglb_ten_steps", "xgboost_hist",
        "lightgbm_plain",
    }  # fmt: skip


def test_a_peer_that_says_nothing_new_stays_away():
    from benchmarks.peers import PEERS
    from benchmarks.problems import PROBLEMS
    from benchmarks.schedule import entrants

    for name, enters in (("rows_1m", True), ("classes_10", False), ("states", False)):
        assert ("sglb_ten_steps" in entrants(PROBLEMS[name], PEERS, {})) == enters, name


def test_a_slow_library_is_not_repeated_unless_asked():
    from benchmarks.schedule import again

    assert [again(spent) for spent in (0.0, 0.1, 500.0)] == [True, True, False]
    assert again(500.0, asked=2)
    assert [again(spent, asked=2, enough=30.0) for spent in (29.0, 31.0)] == [True, False]


def test_every_peer_says_who_it_is_without_its_library():
    from benchmarks.peers import PEERS, get_peer

    for name in PEERS:
        peer = get_peer(name)
        assert all(isinstance(getattr(peer, key), str) for key in ("NAME", "PACKAGE", "NOTE"))
        assert callable(peer.fit)
        assert callable(peer.predict)


def test_the_numpy_loss_has_its_own_derivatives():
    from benchmarks import numpy_logistic

    y, raw, step = np.array([0.0, 1.0, 1.0]), np.array([-1.5, 0.0, 2.0]), 1e-5
    gradient, hessian = numpy_logistic.derivatives(y, raw)
    up, down = (numpy_logistic.loss(y, raw + shift) for shift in (step, -step))
    np.testing.assert_allclose(gradient, (up - down) / (2 * step), rtol=1e-6)
    up, down = (numpy_logistic.gradient(y, raw + shift) for shift in (step, -step))
    np.testing.assert_allclose(hessian, (up - down) / (2 * step), rtol=1e-6)


def test_libraries_with_a_tree_for_each_class_may_get_fewer_rounds(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))
    from benchmarks import problems

    problem = problems.get_problem("classes_10_loss")
    assert problem.settings(1, 0).n_trees == 250
    assert problem.settings(1, 0, by_class=True).n_trees == 100
    assert problem.smaller(n_trees=3).settings(1, 0, by_class=True).n_trees == 3
    assert problems.get_problem("classes_10").settings(1, 0, by_class=True).n_trees == 100


def test_the_encoding_of_every_container_can_be_timed():
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.encoding", "--rows", "3000", "--columns", "3"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("|")[1:3] for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 5
    assert all(float(seconds) > 0.0 for _, seconds in rows)
