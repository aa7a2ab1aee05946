"""The uncertainty of sglb beside that of other libraries.

    python -m benchmarks.uncertainty                          # everything that is not done yet
    python -m benchmarks.uncertainty --parts regression --sets uci_boston,uci_yacht --splits 5
    python -m benchmarks.uncertainty --read build/*.jsonl --write    # runs nothing

Results are kept in build/uncertainty.jsonl, and what is there is not computed again. Prints
Markdown; --write puts it into docs/uncertainty_measured.md. Needs SGLB_DATA. Methods run one
after the other in this process, another one first in each split. Times are seconds of the
processor, by default of one thread: work of others on the machine hardly counts.
"""

import argparse
import shlex
import sys
import time
import traceback
import warnings
from pathlib import Path

from benchmarks import machine
from benchmarks.schedule import in_turn
from benchmarks.uncertainty import classes, known, regression, report, times
from benchmarks.uncertainty.goals import SPLITS
from benchmarks.uncertainty.methods import METHODS, get_method, installed
from benchmarks.uncertainty.results import Job, Results

PARTS = ("regression", "classes", "known", "times")
SIMULATIONS = 20
SIZES = (1000, 5000)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.uncertainty", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--parts", default=",".join(PARTS), help="comma-separated (%(default)s)")
    add("--sets", help="comma-separated; without it, all of each part")
    add("--splits", type=int, help="of each set; without it, what is usual for its size")
    add("--methods", help="comma-separated; without it, all that are installed")
    add("--threads", type=int, default=1, help="of each fit (%(default)s)")
    add("--results", type=Path, default=machine.REPOSITORY / "build" / "uncertainty.jsonl")
    add("--read", type=Path, nargs="+", metavar="FILE", help="report these, run nothing")
    add("--write", action="store_true", help="put the report into docs/uncertainty_measured.md")
    options = parser.parse_args(arguments)
    options.parts = options.parts.split(",")
    options.sets = None if options.sets is None else options.sets.split(",")
    options.methods = list(METHODS) if options.methods is None else options.methods.split(",")
    for names, allowed in ((options.parts, PARTS), (options.methods, METHODS)):
        for name in names:
            if name not in allowed:
                parser.error(f"{name!r} is not one of {', '.join(allowed)}")
    return options


def regression_work(options):
    """(jobs, work): what one fit of a method answers, and the function that computes it.

    A split of every set before the next one, so that a stopped run has seen all sets.
    """
    methods = [name for name in options.methods if installed(name)]
    wanted = {
        name: options.splits or usual
        for name, usual in SPLITS.items()
        if options.sets is None or name in options.sets
    }
    for split in range(max(wanted.values(), default=0)):
        for name in (name for name in wanted if split < wanted[name]):
            X, y = regression.load(name)
            test = regression.is_test(name, len(y), split)
            for method in in_turn(methods, split):
                jobs = [Job("regression", name, split, v) for v in get_method(method).VARIANTS]
                arguments = (method, X, y, test, split, options.threads)
                yield jobs, lambda arguments=arguments: regression.measure(*arguments)


def classes_work(options):
    methods = [name for name in classes.MEASURES if name.split(",")[0] in options.methods]
    for split in range(options.splits or 1):
        for name in classes.TABLES:
            if options.sets is not None and name not in options.sets:
                continue
            for method in in_turn(methods, split):
                arguments = (name, split, method, options.threads, classes.other_table(name))
                yield (
                    [Job("classes", name, split, method)],
                    lambda arguments=arguments: {arguments[2]: classes.measure(*arguments)},
                )


def known_work(options):
    for size in SIZES:
        for seed in range(options.splits or SIMULATIONS):
            for task in known.TASKS:
                name = f"{task} {size}"
                if options.sets is not None and name.replace(" ", "_") not in options.sets:
                    continue
                plans = [f"{kind} {variance}" for kind, variance in known.PLANS]
                jobs = [
                    Job("known", name, seed, plan)
                    for plan in plans
                    if task == "classes" or not plan.endswith("auto")
                ]
                arguments = (task, size, seed, options.threads)
                yield jobs, lambda arguments=arguments: known.measure(*arguments)


def times_work(options):
    for repeat in range(options.splits or times.REPEATS):
        for kind, n_rows in times.JOBS:
            if kind == "ngboost" and not installed("ngboost"):
                continue
            arguments = (n_rows, repeat, options.threads)
            yield (
                [Job("times", f"{n_rows}", repeat, kind)],
                lambda kind=kind, arguments=arguments: {kind: times.TIMES[kind](*arguments)},
            )


WORK = {
    "regression": regression_work,
    "classes": classes_work,
    "known": known_work,
    "times": times_work,
}


def run(parts, options, results):
    """Compute what is missing; what fails is kept with its message."""
    commit = machine.commit()
    for part in parts:
        for jobs, work in WORK[part](options):
            if all(job in results.done for job in jobs):
                continue
            start = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result = work()
            except Exception as error:
                traceback.print_exc()
                result = {job.method: {"error": f"{type(error).__name__}: {error}"} for job in jobs}
            for job in jobs:
                results.add(job, result[job.method] | {"commit": commit})
            seconds = time.perf_counter() - start
            print(*jobs[0], f"{seconds:.1f} s", file=sys.stderr, flush=True)


def main(arguments=None):
    options = parse(arguments)
    if options.read is None:
        results = Results.resume(options.results)
        results.begin("python -m benchmarks.uncertainty " + shlex.join(sys.argv[1:]))
        run(options.parts, options, results)
    else:
        results = Results.read(*options.read)
    text = report.markdown(results)
    print(text)
    if options.write:
        report.write(text)
