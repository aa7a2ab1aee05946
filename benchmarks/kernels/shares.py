"""Where the time of a fit goes: the share of each kernel, sampled by perf.

    python -m benchmarks.kernels.shares rows_10k [--threads 1] [--seconds 5] [--functions 10]

Fits a problem of `benchmarks` again and again and lets perf look a thousand times a second. Shares
are of the processor time of all threads together; "waiting" is threads that spin for work,
"outside" the interpreter, NumPy and the system. Needs perf and the right to use it
(kernel.perf_event_paranoid of 2 or less).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.kernels import build, profile
from benchmarks.kernels.driver import load_core
from benchmarks.machine import REPOSITORY
from benchmarks.peers import get_peer
from benchmarks.problems import PROBLEMS, get_problem

INSTALL = "perf is not installed: apt-get install linux-perf (or your system's package of it)"
OUTSIDE = "outside"
WAITING = "Pool::"  # threads without work
# Of perf's report: percent, object, [.] for user or [k] for system, function.
LINE = re.compile(r"\s*(\d+\.\d+)%\s+(\S+)\s+\[[.k]\]\s+(.*?)(?:\s{2,}.*)?$")


def fit_for(seconds, name, threads, control):
    """Fit a problem until the time is over; how many fits, and the time of one."""
    problem, peer = get_problem(name), get_peer("sglb_langevin")
    data, settings = problem.make(), problem.settings(threads, 0)
    peer.fit(data.X[:200], data.y[:200], replace(settings, n_trees=2))
    Path(control).write_text("enable\n")
    time.sleep(0.1)  # perf reads it when it finds the time
    n_fits, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        peer.fit(data.X, data.y, settings)
        n_fits += 1
    return {
        "fits": n_fits,
        "seconds": (time.perf_counter() - start) / n_fits,
        "cpu_seconds": (time.process_time() - cpu) / n_fits,
    }


def read(report):
    """Percent by kernel and by function, of perf's report."""
    kernels, functions = Counter(), Counter()
    for line in report.splitlines():
        if result := LINE.match(line):
            share, module, function = float(result[1]), result[2], result[3]
            inside = module.startswith("_core")
            name = profile.short(function) if inside else f"{OUTSIDE}: {function}"
            functions[name] += share
            kind = profile.kernel(function) if inside else OUTSIDE
            kernels["waiting" if inside and name.startswith(WAITING) else kind] += share
    return kernels, functions


def measure(options):
    """What `fit_for` found, and the shares."""
    perf = shutil.which("perf")
    if perf is None:
        raise build.NotReadyError(INSTALL)
    core = build.build().core
    with tempfile.TemporaryDirectory() as folder:
        file, control = str(Path(folder) / "perf.data"), str(Path(folder) / "control")
        os.mkfifo(control)
        call = [perf, "record", "-q", "-e", "cpu-clock", "-F", "1000", "-o", file]
        call += ["--delay", "-1", "--control", f"fifo:{control}", "--"]
        call += [sys.executable, "-m", "benchmarks.kernels.shares", options.problem]
        call += ["--threads", str(options.threads), "--seconds", str(options.seconds)]
        result = json.loads(_run([*call, "--core", str(core), "--control", control]))
        sort = ["--sort", "dso,symbol", "--stdio", "--no-children", "--percent-limit", "0"]
        return result, *read(_run([perf, "report", "-i", file, *sort]))


def _run(call):
    done = subprocess.run(call, capture_output=True, text=True, cwd=REPOSITORY)
    if done.returncode != 0:
        message = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise build.NotReadyError(f"{' '.join(call[:2])} failed: {message}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("problem", choices=[name for name in PROBLEMS if get_problem(name).measure == "fit"])
    add("--threads", type=int, default=1)
    add("--seconds", type=float, default=5.0, help="of fitting (5)")
    add("--functions", type=int, default=0, help="list so many functions, too")
    add("--core", help=argparse.SUPPRESS)  # of the process that perf looks at
    add("--control", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.core:
        load_core(options.core)
        result = fit_for(options.seconds, options.problem, options.threads, options.control)
        print(json.dumps(result))
        return
    try:
        result, kernels, functions = measure(options)
    except build.NotReadyError as error:
        sys.exit(str(error))
    print(
        f"{options.problem}, {options.threads} thread(s): {result['fits']} fits of"
        f" {result['seconds']:.4g} s, {result['cpu_seconds']:.4g} s of processor time\n"
    )
    for title, shares in (("kernel", kernels), ("function", functions)):
        wanted = shares.most_common(options.functions if title == "function" else None)
        if wanted:
            print(f"| {title} | share, % | ms a fit |\n|---|--:|--:|")
        for name, share in wanted:
            print(f"| {name} | {share:.1f} | {10.0 * share * result['cpu_seconds']:.4g} |")
        print()


if __name__ == "__main__":
    main()
