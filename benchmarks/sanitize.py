"""The tests of the core under a sanitizer of the compiler: out of bounds, undefined, racing.

    python -m benchmarks.sanitize [address|thread] [ARGUMENTS OF PYTEST ...]

`address` is AddressSanitizer with UndefinedBehaviorSanitizer, `thread` ThreadSanitizer. The core is
built in build/sanitize and imported by an interpreter there; the first report fails its test.
"""

import os
import subprocess
import sys

from benchmarks.kernels.build import NotReadyError, run
from benchmarks.machine import REPOSITORY
from benchmarks.variants import build_core, make_interpreter

FOLDER = REPOSITORY / "build" / "sanitize"
SANITIZERS = {"address": "address,undefined", "thread": "thread"}
# The loader picks clones of functions before ThreadSanitizer is ready for any code of ours.
BUILDS = {"address": (), "thread": ("-DSGLB_BASELINE=ON",)}
RUNTIMES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
OPTIONS = {
    # Python keeps memory until it ends; the core itself frees what it allocates.
    "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
# What calls kernels directly, or from several threads.
TESTS = {
    "address": (
        "bins", "categories", "elementary", "frozen_kernels", "grow", "infinity", "leaf_paths",
        "leaves", "links", "losses", "noise", "parallel", "predict", "quantise", "ranking_kernels",
        "sample", "search", "slopes", "sums", "training_codes", "trees", "uncertainty",
    ),
    # Nothing that imports polars or CatBoost, which do not start with ThreadSanitizer.
    "thread": (
        "parallel", "threads", "chains_together", "fits", "shards", "predict", "ranking_kernels",
        "ranking_losses", "ranking_shards", "sums", "sample",
    ),
}  # fmt: skip
# Limits of the address space leave no room for a sanitizer's shadow memory, and what is timed takes
# several times as long; a process that forks while it has threads is beyond ThreadSanitizer.
LEFT_OUT = {
    "address": "not exception_of_a_task and not half_a_second and not let_other",
    "thread": "not exception_of_a_task and not fork and not ctrl_c and not let_other",
}


def main(sanitizer="address", *arguments):
    if sanitizer not in SANITIZERS:
        raise NotReadyError(f"{sanitizer}: not one of {', '.join(SANITIZERS)}")
    folder = FOLDER / sanitizer
    build_type = "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1", "-DSGLB_OPTIMISE=-O1"
    sanitize = f"-DSGLB_SANITIZE={SANITIZERS[sanitizer]}"
    core = build_core(REPOSITORY, folder / "core", *build_type, *BUILDS[sanitizer], sanitize)
    runtimes = [run("c++", f"-print-file-name={name}").strip() for name in RUNTIMES[sanitizer]]
    os.environ |= OPTIONS | {"LD_PRELOAD": " ".join(runtimes)}
    python = make_interpreter(folder, REPOSITORY / "src" / "sglb", core)
    chosen = arguments or [
        *(str(REPOSITORY / "tests" / f"test_{name}.py") for name in TESTS[sanitizer]),
        *("-k", LEFT_OUT[sanitizer]),
    ]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
    return subprocess.run(command, cwd=REPOSITORY).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except NotReadyError as error:
        sys.exit(str(error))
