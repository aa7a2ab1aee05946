"""A bug of one line."""

from typing import NamedTuple


class Mutant(NamedTuple):
    file: str  # below src
    old: str
    new: str
    tests: str  # files below tests, or tests in them


def of(file: str, tests: str, *changes: tuple[str, str]) -> list[Mutant]:
    return [Mutant(file, old, new, tests) for old, new in changes]
