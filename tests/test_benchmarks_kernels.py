"""Counting instructions: profiles read, counts compared; valgrind itself is not needed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent

PROFILE = """\
# callgrind format
desc: Trigger: Client Request: rows/grow
positions: line
events: Ir
summary: 1000

ob=(1) /x/_core.cpython-311-x86_64-linux-gnu.so
fl=(1) /x/histogram.cpp
fn=(1) sglb::build_histogram(unsigned char const*, long) [clone .arch_x86_64_v3]
10 100
+2 20
fi=(2) /x/elementary.h
* 5
cob=(3) /usr/lib/libc.so.6
cfi=(4) ./string/memset.S
cfn=(2) __memset_avx2_unaligned_erms
calls=3 7
-1 900

fn=(3) std::_Function_handler<void (long), sglb::LeafRows::part\
(sglb::Split const&, long)::{lambda(long)#1}>::_M_invoke(std::_Any_data const&, long&&)
1 40

ob=(3)
fn=(2)
7 900

ob=(4) /usr/lib/libpython3.11.so.1.0
fn=(5) PyObject_Call
1 5000
"""


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def test_a_profile_is_split_by_kernel_and_what_is_outside_is_left_out(tmp_path):
    from benchmarks.kernels.profile import total

    for part in (1, 2):  # two calls of the same entry
        (tmp_path / f"profile.{part}").write_text(PROFILE)
    (tmp_path / "profile.3").write_text(PROFILE.replace("desc: Trigger", "desc: Other"))
    counts, functions, clones = total(sorted(tmp_path.iterdir()))
    assert counts == {
        "rows/grow": 2 * 1065,
        "rows/grow/histogram": 2 * 125,
        "rows/grow/memory": 2 * 900,
        "rows/grow/partition": 2 * 40,
    }
    assert functions["rows/grow"].most_common(1) == [("__memset_avx2_unaligned_erms", 1800)]
    assert functions["rows/grow"]["LeafRows::part"] == 80
    assert clones == {"arch_x86_64_v3"}


def test_names_lose_arguments_and_carriers():
    from benchmarks.kernels.profile import kernel, short

    carried = (
        "std::_Function_handler<void (long), sglb::parallel_rows<sglb::quantise(sglb::Slopes const&"
        ", int)::{lambda(long, long)#1}>(long, int)::{lambda(long)#1}>::_M_invoke(long&&)"
    )
    assert (short(carried), kernel(carried)) == ("quantise", "quantise")
    assert kernel("sglb::best_scores(sglb::GroupScores const&, long)") == "scoring"
    assert kernel("nanobind::detail::ndarray_import_histogram(int)") == "other"


def test_parts_that_are_tiny_or_the_whole_are_left_out():
    from benchmarks.kernels.counts import large

    counts = {"a/grow": 1000, "a/grow/histogram": 990, "a/grow/other": 10, "a/tiny": 9, "b/x": 5}
    assert large(counts) == {"a/grow": 1000, "a/grow/other": 10, "b/x": 5}


def test_growth_above_five_percent_is_too_much_and_news_is_not():
    from benchmarks.kernels.counts import compare

    changes = {
        change.name: change
        for change in compare({"a": 100, "b": 100, "c": 100}, {"a": 106, "b": 104, "d": 7})
    }
    assert [name for name, change in changes.items() if change.too_much] == ["a"]
    assert changes["a"].growth == pytest.approx(0.06)
    assert changes["c"].growth is None
    assert changes["d"].growth is None


@pytest.fixture
def command(monkeypatch, tmp_path):
    """The command with measured counts put in its place, and a record to compare with."""
    from benchmarks.kernels import __main__ as command
    from benchmarks.kernels.counts import Counts

    path = tmp_path / "counts.json"
    Counts("g++ 12", "valgrind-3.19", ["arch_x86_64_v3"], {"rows/grow": 1000}).write(path)
    monkeypatch.setattr(command, "FILE", path)
    monkeypatch.setattr(command, "REPOSITORY", tmp_path)

    def run(count, *arguments, compiler="g++ 12"):
        now = Counts(compiler, "valgrind-3.19", ["arch_x86_64_v3"], {"rows/grow": count})
        monkeypatch.setattr(command, "measure", lambda: (now, {}))
        return command.main(list(arguments))

    return run


def test_the_check_fails_on_growth_alone(command, capsys):
    assert command(1040, "--check") == 0
    assert command(900, "--check") == 0
    assert command(1100) == 0
    assert command(1100, "--check") == 1
    assert "more than 5 % above the record: rows/grow" in capsys.readouterr().out


def test_the_check_does_not_compare_compilers(command, capsys):
    assert command(1000, "--check", compiler="g++ 14") == 2
    assert "compiler was 'g++ 12', is 'g++ 14'" in capsys.readouterr().out


def test_recording_replaces_the_counts(command):
    assert command(1100, "--record") == 0
    assert command(1100, "--check") == 0


def test_without_valgrind_it_says_how_to_get_it(monkeypatch, capsys):
    from benchmarks.kernels import __main__ as command

    monkeypatch.setattr(command.shutil, "which", lambda name: None)
    assert command.main([]) == 2
    assert "apt-get install valgrind" in capsys.readouterr().err


def test_the_driver_wraps_every_function_whatever_its_arguments():
    from types import SimpleNamespace

    from benchmarks.kernels.driver import Counter

    seen = []
    switch = SimpleNamespace(toggle=lambda: seen.append("toggle"), dump=seen.append)
    kind = type("Slopes", (), {"refresh": lambda self, n: n + 1})
    module = SimpleNamespace(
        grow=lambda *subset, depth=0: len(subset) + depth, Slopes=kind, _own=len
    )
    counter = Counter(switch)
    counter.wrap(module)
    counter.scenario = "rows"
    assert module.grow(1, 2, depth=3) == 5
    assert seen == ["toggle", "toggle", b"rows/grow"]
    assert module.Slopes().refresh(4) == 5
    assert seen[3:] == ["toggle", "toggle", b"rows/refresh"]
    assert module._own is len


def test_the_scenarios_run():
    from benchmarks.kernels.scenarios import SCENARIOS

    for scenario in SCENARIOS.values():
        scenario()


def test_samples_are_added_up_by_kernel_and_by_function():
    from benchmarks.kernels.shares import read

    report = """\
# Samples: 5K of event 'cpu-clock'
    41.20%  _core.cpython-311-x86_64-linux-gnu.so  [.] sglb::build_histogram(long) [clone .default]
    10.30%  _core.cpython-311-x86_64-linux-gnu.so  [.] sglb::Histogram::build(int)
     8.00%  libc.so.6                              [.] __memset_evex
     0.50%  [kernel.kallsyms]                      [k] clear_page_erms
"""
    kernels, functions = read(report)
    assert kernels["histogram"] == pytest.approx(51.5)
    assert kernels["outside"] == pytest.approx(8.5)
    assert functions["build_histogram"] == pytest.approx(41.2)
    assert functions["outside: clear_page_erms"] == pytest.approx(0.5)


def test_rates_are_in_cycles():
    from benchmarks.kernels.cycles import table

    result = {
        "clock": 0.25,
        "addition": 0.5,
        "step": 0.25,
        "counter": 1.0,
        "tree": 0.0,
        "stretch": 0.0,
        "state": 1.0,
        "entropy": 4.0,
    }
    lines = table(result)
    assert lines[0] == "A cycle takes 0.250 ns (4.00 GHz)."
    assert lines[4].startswith("| histogram: additions | 0.500 | 0.50 |")
    assert "| prediction: trees of depth 6 at a row | – | – | needs AVX-512 |" in lines
    assert any("five numbers of a row | 4.000 | 0.06 |" in line for line in lines)


def test_the_program_that_measures_cycles_fits_the_core():
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("no C++ compiler on the path")
    call = [compiler, "-std=c++20", "-fsyntax-only", "-I", "src/core"]
    subprocess.run([*call, "benchmarks/kernels/cycles.cpp"], cwd=REPOSITORY, check=True)
