"""python -m benchmarks.kernels [--check] [--record] [--functions 10]

prints a table "recorded, now, change". --check ends with 1 if a kernel grew by more than 5 %, and
with 2 if that cannot be told; --record replaces the recorded counts.

Callgrind cannot run AVX-512 and says so to the program, so that the clones for AVX2 (x86-64-v3)
are counted on every machine that has it. Counts belong to a compiler, not to a machine.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.kernels import build, profile
from benchmarks.kernels.counts import ALLOWED, FILE, Counts, compare, large
from benchmarks.machine import REPOSITORY

INSTALL = "valgrind is not installed: apt-get install valgrind (or your system's package of it)"
SECONDS = 600


def measure():
    """Counts of this working copy, and the functions behind each entry."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise build.NotReadyError(INSTALL)
    built = build.build()
    with tempfile.TemporaryDirectory() as folder:
        call = [valgrind, "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no"]
        call += [f"--callgrind-out-file={folder}/profile"]
        call += [sys.executable, "-m", "benchmarks.kernels.driver", built.core, built.switch]
        # Hash seeds change the interpreter's way, and with it what lies where in memory.
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        done = subprocess.run(
            call, capture_output=True, text=True, cwd=REPOSITORY, env=environment, timeout=SECONDS
        )
        if done.returncode != 0:
            raise build.NotReadyError(f"the driver failed under valgrind:\n{done.stderr.strip()}")
        instructions, functions, clones = profile.total(sorted(Path(folder).glob("profile.*")))
    version = subprocess.run([valgrind, "--version"], capture_output=True, text=True)
    counts = Counts(built.compiler, version.stdout.strip(), sorted(clones), large(instructions))
    return counts, functions


def table(changes):
    yield f"{'kernel':<44}{'recorded':>14}{'now':>14}{'change':>10}"
    for change in changes:
        cells = ["" if count is None else f"{count:,}" for count in (change.recorded, change.now)]
        if change.recorded is None:
            message = "new"
        elif change.now is None:
            message = "gone"
        else:
            message = f"{100 * change.growth:+.1f} %"
        yield f"{change.name:<44}{cells[0]:>14}{cells[1]:>14}{message:>10}"


def top(functions, most):
    for label, counts in sorted(functions.items()):
        whole = counts.total()
        yield f"\n{label}: {whole:,}"
        for name, count in counts.most_common(most):
            yield f"  {count:>12,}  {100 * count / whole:5.1f} %  {name}"


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    add = parser.add_argument
    add("--check", action="store_true", help=f"fail on growth above {100 * ALLOWED:g} %%")
    add("--record", action="store_true", help="keep the new counts")
    add("--functions", type=int, metavar="N", help="the N heaviest functions of each entry")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    try:
        now, functions = measure()
    except (build.NotReadyError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return 2
    recorded = Counts.read(FILE) if FILE.exists() else None
    changes = compare(recorded.instructions if recorded else {}, now.instructions)
    print("\n".join(table(changes)))
    print(f"\n{now.compiler}; {now.valgrind}; clones run: {', '.join(now.clones) or 'default'}")
    if options.functions:
        print("\n".join(top(functions, options.functions)))
    others = recorded.differs_in(now) if recorded else []
    for reason in others:
        print(f"not comparable, record again: {reason}")
    if options.record:
        now.write(FILE)
        print(f"recorded in {FILE.relative_to(REPOSITORY)}")
        return 0
    if options.check and (others or recorded is None):
        print("nothing to check against: record with this compiler first")
        return 2
    grown = [change.name for change in changes if change.too_much]
    if options.check and grown:
        print(f"more than {100 * ALLOWED:g} % above the record: {', '.join(grown)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
