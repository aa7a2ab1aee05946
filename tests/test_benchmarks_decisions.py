"""The comparison of decisions: its costs by hand, and a run on small tables."""

import json
import sys

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from benchmarks import decisions  # noqa: E402

from sglb.datasets import Dataset  # noqa: E402


def small_table(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    y = (X[:, 0] + rng.normal(size=700) > 1.0).astype(np.int8)
    columns = {"LIMIT_BAL": 1e4 * np.exp(X[:, 1]), "VehBCost": np.exp(X[:, 2]), "other": X[:, 0]}
    return Dataset(name=name, X=pa.table(columns), y=y, task="binary")


def test_costs_of_amounts_by_hand():
    X = pa.table({"LIMIT_BAL": [1e4, 2e4], "VehBCost": [1000.0, None]})
    assert decisions.exposure(X).tolist() == [[[0, 6000], [7500, 0]], [[0, 7000], [15000, 0]]]
    assert decisions.lemon(X).tolist() == [[[0, 600], [500, 0]]] * 2
    assert decisions.offer(8.0, X).tolist() == [[0, 1], [0, -7]]


def test_a_cell_says_what_is_better_and_by_how_much():
    base = [1.0, 1.1, 0.9, 1.0]
    assert decisions.cell("cost", [0.8, 0.9, 0.71, 0.8], base) == "-19.8 % ▲"
    assert decisions.cell("cost", [1.2, 1.3, 1.1, 1.21], base) == "+20.3 % ▼"
    assert decisions.cell("precision", [1.2, 1.3, 1.1, 1.21], base) == "+20.3 % ▲"
    assert decisions.cell("cost", [1.0, 1.0, 1.0, 1.0], base) == "+0.0 %"
    # Losses that are profits: a lower cost is better, whatever its sign.
    assert decisions.cell("cost", [-1.2, -1.3, -1.1, -1.21], [-1.0, -1.1, -0.9, -1.0]).startswith(
        "-"
    )


def test_a_run_reports_every_measure_and_goes_on_where_it_stopped(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(decisions, "load_table", small_table)
    sizes = {"N_TRAIN": 300, "N_VALIDATION": 150, "N_TEST": 200, "PATIENCE": 3}
    for name, value in sizes.items():
        monkeypatch.setattr(decisions, name, value)
    kept = tmp_path / "scores.json"
    arguments = ["decisions", "--splits", "2", "--results", str(kept), "--problems"]
    problems = ["kick", "credit_default, by limit"]
    monkeypatch.setattr(sys, "argv", [*arguments, *problems])
    decisions.main()
    text = capsys.readouterr().out
    assert all(f"| {problem} |" in text for problem in problems)
    assert all(title in text for title in decisions.TITLES.values())
    scores = json.loads(kept.read_text())
    assert len(scores["kick"]["cost"]["decide"]) == 2
    monkeypatch.setattr(decisions, "classifier", lambda *_: pytest.fail("scored already"))
    decisions.main()
    assert capsys.readouterr().out == text
