"""Errors as one line: `error: what is wrong` on standard error, exit code 2, no traceback."""

import os
import sys
import warnings
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from sglb.cli.wording import in_options

# What bad input, files and parameters raise; anything else is a bug and keeps its traceback.
EXPECTED = (OSError, ValueError, TypeError, ArithmeticError, ImportError)


def _complain(kind: str, message: str) -> None:
    print(f"{kind}: {' '.join(message.split())}", file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _complain("warning", in_options(str(message)))


class OneLineErrors(TyperGroup):
    """A group of commands whose expected failures are one line each."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command; end the process with 0, 2 for an error, 130 for Ctrl-C."""
        options["standalone_mode"] = False
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                code = super().main(*args, **options)
            except typer.Abort:
                _complain("error", "interrupted")
                sys.exit(130)
            except BrokenPipeError:  # who reads standard output has seen enough, as `head` does
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(1)
            except EXPECTED as error:
                _complain("error", str(error) or type(error).__name__)
                sys.exit(2)
            except Exception as error:
                # Wrong usage, however this version of typer spells its class.
                usage = getattr(error, "format_message", None)
                if usage is None:
                    raise
                _complain("error", usage())
                sys.exit(2)
        sys.exit(code if isinstance(code, int) else 0)
