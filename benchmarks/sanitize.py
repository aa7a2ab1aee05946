"""The tests of the core under a sanitizer of the compiler: out of bounds, undefined, racing.

    python -m benchmarks.sanitize [address|thread|quick] [ARGUMENTS OF PYTEST ...]

`address` is AddressSanitizer with UndefinedBehaviorSanitizer, `thread` ThreadSanitizer. The core is
built in build/sanitize and imported by an interpreter there; the first report fails its test.
`quick` is a minute of `address` for every run of the suite: some tests, bindings as they are, and a
message in place of a failure where the compiler has no sanitizers.
"""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.kernels.build import NotReadyError, run
from benchmarks.machine import REPOSITORY
from benchmarks.variants import build_core, make_interpreter

FOLDER = REPOSITORY / "build" / "sanitize"
MEMORY = "-fsanitize=address,undefined"
BUILDS = {
    "address": (
        "-DCMAKE_CXX_FLAGS=-O1", "-DSGLB_OPTIMISE=-O1", "-DSGLB_SANITIZE=address,undefined",
    ),
    # The loader picks clones of functions before ThreadSanitizer is ready for any code of ours.
    "thread": (
        "-DCMAKE_CXX_FLAGS=-O1", "-DSGLB_OPTIMISE=-O1", "-DSGLB_SANITIZE=thread",
        "-DSGLB_BASELINE=ON",
    ),
    # The options of the core's own files alone.
    "quick": (
        "-DCMAKE_CXX_FLAGS=-O0", f"-DSGLB_OPTIMISE=-O1;{MEMORY};-fno-omit-frame-pointer;-g1",
        f"-DCMAKE_MODULE_LINKER_FLAGS={MEMORY}", "-DSGLB_BASELINE=ON",
    ),
}  # fmt: skip
RUNTIMES = {
    "address": ("libasan.so", "libubsan.so"),
    "thread": ("libtsan.so",),
    "quick": ("libasan.so", "libubsan.so"),
}
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
        "leaf_steps", "leaves", "links", "losses", "many_rows", "metric_losses", "noise", "order",
        "parallel", "predict", "quantise", "ranking_kernels", "ranking_losses", "ranking_shards",
        "sample", "search", "shards", "code_rows", "slopes", "sums", "training_codes", "trees",
        "uncertainty",
    ),
    "quick": (
        "bins", "categories", "code_rows", "frozen_kernels", "infinity", "leaf_paths", "links",
        "many_rows", "noise", "order", "predict", "quantise", "ranking_kernels", "sample", "search",
        "shards", "slopes", "sums", "trees",
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
    # Those that add up many draws take a third of the time and touch nothing that others do not.
    "quick": (
        "not exception_of_a_task and not half_a_second and not let_other and not is_unbiased"
        " and not deepest_structure"
    ),
    "thread": "not exception_of_a_task and not fork and not ctrl_c and not let_other",
}


def main(sanitizer="address", *arguments):
    if sanitizer not in BUILDS:
        raise NotReadyError(f"{sanitizer}: not one of {', '.join(BUILDS)}")
    folder = FOLDER / sanitizer
    runtimes = [Path(run("c++", f"-print-file-name={n}").strip()) for n in RUNTIMES[sanitizer]]
    if not all(path.is_absolute() for path in runtimes):  # the compiler knows no such file
        missing = f"this compiler has no {' and '.join(RUNTIMES[sanitizer])}"
        if sanitizer != "quick":
            raise NotReadyError(missing)
        print(f"{missing}: the core is not tested under sanitizers")
        return 0
    build_type = "-DCMAKE_BUILD_TYPE=None"
    core = build_core(REPOSITORY, folder / "core", build_type, *BUILDS[sanitizer])
    os.environ |= OPTIONS | {"LD_PRELOAD": " ".join(map(str, runtimes))}
    python = make_interpreter(folder, REPOSITORY / "src" / "sglb", core)
    chosen = arguments or [
        *(str(REPOSITORY / "tests" / f"test_{name}.py") for name in TESTS[sanitizer]),
        *("-k", LEFT_OUT[sanitizer]),
    ]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
    if sanitizer == "quick":
        command += ["-n", "auto", "--dist", "worksteal"]
    return subprocess.run(command, cwd=REPOSITORY).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except NotReadyError as error:
        sys.exit(str(error))
