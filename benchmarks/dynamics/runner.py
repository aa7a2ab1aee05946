"""Samplers beside one another: draws a second, and the loss reached where there are many valleys.

    python -m benchmarks.dynamics                      # everything that is not done yet
    python -m benchmarks.dynamics --parts frozen --tables uci_kin8nm
    python -m benchmarks.dynamics --read build/dynamics.jsonl --write     # runs nothing
    python -m benchmarks.dynamics --parts costs,timed --again             # times on a quiet machine

Results are kept in build/dynamics.jsonl, and what is there is not computed again, unless --again
says so. Prints Markdown; --write puts it, and the picture, into docs/. Needs SGLB_DATA. One thread.
"""

import argparse
import shlex
import sys
import time
from functools import cache
from pathlib import Path

from benchmarks import machine
from benchmarks.dynamics import costs, descent, draws, report
from benchmarks.dynamics.problems import PROBLEMS
from benchmarks.uncertainty.results import Job, Results

PARTS = ("single", "frozen", "greedy", "choice", "costs", "descent", "timed", "long")
# Steps of a turn when steps are timed.
N_FROZEN, N_GREEDY, N_DESCENT = 200, 40, 200
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
    add("--again", action="store_true", help="compute what is there again")
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


def steppers(options, results):
    """Workload -> a function that makes steppers by their names, and steps of a turn."""
    workloads = {}
    for table in options.tables:
        for part, methods, rule, n_steps in (
            ("frozen", draws.frozen_methods, None, N_FROZEN),
            ("greedy", draws.greedy_methods, draws.greedy_rule, N_GREEDY),
        ):

            def make(table=table, methods=methods, rule=rule):
                posterior = posterior_of(table)
                return {
                    name: draws.stepper(posterior, sampler, rule and rule())
                    for name, (sampler, _) in methods(table, posterior.shrink_rate).items()
                }

            workloads[f"{table}, {part}"] = (make, n_steps)
    chosen = descent.chosen(results)
    for problem in options.problems if chosen else ():

        def make(problem=problem):
            return {name: descent.stepper(problem, chosen[name]) for name in chosen}

        workloads[problem] = (make, N_DESCENT)
    return workloads


def costs_work(options, results):
    """Processor time of a step, of all methods of a workload in turn."""
    for workload, (make, n_steps) in steppers(options, results).items():
        measured = cache(lambda make=make, n=n_steps: costs.in_turns(make(), n))
        for name in methods_of(workload):
            yield Job("costs", workload, 0, name), lambda m=measured, name=name: m()[name]


def methods_of(workload):
    if workload in PROBLEMS:
        return descent.METHODS
    table, part = workload.split(", ")
    methods = draws.frozen_methods if part == "frozen" else draws.greedy_methods
    return methods(table, 1e-9)


def descent_work(options, results):
    chosen = descent.chosen(results)
    for seed in range(options.seeds):
        for problem in options.problems:
            for method, name in chosen.items():
                arguments = (problem, name, seed)
                yield Job("descent", problem, seed, method), lambda a=arguments: descent.run(*a)


def timed_work(options, results):
    """The same with as many steps as take the time of plain boosting."""
    chosen = descent.chosen(results)
    for problem in options.problems:
        seconds = costs.of(results, problem)
        for seed in range(options.seeds) if set(seconds) >= set(chosen) else ():
            for method, name in chosen.items():
                arguments = (problem, name, seed, seconds["plain"] / seconds[method])
                yield Job("timed", problem, seed, method), lambda a=arguments: descent.run(*a)


def long_work(options, results):
    """The same with many more steps."""
    chosen = descent.chosen(results)
    for seed in range(options.seeds):
        for problem in options.problems:
            for method in descent.LONG_METHODS if chosen else ():
                arguments = (problem, chosen[method], seed, descent.LONG)
                yield Job("long", problem, seed, method), lambda a=arguments: descent.run(*a)


WORK = {
    "single": single_work,
    "frozen": frozen_work,
    "greedy": greedy_work,
    "choice": choice_work,
    "costs": costs_work,
    "descent": descent_work,
    "timed": timed_work,
    "long": long_work,
}


def run(options, results):
    """Compute what is missing."""
    commit = machine.commit()
    known = set() if options.again else set(results.done)
    for part in options.parts:
        for job, work in WORK[part](options, results):
            if job in known:
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
