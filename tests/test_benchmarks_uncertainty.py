"""The benchmark of uncertainty: its scores by hand, its parts on tiny tables, without peers."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).parent.parent
FAST = {"n_estimators": 10, "max_depth": 2}


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def test_scores_are_in_the_unit_of_y():
    from benchmarks.uncertainty.methods import Forecast
    from benchmarks.uncertainty.regression import scores

    from sglb.distributions import Normal

    z = np.array([0.0, 1.0, -3.0, 0.5])
    result = scores(Forecast.of(Normal(np.zeros(4), np.ones(4)), 2.0), z, 10.0)
    expected = Normal(np.zeros(4), np.full(4, 10.0))
    assert result["nll"] == pytest.approx(-expected.logpdf(10.0 * z).mean())
    assert result["crps"] == pytest.approx(expected.crps(10.0 * z).mean())
    assert result["rmse"] == pytest.approx(10.0 * np.sqrt(10.25 / 4.0))
    assert result["coverage"] == 0.75
    assert result["width"] == pytest.approx(2.0 * 16.4485, rel=1e-4)
    # One row of four is 30 - 16.4 outside, and counts 2 / .1 times.
    assert result["interval_score"] == pytest.approx(result["width"] + 20.0 * 13.5515 / 4, rel=1e-4)


def test_a_tiny_table_runs_through_regression_and_report(tmp_path):
    from benchmarks.uncertainty import regression, report
    from benchmarks.uncertainty.results import Job, Results

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 3))
    y = 1e3 * (X[:, 0] + 0.1 * rng.normal(size=120))
    path = tmp_path / "results.jsonl"
    results = Results.resume(path)
    results.begin("a command")
    for split in range(2):
        test = np.arange(120) % 10 == split
        for name, row in regression.measure("sglb", X, y, test, split, 1, **FAST).items():
            results.add(Job("regression", "uci_boston", split, name), row)
            results.add(Job("regression", "uci_boston", split, "ngboost"), row | {"nll": 9.0})
    with path.open("a") as lines:
        lines.write('{"cut off')
    again = Results.resume(path)
    assert again.done == results.done == Results.read(path).done
    assert again.commands == ["a command"]
    text = report.markdown(again)
    assert "| uci_boston | 2.30 |" in text
    assert "| uci_boston | 2 |" in text
    assert " ngboost, p " in text


def test_a_peer_with_fewer_splits_is_compared_on_those_it_has():
    from benchmarks.uncertainty import report
    from benchmarks.uncertainty.results import Job, Results

    results = Results()
    shape = {"rows": 90, "test_rows": 10}
    result = {"sglb": (1.0, 2.0, 6.0), "ngboost": (2.5, 3.5, 7.5), "catboost": (2.0, 3.2)}
    for name, values in result.items():
        for split, value in enumerate(values):
            results.add(Job("regression", "uci_boston", split, name), shape | {"nll": value})
    assert report.best_peer(results, "uci_boston", "nll") == "catboost"  # 1.1 behind, not 1.5
    assert report.difference(results, "uci_boston", "nll", "sglb").startswith(
        "-1.100 catboost (2), p "
    )
    assert report.difference(results, "uci_boston", "nll", "sglb, 5 chains") == report.NOTHING
    results.add(Job("regression", "uci_boston", 2, "catboost"), shape | {"nll": 9.0})
    assert report.difference(results, "uci_boston", "nll", "sglb").startswith("-1.500 ngboost, p ")


def test_goals_name_the_variants_that_reach_them():
    from benchmarks.uncertainty import report
    from benchmarks.uncertainty.results import Job, Results

    results = Results()
    result = {"sglb": 2.4, "sglb, normal": 2.42, "sglb, 5 chains": 2.2}  # 2.30; published 2.43
    for name, value in result.items():
        results.add(Job("regression", "uci_boston", 0, name), {"nll": value})
    assert report.goals(results)[-1] == (
        "| uci_boston | 2.30 | 2.400 | 2.420 | 2.200 | 2.43 NGBoost | sglb, 5 chains only | yes |"
    )


def test_foreign_rows_keep_columns_or_their_moments():
    from benchmarks.uncertainty.classes import foreign, permuted

    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(5.0, 2.0, 400), "b": pd.Categorical(["x", "y"] * 200)})
    other = pd.DataFrame({"c": rng.uniform(size=300), "d": pd.Categorical(["z"] * 300)})
    mixed = permuted(frame, 0)
    assert sorted(mixed["a"]) == sorted(frame["a"])
    assert (mixed["a"] != frame["a"]).any()
    assert mixed["b"].dtype == frame["b"].dtype
    strange = foreign(frame, frame, other, 0)
    assert strange["a"].mean() == pytest.approx(5.0, abs=0.5)
    assert strange["a"].std() == pytest.approx(2.0, rel=0.1)
    assert set(strange["b"]) == {"x", "y"}


def test_classes_known_functions_and_times_have_their_tables():
    from benchmarks.quality.protocol import Part
    from benchmarks.uncertainty import classes, known, tables, times
    from benchmarks.uncertainty.results import Job, Results

    X, y, _, _ = known.simulate("classes", 200, 0)
    frame = pd.DataFrame(X).rename(columns=str)
    part = Part(frame, y)
    outside = {kind: classes.permuted(frame, 0) for kind in ("permuted", "foreign")}
    results = Results()
    row = classes.measure_sglb((part, part, part), "binary", outside, 0, 1, max_depth=2)
    assert row["permuted_knowledge"] > 0.5
    results.add(Job("classes", "adult", 0, "sglb"), row)
    assert "| adult |" in "\n".join(tables.classes(results))
    plans = (("laplace", "auto"), ("laplace", 1.0))
    for task, n_plans in (("regression", 1), ("classes", 2)):
        result = known.measure(task, 200, 0, 1, plans, 10, **FAST)
        assert len(result) == n_plans
        for plan, numbers in result.items():
            results.add(Job("known", f"{task} 200", 0, plan), numbers)
    assert "as laplace 0.3" in "\n".join(tables.known(results))
    results.add(Job("times", "200", 0, "uncertainty"), times.uncertainty(200, 0, 1, **FAST))
    assert "against the plain fit | 200 | 1 |" in "\n".join(tables.times(results))


def test_unknown_names_are_rejected(capsys):
    from benchmarks.uncertainty.runner import parse

    with pytest.raises(SystemExit):
        parse(["--parts", "regresion"])
    assert "'regresion' is not one of" in capsys.readouterr().err
