"""A build of the core beside the installed one, and an interpreter that imports it."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from benchmarks.kernels.build import cmake, run

SITE = Path(sysconfig.get_paths()["purelib"])


def build_core(source, folder, *options):
    """Bring the extension of a source tree up to date in a folder; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "CMakeCache.txt").exists():
        run(cmake(), "-S", source, "-B", folder, f"-DPython_EXECUTABLE={sys.executable}", *options)
    run(cmake(), "--build", folder, "--target", "_core", "--parallel", "2")
    (core,) = folder.glob("_core*.so")
    return core


def make_interpreter(folder, package, core):
    """Return a Python that imports `package` with a core; all else is that of this environment.

    The files of the package are links.
    """
    home = folder / "packages" / "sglb"
    home.mkdir(parents=True, exist_ok=True)
    for path in [*home.parent.glob("sglb/*")]:
        path.unlink()
    for path in [*package.iterdir(), core]:
        if path.name != "__pycache__":
            (home / path.name).symlink_to(path)
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        command = [sys.executable, "-m", "venv", "--without-pip", folder / "venv"]
        subprocess.run(command, check=True)
    (site,) = (folder / "venv" / "lib").glob("python3.*/site-packages")
    # A folder named in a .pth file has no .pth files of its own: the editable install is not seen.
    (site / "variant.pth").write_text(f"{home.parent}\n{SITE}\n")
    where = run(python, "-c", "import sglb._core; print(sglb._core.__file__)").strip()
    if not os.path.samefile(where, core):
        raise RuntimeError(f"{python} imports {where}, not {core}")
    return python
