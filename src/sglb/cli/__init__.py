"""The command line: `sglb train`, `predict`, `evaluate`, `info`, `demo` and `paper`.

The topmost room. It uses public names of the library, `tables` and `experiments`; the packages that
only it needs are the extra "cli".
"""

import sys
from importlib.util import find_spec

EXTRA = ("typer", "rich", "pyarrow", "matplotlib")


def main() -> None:
    """Run the command line, or say in one line how to install it."""
    for name in EXTRA:
        if find_spec(name) is None:
            advice = f'the command line needs {name}: pip install "sglb[cli]"'
            print(f"error: {advice}", file=sys.stderr)
            raise SystemExit(2)
    from sglb.cli.app import app

    app()


__all__ = ["main"]
