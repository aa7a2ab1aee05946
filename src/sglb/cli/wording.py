"""Rewrite messages of the library for the command line: --max-depth 99, not max_depth=99."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sglb import CheckpointError
from sglb.cli.options import MODEL, RENAMED


def flag(parameter: str) -> str:
    """Return the option that sets a parameter of the estimators."""
    return RENAMED.get(parameter, f"--{parameter.replace('_', '-')}")


QUOTES = ("'", '"')
PARAMETERS = sorted([*MODEL, *RENAMED, "eval_metric"], key=len, reverse=True)
_ASSIGNED = re.compile(rf"\b({'|'.join(PARAMETERS)})=('[^']*'|\"[^\"]*\"|[^\s,;:()]+)")
# A parameter that is also an English word is replaced only where it has a value.
_NAMED = re.compile(rf"\b({'|'.join(name for name in PARAMETERS if '_' in name)})\b")
_OTHER_WORDS = {
    r"\bSGLBRegressor\b": "--task regression",
    r"\bSGLBClassifier\b": "--task classification",
    r"\beval_set\[0\]": "evaluation rows",
    r"\bsample_weight\b": "--weight",
    r"\bresume_from(=path)?\b": "--resume",
    r"Checkpoint\(path, overwrite=True\)": "remove the file",
    r"^X contains": "the table contains",
    r", expected_cost\b": "",  # files have no costs
}


def in_options(message: str) -> str:
    """Return a message of the library with options in place of parameters."""

    def assigned(match: re.Match[str]) -> str:
        value = match[2]
        bare = value[1:-1] if value[0] in QUOTES else value
        return f"{flag(match[1])} {bare}"

    message = _ASSIGNED.sub(assigned, message)
    message = _NAMED.sub(lambda match: flag(match[1]), message)
    for expression, words in _OTHER_WORDS.items():
        message = re.sub(expression, words, message)
    return message


@contextmanager
def naming_options() -> Iterator[None]:
    """Rewrite errors of the library so that they name options."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(error.path, in_options(error.reason)) from error
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(in_options(str(error))) from error
