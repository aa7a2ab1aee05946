"""Another commit of sglb and this one on the same work, in turn: is anything slower?

    python -m benchmarks.versions main~5                    # quick problems, rows_1m, custom_loss
    python -m benchmarks.versions v0.1 --problems stumps_1k --repeats 20

The other commit is checked out and installed once, under build/versions. Both run this tree's
benchmark code, a process at a time, base and head in alternating order. Printed are the seconds of
the fastest process of each and their ratio, with the ratio of the medians beside it: where both are
above 1.03, head is slower.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.machine import Others
from benchmarks.peers import PEERS
from benchmarks.problems import PROBLEMS, get_problem
from benchmarks.report import QUIET
from benchmarks.runner import REPOSITORY, THREAD_VARIABLES
from benchmarks.schedule import QUICK_PROBLEMS

DEFAULT_PROBLEMS = (*QUICK_PROBLEMS, "rows_1m", "custom_loss")
SLOWER = 1.03


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versions",
        description="Another commit of sglb against this tree.",
        epilog=f"Problems: {', '.join(PROBLEMS)}.",
    )
    add = parser.add_argument
    add("commit", help="what to compare with: anything that git knows")
    add("--problems", default=",".join(DEFAULT_PROBLEMS), help="comma-separated (%(default)s)")
    add("--libraries", default="sglb_langevin", help="forms of sglb (%(default)s)")
    add("--repeats", type=int, default=7, help="processes of each version (%(default)s)")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)), help="(%(default)s)")
    options = parser.parse_args(arguments)
    options.problems = options.problems.split(",")
    options.libraries = options.libraries.split(",")
    for names, known in ((options.problems, PROBLEMS), (options.libraries, PEERS)):
        for name in names:
            if name not in known:
                parser.error(f"{name!r} is not one of {', '.join(known)}")
    return options


def git(*arguments):
    done = subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def install(commit):
    """The interpreter of an environment with that commit of sglb; made once."""
    sha = git("rev-parse", "--verify", f"{commit}^{{commit}}")
    folder = REPOSITORY / "build" / "versions" / sha[:12]
    python = folder / "venv" / "bin" / "python"
    if (folder / "installed").exists():
        return python
    print(f"installing {commit} ({sha[:12]})", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(
        ["git", "archive", sha], cwd=REPOSITORY, check=True, capture_output=True
    )
    (folder / "source").mkdir(exist_ok=True)
    subprocess.run(["tar", "-x", "-C", folder / "source"], input=archive.stdout, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"], check=True)
    # Everything but sglb is that of the environment that this runs in.
    here = Path(sys.prefix) / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "scikit-build-core", "nanobind"], check=True)
    subprocess.run([*pip, "--no-deps", folder / "source"], check=True)
    (site,) = (folder / "venv" / "lib").glob("python3.*/site-packages")
    (site / "head.pth").write_text(f"{here}\n")
    (folder / "installed").touch()
    return python


def measure(python, problem, library, seed, threads):
    """Seconds of one fit, prediction or whatever the problem measures, in a new process."""
    known = get_problem(problem)
    threads = known.threads or threads
    request = {"problem": problem, "library": library, "threads": threads, "seed": seed}
    done = subprocess.run(
        [python, "-m", "benchmarks.worker", json.dumps(request)],
        cwd=REPOSITORY,
        env=os.environ | {variable: str(threads) for variable in THREAD_VARIABLES},
        timeout=known.timeout,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


def compare(base, problem, library, options):
    """A row of the table: seconds of both and their ratios."""
    seconds = {"base": [], "head": []}
    with Others() as others:
        for repeat in range(options.repeats):
            turn = [("base", base), ("head", sys.executable)]
            for name, python in turn if repeat % 2 else reversed(turn):
                seconds[name].append(measure(python, problem, library, repeat, options.threads))
    least = [min(values) for values in seconds.values()]
    ratios = (least[1] / least[0], median(seconds["head"]) / median(seconds["base"]))
    verdict = "slower" if min(ratios) > SLOWER else ""
    if others.cores > QUIET:
        verdict += f" (others took {others.cores:.1f} cores)"
    cells = [problem, library, *(f"{value:.4g}" for value in least)]
    return [*cells, *(f"{ratio:.3f}" for ratio in ratios), verdict.strip()]


def main(arguments=None):
    options = parse(arguments)
    base = install(options.commit)
    heads = ["problem", "library", "base s", "head s", "fastest", "median", ""]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    slower = 0
    for problem in options.problems:
        for library in options.libraries:
            row = compare(base, problem, library, options)
            slower += row[-1].startswith("slower")
            print(f"| {' | '.join(row)} |", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
