"""The comparison of two commits: which ratios count as slower."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture
def versions(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))
    from benchmarks import versions

    return versions


def compare(versions, monkeypatch, base, head):
    seconds = {"base": iter(base), "head": iter(head)}

    def measure(python, problem, library, seed, threads):
        return next(seconds["base" if python == "base" else "head"])

    monkeypatch.setattr(versions, "measure", measure)
    options = versions.parse(["HEAD", "--repeats", str(len(base))])
    return versions.compare("base", "stumps_1k", "sglb_langevin", options)


def test_head_is_slower_where_both_the_fastest_and_the_median_are(versions, monkeypatch):
    row = compare(versions, monkeypatch, [1.0, 1.1, 1.2], [1.2, 1.3, 1.4])
    assert row[2:6] == ["1", "1.2", "1.200", "1.182"]
    assert row[6].startswith("slower")


def test_a_single_slow_or_fast_process_is_no_verdict(versions, monkeypatch):
    assert not compare(versions, monkeypatch, [1.0, 1.1, 1.2], [1.0, 1.5, 1.6])[6].startswith(
        "slower"
    )
    assert not compare(versions, monkeypatch, [1.0, 1.2, 1.2], [1.1, 1.15, 1.2])[6].startswith(
        "slower"
    )


def test_an_unknown_problem_is_rejected_with_those_there_are(versions, capsys):
    with pytest.raises(SystemExit):
        versions.parse(["HEAD", "--problems", "rows_7"])
    assert "'rows_7' is not one of" in capsys.readouterr().err
