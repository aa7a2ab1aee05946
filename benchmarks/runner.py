"""Every library on every problem, each in a process of its own, in turn and repeated.

    python -m benchmarks [--quick] [--problems a,b] [--libraries c,d] [--repeats 3] [--threads 2]

prints Markdown; --write puts it into docs/benchmarks.md, with a figure beside it.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine, report
from benchmarks.peers import PEERS, get_peer, version
from benchmarks.problems import PROBLEMS, get_problem
from benchmarks.records import Records, Run
from benchmarks.schedule import (
    QUICK_LIBRARIES,
    QUICK_PROBLEMS,
    again,
    entrants,
    in_turn,
)

REPOSITORY = Path(__file__).parent.parent
# Thread pools that no peer's own parameter reaches (OpenMP in predict, Rayon, BLAS, Numba).
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def parse(arguments):
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="sglb and its peers on the same work.",
        epilog=f"Problems: {', '.join(PROBLEMS)}. Libraries: {', '.join(PEERS)}.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="small problems, few libraries; under three minutes")
    add("--problems", help="comma-separated; without it, all")
    add("--libraries", help="comma-separated; without it, all that are installed")
    add("--repeats", type=int, help="processes each (3; of short fits 9, of slow ones fewer)")
    add(
        "--enough", type=float, help="seconds after which one has none more (20; without --repeats)"
    )
    add("--threads", type=int, default=cores, help=f"of each library ({cores})")
    add("--write", action="store_true", help="put report and figure into the output folder")
    add("--output", type=Path, default=REPOSITORY / "docs", metavar="FOLDER", help="(docs)")
    add("--results", type=Path, metavar="FILE", help="append each result as a line of JSON")
    add("--read", type=Path, metavar="FILE", help="report the results in FILE, run nothing")
    add("--rows", type=int, help="cut every problem to so many rows, to try things out")
    add("--trees", type=int, help="and to so many trees")
    options = parser.parse_args(arguments)

    def names(stated, quick, known, kind):
        if stated is None:
            return list(quick if options.quick else known)
        for name in stated.split(","):
            if name not in known:
                parser.error(f"no {kind} {name!r}; there are {', '.join(known)}")
        return stated.split(",")

    options.problems = names(options.problems, QUICK_PROBLEMS, PROBLEMS, "problem")
    options.libraries = names(options.libraries, QUICK_LIBRARIES, PEERS, "library")
    options.repeats = options.repeats or (2 if options.quick else None)
    return options


def run_one(name, library, repeat, options):
    """Numbers of one library on one problem, or {"error": what happened}."""
    problem = get_problem(name)
    threads = problem.threads or options.threads
    if problem.measure == "imports":
        script = str(Path(__file__).parent / "import_time.py")
        call = [sys.executable, "-P", script, get_peer(library).IMPORT, problem.setup]
    else:
        request = {"problem": name, "library": library, "threads": threads, "seed": repeat}
        request |= {"rows": options.rows, "trees": options.trees}
        call = [sys.executable, "-m", "benchmarks.worker", json.dumps(request)]
    environment = os.environ | {variable: str(threads) for variable in THREAD_VARIABLES}
    try:
        done = subprocess.run(
            call,
            capture_output=True,
            text=True,
            timeout=problem.timeout,
            cwd=REPOSITORY,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {problem.timeout:.0f} s"}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"error": f"exit code {done.returncode}: {last}"}
    return json.loads(done.stdout.splitlines()[-1])


def run(options, records, console):
    """Fill the records, problem by problem; within one the libraries take turns."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        for position, name in enumerate(options.problems):
            problem = get_problem(name)
            participants = entrants(problem, options.libraries, records.results)
            label = f"{name} ({position + 1} of {len(options.problems)})"
            repeats = options.repeats or problem.repeats
            task = progress.add_task(label, total=repeats * len(participants))
            spent, failed = dict.fromkeys(participants, 0.0), set()
            for repeat in range(repeats):
                for library in in_turn(participants, repeat):
                    progress.update(task, description=f"{label}: {library}")
                    if library not in failed and again(
                        spent[library], options.repeats, options.enough
                    ):
                        start = time.perf_counter()
                        with machine.Others() as others:
                            result = run_one(name, library, repeat, options)
                        spent[library] += time.perf_counter() - start
                        records.add(name, library, result | {"others": others.cores})
                        message = result.get("error") or f"{result['seconds']:.4g} s"
                        if others.cores > report.QUIET:
                            message += f", while others took {others.cores:.1f} cores"
                        progress.console.print(f"{name} {library}: {message}", soft_wrap=True)
                        if "error" in result:  # it would fail, or wait for a timeout, again
                            failed.add(library)
                    progress.advance(task)
            progress.remove_task(task)


def _what(arguments):
    """The arguments without where results are kept, which is nobody else's business."""
    kept, skip = [], False
    for argument in arguments:
        if not skip and not argument.startswith("--results"):
            kept.append(argument)
        skip = argument == "--results"
    return kept


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    console = Console(stderr=True, highlight=False)
    missing = [name for name in options.libraries if version(name) is None]
    if options.read is not None:
        records = Records.read(options.read)
    else:
        if missing:
            console.print(f"not installed, left out: {', '.join(missing)}")
            options.libraries = [name for name in options.libraries if name not in missing]
        command = shlex.join(["python", "-m", "benchmarks", *_what(arguments)])
        records = Records(options.results)
        where = machine.facts(get_peer(name).PACKAGE for name in options.libraries)
        records.begin(Run(command, options.threads, options.rows, options.trees, where))
        run(options, records, console)
    text = report.markdown(records, missing)
    print(text)
    if options.write:
        report.write(text, records, options.output)
        console.print(f"written to {options.output}")
