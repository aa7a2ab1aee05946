"""The same models from another compiler: its build of the core against the recorded digests.

    python -m benchmarks.compilers [clang++] [ARGUMENTS OF PYTEST ...]

The core is built in build/compilers and imported by an interpreter there.
"""

import subprocess
import sys

from benchmarks.kernels.build import NotReadyError
from benchmarks.machine import REPOSITORY
from benchmarks.variants import build_core, make_interpreter

FOLDER = REPOSITORY / "build" / "compilers"
# What compares with recorded bits or with a twin in NumPy.
TESTS = (
    *("fits", "golden", "elementary", "noise", "sums", "search", "grow", "predict"),
    "ranking_kernels",
)


def main(compiler="clang++", *arguments):
    folder = FOLDER / compiler
    core = build_core(REPOSITORY, folder / "core", f"-DCMAKE_CXX_COMPILER={compiler}")
    python = make_interpreter(folder, REPOSITORY / "src" / "sglb", core)
    chosen = arguments or [str(REPOSITORY / "tests" / f"test_{name}.py") for name in TESTS]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
    return subprocess.run(command, cwd=REPOSITORY).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except NotReadyError as error:
        sys.exit(str(error))
