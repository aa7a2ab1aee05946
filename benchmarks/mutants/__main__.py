"""Put each bug into a copy of the tree and run the tests that must catch it.

    python -m benchmarks.mutants [--unchecked] [TEXT ...]   all, or those with a text in their line

The copy and its core, built at -O1, are kept in build/mutants; bugs in Python need no build. First
the tests run without a bug, unless `--unchecked`; they must pass. Ends with 1 if a bug survives.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

from benchmarks.kernels.build import NotReadyError
from benchmarks.machine import REPOSITORY
from benchmarks.mutants.mutants import MUTANTS
from benchmarks.variants import SITE, build_core, make_interpreter

FOLDER = REPOSITORY / "build" / "mutants"
TREE = FOLDER / "tree"
INSTALLED = next((SITE / "sglb").glob("_core*.so"))
# Seconds after which a test hangs, which is as good as a failure.
PATIENCE = 600


def copy_tree():
    """Bring the copy up to date; what differs becomes new, so that the core is built of it."""
    kept = [REPOSITORY / name for name in ("CMakeLists.txt", "pyproject.toml")]
    for folder in ("src", "tests"):
        files = (path for path in (REPOSITORY / folder).rglob("*") if path.is_file())
        kept += [path for path in files if "__pycache__" not in path.parts]
    targets = {TREE / path.relative_to(REPOSITORY): path for path in kept}
    for target in [path for path in TREE.rglob("*") if path.is_file()]:
        if target not in targets:
            target.unlink()
    for target, path in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != path.read_bytes():
            shutil.copyfile(path, target)


def build():
    options = ("-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1", "-DSGLB_OPTIMISE=-O1")
    return build_core(TREE, FOLDER / "core", *options)


def run_tests(python, tests):
    """Whether tests pass, and the last lines of what they print."""
    # A bug of the same length in the same second would go unnoticed.
    command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=TREE / "tests", capture_output=True, text=True, timeout=PATIENCE, env=env
        )
    except subprocess.TimeoutExpired:
        return False, "hangs"
    if done.returncode not in (0, 1, 2) and done.returncode > 0:
        raise NotReadyError(f"pytest cannot run {tests}:\n{done.stdout}{done.stderr}")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, failed[0] if failed else f"exit code {done.returncode}"


def try_mutant(python, mutant):
    """Whether a bug survives, and what caught it."""
    path = TREE / "src" / mutant.file
    original = path.read_text()
    is_core = mutant.file.startswith("core/")
    path.write_text(original.replace(mutant.old, mutant.new))
    try:
        if is_core:
            build()
        return run_tests(python, mutant.tests.split())
    finally:
        path.write_text(original)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants")
    parser.add_argument("--unchecked", action="store_true")
    parser.add_argument("texts", nargs="*", default=[""])
    return parser.parse_args(arguments)


def try_mutants(python, mutants, *, unchecked):
    """Print what becomes of each bug; return how many survive."""
    tests = sorted({test for mutant in mutants for test in mutant.tests.split()})
    passes, message = (True, "") if unchecked or not tests else run_tests(python, tests)
    if not passes:
        raise NotReadyError(f"tests fail without a bug: {message}")
    n_survivors = 0
    for number, mutant in enumerate(mutants, 1):
        begin = time.monotonic()
        survives, message = try_mutant(python, mutant)
        n_survivors += survives
        bug = f"{mutant.file}: {mutant.old.strip()!r} -> {mutant.new.strip()!r}"
        print(f"{number}/{len(mutants)} {'SURVIVES' if survives else 'caught'}  {bug}")
        print(f"    {message[:150]}  ({time.monotonic() - begin:.0f} s)", flush=True)
    return n_survivors


def main():
    options = parse(sys.argv[1:])
    chosen = [
        mutant
        for mutant in MUTANTS
        if any(text in f"{mutant.file} {mutant.old}" for text in options.texts)
    ]
    copy_tree()
    n_survivors = 0
    for is_core in (False, True):
        mutants = [mutant for mutant in chosen if mutant.file.startswith("core/") == is_core]
        if mutants:
            core = build() if is_core else INSTALLED
            python = make_interpreter(FOLDER, TREE / "src" / "sglb", core)
            n_survivors += try_mutants(python, mutants, unchecked=options.unchecked)
    print(f"{len(chosen) - n_survivors} of {len(chosen)} bugs were caught")
    return 1 if n_survivors else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotReadyError as error:
        sys.exit(str(error))
