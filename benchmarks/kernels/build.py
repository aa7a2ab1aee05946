"""The extension with symbols, and the switch that turns counting on and off.

Same sources and flags as the installed extension; only the names of functions, which an installed
one is stripped of, are kept.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import REPOSITORY

FOLDER = REPOSITORY / "build" / "kernels"
# As in a release build; -g adds names and lines, not instructions.
FLAGS = "-O3 -DNDEBUG -g"


class NotReadyError(RuntimeError):
    """A tool that counting needs is missing, or a step of the build failed."""


class Built(NamedTuple):
    core: Path
    switch: Path
    compiler: str


def build():
    """Bring the extension and the switch up to date."""
    tool = cmake()
    FOLDER.mkdir(parents=True, exist_ok=True)
    run(
        tool,
        *("-S", REPOSITORY, "-B", FOLDER),
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={FLAGS}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    run(tool, "--build", FOLDER, "--target", "_core", "--parallel", "2")
    compiler = _compiler()
    switch = FOLDER / "switch.so"
    run(compiler, "-O2", "-shared", "-fPIC", Path(__file__).parent / "switch.cpp", "-o", switch)
    version = run(compiler, "--version").splitlines()[0]
    return Built(
        max(FOLDER.glob("_core*.so"), key=lambda path: path.stat().st_mtime), switch, version
    )


def run_program(source):
    """What a program that uses the core prints."""
    build()
    program = FOLDER / source.stem
    flags = ("-std=c++20", "-O3", "-Wall", "-Wextra", "-I", REPOSITORY / "src" / "core")
    library = next(FOLDER.rglob("libsglb_core.a"))
    run(_compiler(), *flags, source, library, "-pthread", "-o", program)
    return run(program)


def _compiler():
    """The compiler that the extension was built with."""
    for line in (FOLDER / "CMakeCache.txt").read_text().splitlines():
        if line.startswith("CMAKE_CXX_COMPILER:"):
            return line.partition("=")[2]
    raise NotReadyError(f"{FOLDER} names no compiler; delete it and try again")


def cmake():
    """The path of CMake."""
    result = shutil.which("cmake")
    if result is None:
        try:
            import cmake
        except ImportError:
            raise NotReadyError("cmake is not installed: pip install cmake") from None
        result = Path(cmake.CMAKE_BIN_DIR) / "cmake"
    return result


def run(*call):
    """What a command prints, or NotReadyError with its message."""
    done = subprocess.run([str(part) for part in call], capture_output=True, text=True)
    if done.returncode != 0:
        message = (done.stderr or done.stdout).strip()
        raise NotReadyError(f"{' '.join(map(str, call[:3]))} ... failed:\n{message}")
    return done.stdout
