"""The list of bugs that `make mutants` plants stays valid: each old text occurs exactly once."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def test_each_bug_changes_one_line_that_exists_once():
    from benchmarks.mutants.mutants import MUTANTS

    assert len(MUTANTS) >= 60
    assert len({(mutant.file, mutant.old) for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        text = (REPOSITORY / "src" / mutant.file).read_text()
        assert text.count(mutant.old) == 1, mutant
        assert mutant.new != mutant.old
        if mutant.file.endswith(".py"):
            compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")


def test_each_bug_names_tests_that_exist():
    from benchmarks.mutants.mutants import MUTANTS

    for mutant in MUTANTS:
        assert mutant.tests
        for test in mutant.tests.split():
            assert (REPOSITORY / "tests" / test.partition("::")[0]).is_file(), test
