"""Samplers beside one another: draws a second, and the loss reached where there are many valleys.

    python -m benchmarks.dynamics                      # everything that is not done yet
    python -m benchmarks.dynamics --parts frozen --tables uci_kin8nm
    python -m benchmarks.dynamics --read build/dynamics.jsonl --write     # runs nothing

Results are kept in build/dynamics.jsonl, and what is there is not computed again. Prints Markdown;
--write puts it, and the picture, into docs/. Needs SGLB_DATA. One thread.
"""

import argparse
import shlex
import sys
import time
from functools import cache
from pathlib import Path

from benchmarks import machine
from benchmarks.dynamics import descent, draws, report
from benchmarks.dynamics.problems import PROBLEMS
from benchmarks.uncertainty.results import Job, Results

PARTS = ("single", "frozen", "greedy", "choice", "reference", "descent", "long")
posterior_of = cache(draws.Posterior.of)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dynamics", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--parts", default=",".join(PARTS), help="comma-separated (%(default)s)")
    add("--tables", default=",".join(draws.TABLES), help="of draws (%(default)s)")
    add("--problems", default=",".join(PROBLEMS), help="of descents (%(default)s)")
    add("--seeds", type=int, default=descent.N_SEEDS, help="of descents (%(default)s)")
    add("--results", type=Path, default=machine.REPOSITORY / "build" / "dynamics.jsonl")
    add("--read", type=Path, nargs="+", metavar="FILE", help="report these, run nothing")
    add("--write", action="store_true", help="put the report into docs/dynamics.md")
    options = parser.parse_args(arguments)
    allowed = {"parts": PARTS, "tables": draws.TABLES, "problems": PROBLEMS}
    for name, names in allowed.items():
        setattr(options, name, getattr(options, name).split(","))
        for value in getattr(options, name):
            if value not in names:
                parser.error(f"{value!r} is not one of {', '.join(names)}")
    return options


def single_work(options, results):
    """(job, work): what is to be computed, and the function that does it."""
    for a in draws.SINGLE_FRICTIONS:
        yield Job("single", "one structure", 0, f"{a:g}"), lambda a=a: draws.single(a)


def frozen_work(options, results):
    for table in options.tables:
        posterior = posterior_of(table)
        for name, chains in draws.frozen_methods(table, posterior.shrink_rate).items():
            yield Job("frozen", table, 0, name), lambda p=posterior, c=chains: draws.frozen(p, *c)


def greedy_work(options, results):
    for table in options.tables:
        posterior = posterior_of(table)
        for name, chains in draws.greedy_methods(table, posterior.shrink_rate).items():
            yield Job("greedy", table, 0, name), lambda p=posterior, c=chains: draws.greedy(p, *c)


def choice_work(options, results):
    """Settings of all samplers on seeds that are used for nothing else."""
    for seed in range(descent.FIRST_CHOICE, descent.FIRST_CHOICE + descent.N_CHOICE):
        for problem in options.problems:
            for name in descent.settings():
                arguments = (problem, name, seed)
                yield Job("choice", problem, seed, name), lambda a=arguments: descent.run(*a)


def reference_work(options, results):
    """Long runs, for the best loss that is known."""
    for seed in range(options.seeds):
        for problem in options.problems:
            if problem in descent.UNKNOWN:
                arguments = (problem, seed)
                yield (
                    Job("reference", problem, seed, "long"),
                    lambda a=arguments: descent.reference(*a),
                )


def descent_work(options, results):
    chosen = descent.chosen(results)
    for seed in range(options.seeds):
        for problem in options.problems:
            for method, name in chosen.items():
                arguments = (problem, name, seed)
                yield Job("descent", problem, seed, method), lambda a=arguments: descent.run(*a)


def long_work(options, results):
    """The same with more time."""
    chosen = descent.chosen(results)
    for seed in range(options.seeds):
        for problem in options.problems:
            for method in descent.LONG_METHODS if chosen else ():
                arguments = (problem, chosen[method], seed)
                yield Job("long", problem, seed, method), lambda a=arguments: descent.run_long(*a)


WORK = {
    "single": single_work,
    "frozen": frozen_work,
    "greedy": greedy_work,
    "choice": choice_work,
    "reference": reference_work,
    "descent": descent_work,
    "long": long_work,
}


def run(options, results):
    """Compute what is missing."""
    commit = machine.commit()
    for part in options.parts:
        for job, work in WORK[part](options, results):
            if job in results.done:
                continue
            begun = time.perf_counter()
            results.add(job, work() | {"commit": commit})
            print(*job, f"{time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)


def main(arguments=None):
    options = parse(arguments)
    if options.read is None:
        results = Results.resume(options.results)
        results.begin("python -m benchmarks.dynamics " + shlex.join(sys.argv[1:]))
        run(options, results)
    else:
        results = Results.read(*options.read)
    text = report.markdown(results)
    print(text)
    if options.write:
        report.write(text, results)
