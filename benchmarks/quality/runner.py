"""Every library on every split of every table, each in a process of its own.

    python -m benchmarks.quality [--tables a,b] [--libraries c,d] [--seeds 5] [--results FILE]

prints Markdown; --write puts it into docs/quality.md, with figures beside it. With --results a
run that was stopped goes on where it was: what is in the file is not computed again.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from benchmarks import machine
from benchmarks.quality import report
from benchmarks.quality.libraries import LIBRARIES, OWN, get_library, version
from benchmarks.quality.protocol import MAX_ROUNDS
from benchmarks.quality.results import Conditions, Job, Results, Run
from benchmarks.quality.work import all_tables, known_tables, progress_bar, work
from benchmarks.runner import THREAD_VARIABLES
from benchmarks.schedule import in_turn

SEEDS = 5
SECONDS = 600.0


def parse(arguments):
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description="Default quality of sglb and its peers on real tables.",
        epilog=f"Libraries: {', '.join(LIBRARIES)}. Tables: *.parquet of the folder SGLB_DATA.",
    )
    add = parser.add_argument
    add("--tables", help="comma-separated; without it, all but the ranking ones")
    add("--libraries", help="comma-separated; without it, all that are installed")
    add("--seeds", type=int, default=SEEDS, help=f"splits of each table ({SEEDS})")
    add("--max-rows", type=int, help="cut larger tables to so many rows")
    add("--rounds", type=int, default=MAX_ROUNDS, help=f"at most ({MAX_ROUNDS})")
    add("--threads", type=int, default=cores, help=f"of each library ({cores})")
    add("--time-limit", type=float, default=SECONDS, help=f"seconds a process ({SECONDS:g})")
    add("--results", type=Path, metavar="FILE", help="keep results here, and go on from there")
    add("--retry-failed", action="store_true", help="compute again what failed")
    add("--read", type=Path, nargs="+", metavar="FILE", help="report these, run nothing")
    add("--write", action="store_true", help="put report and figures into the output folder")
    add("--output", type=Path, default=machine.REPOSITORY / "docs", metavar="FOLDER", help="(docs)")
    options = parser.parse_args(arguments)
    for name in ("seeds", "max_rows", "rounds", "threads", "time_limit"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0, not {value}")
    if options.read is not None:
        return options

    def names(stated, default, known, kind):
        if stated is None:
            return list(default)
        for name in stated.split(","):
            if name not in known:
                parser.error(f"no {kind} {name!r}; there are {', '.join(known)}")
        return stated.split(",")

    try:
        options.tables = names(options.tables, all_tables(), known_tables(), "table")
    except OSError as error:
        parser.error(str(error))
    if not options.tables:
        parser.error("no tables: let SGLB_DATA name a folder of Parquet files")
    options.libraries = names(options.libraries, LIBRARIES, LIBRARIES, "library")
    return options


def jobs_of(options):
    """A split of every table before the next one, so that a stopped run has seen all tables."""
    return [
        Job(table, seed, library)
        for seed in range(options.seeds)
        for table in options.tables
        for library in in_turn(options.libraries, seed)
    ]


def compute(job, options):
    """Numbers of one job, or {"error": what happened}; "late" if the time was over."""
    request = job._asdict() | {
        "threads": options.threads,
        "max_rounds": options.rounds,
        "max_rows": options.max_rows,
    }
    call = [sys.executable, "-m", "benchmarks.quality.worker", json.dumps(request)]
    environment = os.environ | {name: str(options.threads) for name in THREAD_VARIABLES}
    try:
        done = subprocess.run(
            call,
            capture_output=True,
            text=True,
            timeout=options.time_limit,
            cwd=machine.REPOSITORY,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {options.time_limit:g} s", "late": True}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    return json.loads(done.stdout.splitlines()[-1])


def missing(jobs, done, retry_failed):
    """The jobs without a result."""
    return [job for job in jobs if job not in done or (retry_failed and "error" in done[job])]


def run(jobs, results, compute, console, weigh=lambda table: 1.0):
    """Compute the jobs and keep each result; a table that takes one seed too long is given up."""
    late = {job[::2]: job.seed for job, result in results.done.items() if "late" in result}
    late = {pair: seed for pair, seed in late.items() if Job(pair[0], seed, pair[1]) not in jobs}
    commit = machine.commit()
    with progress_bar(console) as progress:
        task = progress.add_task("", total=sum(weigh(job.table) for job in jobs))
        for job in jobs:
            label = f"{job.table}, seed {job.seed}: {job.library}"
            progress.update(task, description=label)
            pair = (job.table, job.library)
            if pair in late:
                result = {"error": f"not tried: seed {late[pair]} took too long"}
            else:
                with machine.Others() as others:
                    result = compute(job)
                result |= {"others": others.cores, "commit": commit}
            if "late" in result:
                late[pair] = job.seed
            results.add(job, result)
            message = (
                result.get("error") or f"{result['loss']:.5g} in {result['fit_seconds']:.3g} s"
            )
            progress.console.print(f"{label}: {message}", soft_wrap=True)
            progress.advance(task, weigh(job.table))


def _command(arguments):
    """What was typed, without the folders of this machine."""
    message = [Path(word).name if "/" in word else word for word in arguments]
    return shlex.join(["python", "-m", "benchmarks.quality", *message])


def measure(options, arguments, console):
    """The results of a run, old and new."""
    absent = [name for name in options.libraries if version(name) is None]
    if absent:
        console.print(f"not installed, left out: {', '.join(absent)}")
        options.libraries = [name for name in options.libraries if name not in absent]
    results = Results() if options.results is None else Results.resume(options.results)
    packages = [get_library(name).PACKAGE for name in options.libraries]
    results.begin(
        Run(
            _command(arguments),
            Conditions(options.threads, options.rounds, max_rows=options.max_rows),
            machine.describe(packages),
        )
    )
    jobs = jobs_of(options)
    left = missing(jobs, results.done, options.retry_failed)
    if len(left) < len(jobs):
        console.print(f"{len(jobs) - len(left)} results are there and are not computed again")
        old = {results.done[job].get("commit") for job in jobs if job in results.done}
        if OWN in options.libraries and old - {machine.commit(), None}:
            console.print(f"some of them are of commit {', '.join(sorted(old - {None}))}")
    run(
        left,
        results,
        lambda job: compute(job, options),
        console,
        lambda table: work(table, options.max_rows),
    )
    return results


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    console = Console(stderr=True, highlight=False)
    try:
        if options.read is not None:
            results = Results.read(*options.read)
        else:
            results = measure(options, arguments, console)
    except (ValueError, OSError) as error:
        sys.exit(f"python -m benchmarks.quality: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on from here" if options.results else "stopped")
    text = report.markdown(results)
    print(text)
    if options.write:
        report.write(text, results, options.output)
        console.print(f"written to {options.output}")
