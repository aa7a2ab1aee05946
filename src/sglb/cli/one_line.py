"""Print errors as one line: `error: what is wrong` on standard error, exit code 2."""

import os
import sys
import warnings
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from sglb.cli.wording import in_options

# Raised for bad input, files and parameters; anything else is a bug and keeps its traceback.
EXPECTED = (OSError, ValueError, TypeError, ArithmeticError, ImportError)


def _print_line(label: str, message: str) -> None:
    print(f"{label}: {' '.join(message.split())}", file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _print_line("warning", in_options(str(message)))


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
                _print_line("error", "interrupted")
                sys.exit(130)
            except BrokenPipeError:  # the reader of standard output has stopped, as `head` does
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                sys.exit(1)
            except EXPECTED as error:
                _print_line("error", str(error) or type(error).__name__)
                sys.exit(2)
            except Exception as error:
                # Wrong usage; the class of the error depends on the version of typer.
                usage = getattr(error, "format_message", None)
                if usage is None:
                    raise
                _print_line("error", usage())
                sys.exit(2)
        sys.exit(code if isinstance(code, int) else 0)
