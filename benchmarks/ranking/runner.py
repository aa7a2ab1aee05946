"""Rankings of sglb beside those of other libraries.

    python -m benchmarks.ranking                               # everything that is not done yet
    python -m benchmarks.ranking --parts tune,test --sets mq2008 --rankers "sglb,catboost Yeti"
    python -m benchmarks.ranking --read build/*.jsonl --write  # runs nothing

Results are kept in build/ranking.jsonl, and what is there is not computed again: once tuned, a
setting stays. Prints Markdown; --write puts it into docs/ranking.md. Needs SGLB_DATA. Every fit has
one thread.
"""

import argparse
import shlex
import sys
import time
import traceback
import warnings
from functools import cache
from pathlib import Path

from benchmarks import machine
from benchmarks.ranking import chains, report, times, tuning
from benchmarks.ranking.comparison import frozen
from benchmarks.ranking.methods import METHODS, installed, variants
from benchmarks.ranking.sets import SETS, load
from benchmarks.schedule import in_turn
from benchmarks.uncertainty.results import Job, Results

PARTS = ("tune", "test", "defaults", "length", "langevin", "long", "matching", "times")
MATCHING_SETS = ("yandex_relevance", "mq2008")
STOCHASTIC = "sglb stochastic_rank"
read_set = cache(load)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ranking", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--parts", default=",".join(PARTS), help="comma-separated (%(default)s)")
    add("--sets", default=",".join(SETS), help="comma-separated (%(default)s)")
    add("--rankers", default=",".join(METHODS), help="how their names begin (%(default)s)")
    add("--results", type=Path, default=machine.REPOSITORY / "build" / "ranking.jsonl")
    add("--read", type=Path, nargs="+", metavar="FILE", help="report these, run nothing")
    add("--write", action="store_true", help="put the report into docs/ranking.md")
    options = parser.parse_args(arguments)
    for name, allowed in (("parts", PARTS), ("sets", SETS)):
        setattr(options, name, getattr(options, name).split(","))
        for value in getattr(options, name):
            if value not in allowed:
                parser.error(f"{value!r} is not one of {', '.join(allowed)}")
    options.rankers = options.rankers.split(",")
    names = [variant for _, variant in variants()]
    for begin in options.rankers:
        if not any(name.startswith(begin) for name in names):
            parser.error(f"no ranker begins with {begin!r}; there are {', '.join(names)}")
    return options


def rankers(options):
    """Names of the chosen rankers whose libraries are installed."""
    names = [variant for _, variant in variants(n for n in METHODS if installed(n))]
    return [name for name in names if name.startswith(tuple(options.rankers))]


def tune_work(options, results):
    """(jobs, work): what a call answers, and the function that computes it."""
    for name in options.sets:
        for variant in rankers(options):
            arguments = (name, variant, read_set(name))
            yield [Job("tune", name, 0, variant)], lambda a=arguments: {a[1]: tuning.tune(*a)}


def test_work(options, results):
    for name in options.sets:
        for variant in rankers(options):
            setting = frozen(results, name, variant)
            if setting is not None:
                arguments = (variant, read_set(name), setting)
                yield [Job("test", name, 0, variant)], lambda a=arguments: {a[0]: tuning.score(*a)}


def defaults_work(options, results):
    for seed in range(tuning.DEFAULT_SEEDS):
        for name in options.sets:
            for variant in rankers(options):
                if variant not in tuning.DEFAULTS or (seed and variant.startswith("catboost")):
                    continue  # 1,000 trees take minutes: one seed
                arguments = (variant, read_set(name), seed)
                yield (
                    [Job("defaults", name, seed, variant)],
                    lambda a=arguments: {a[0]: tuning.default(*a)},
                )


def length_work(options, results):
    rules = [*(f"{count} trees" for count in chains.LENGTHS), "automatic"]
    for name in options.sets:
        for fold in range(chains.FOLDS):
            jobs = [Job("length", name, fold, rule) for rule in rules]
            arguments = (read_set(name), fold)
            yield jobs, lambda a=arguments: chains.length(*a)


def langevin_work(options, results):
    for name in options.sets:
        setting = frozen(results, name, chains.OWN)
        for seed in range(chains.LANGEVIN_SEEDS if setting else 0):
            jobs = [Job("langevin", name, seed, sampler) for sampler in ("langevin", "plain")]
            arguments = (read_set(name), setting, seed)
            yield jobs, lambda a=arguments: chains.langevin(*a)


def long_work(options, results):
    for name in options.sets:
        for seed in range(chains.LANGEVIN_SEEDS):
            jobs = [Job("long", name, seed, sampler) for sampler in ("langevin", "plain")]
            arguments = (read_set(name), chains.DEFAULT, seed)
            yield jobs, lambda a=arguments: chains.langevin(*a)


def matching_work(options, results):
    for name in (name for name in options.sets if name in MATCHING_SETS):
        setting = frozen(results, name, STOCHASTIC)
        for metric in chains.METRICS if setting else ():
            arguments = (read_set(name), setting, metric)
            yield (
                [Job("matching", name, 0, metric)],
                lambda a=arguments: {a[2]: chains.matching(*a)},
            )


def times_work(options, results):
    if times.SET not in options.sets:
        return
    for repeat in range(times.REPEATS):
        for variant in in_turn(rankers(options), repeat):
            arguments = (variant, read_set(times.SET), repeat)
            yield (
                [Job("times", times.SET, repeat, variant)],
                lambda a=arguments: {a[0]: times.measure(*a)},
            )


WORK = {
    "tune": tune_work,
    "test": test_work,
    "defaults": defaults_work,
    "length": length_work,
    "langevin": langevin_work,
    "long": long_work,
    "matching": matching_work,
    "times": times_work,
}


def run(options, results):
    """Compute what is missing; what fails is kept with its message."""
    commit = machine.commit()
    for part in options.parts:
        for jobs, work in WORK[part](options, results):
            if all(job in results.done for job in jobs):
                continue
            start = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    measured = work()
            except Exception as error:
                traceback.print_exc()
                measured = {
                    job.method: {"error": f"{type(error).__name__}: {error}"} for job in jobs
                }
            for job in jobs:
                results.add(job, measured[job.method] | {"commit": commit})
            seconds = time.perf_counter() - start
            print(*jobs[0], f"{seconds:.1f} s", file=sys.stderr, flush=True)


def main(arguments=None):
    options = parse(arguments)
    if options.read is None:
        results = Results.resume(options.results)
        results.begin("python -m benchmarks.ranking " + shlex.join(sys.argv[1:]))
        run(options, results)
    else:
        results = Results.read(*options.read)
    text = report.markdown(results)
    print(text)
    if options.write:
        report.write(text)
