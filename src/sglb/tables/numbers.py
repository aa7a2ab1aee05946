"""How numbers are spelled: decimal commas, thousands separators, and what spoils a column of them.

A column that a reader could not take for numbers is text; here it is looked at again.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Column = Any  # a pyarrow.ChunkedArray; pyarrow ships no types

# Between the thousands of numbers with a decimal comma: point, spaces of three kinds, apostrophes.
MARKS = (".", " ", "\u00a0", "\u202f", "'", "\u2019")

# Text is called a spoiled column of numbers if numbers are at least this share of its values.
MOSTLY = 0.5
# Values that may stand for a missing one: more of them are values.
MOST_NULLS = 3


@cache
def pattern(decimal: str, mark: str | None) -> str:
    """Return the regular expression of a number with this decimal sign and thousands separator."""
    whole = "[0-9]+"
    if mark is not None:
        whole = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{re.escape(mark)}[0-9]{{3}})+)"
    point = re.escape(decimal)
    return rf"^[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


# 1,234 and 1,234,567: commas that may stand between thousands.
GROUPED = r"^[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+$"


@dataclass(frozen=True)
class Values:
    """The different values of a column of text, and how often each is there."""

    texts: Any  # a pyarrow.Array of text
    counts: Any  # a pyarrow.Array of whole numbers

    @classmethod
    def of(cls, column: Column) -> "Values":
        """Count the values that are not missing."""
        counted = pc.value_counts(column.drop_null())
        return cls(pc.utf8_trim_whitespace(counted.field("values")), counted.field("counts"))

    def share(self, expression: str) -> float:
        """Return the share of the column's values that match an expression."""
        total = pc.sum(self.counts).as_py()
        matching = pc.match_substring_regex(self.texts, expression)
        return float((pc.sum(self.counts.filter(matching)).as_py() or 0) / total) if total else 0.0

    def have(self, expression: str) -> bool:
        """Tell whether any value matches an expression."""
        return bool(pc.any(pc.match_substring_regex(self.texts, expression)).as_py())

    def without(self, expression: str) -> list[str]:
        """Return the values that do not match an expression, as they first appear."""
        matching = pc.match_substring_regex(self.texts, expression)
        found: list[str] = self.texts.filter(pc.invert(matching)).to_pylist()
        return found


def has_decimal_commas(values: Values) -> bool:
    """Tell whether most values are numbers and some have a decimal comma."""
    if not values.have(","):
        return False
    return any(values.share(pattern(",", mark)) >= MOSTLY for mark in MARKS)


def may_be_thousands(values: Values) -> bool:
    """Tell whether every comma of a column might as well stand between thousands."""
    with_comma = values.texts.filter(pc.match_substring(values.texts, ","))
    return bool(pc.all(pc.match_substring_regex(with_comma, GROUPED)).as_py())


def mark_of(values: Values, decimal: str, marks: tuple[str, ...]) -> str | None:
    """Return the thousands separator with which every value is a number, None if there is none."""
    for mark in marks:
        if len(values.texts) and not values.without(pattern(decimal, mark)):
            return mark
    return None


def as_numbers(column: Column, decimal: str, mark: str) -> Column:
    """Return a column of text that spells numbers as numbers."""
    text = pc.replace_substring(pc.utf8_trim_whitespace(column), mark, "")
    text = pc.replace_substring_regex(text, r"^\+", "")
    text = pc.replace_substring(text, decimal, ".")
    if pc.any(pc.match_substring_regex(text, "[.eE]")).as_py():
        return text.cast(pa.float64())
    try:
        return text.cast(pa.int64())
    except pa.ArrowInvalid:  # more digits than a whole number has
        return text.cast(pa.float64())


@dataclass(frozen=True)
class Spoiler:
    """What keeps a column of text from being numbers: the first such value and what to do."""

    value: str
    row: int
    advice: str

    def __str__(self) -> str:
        return f"{self.value!r} in row {self.row}" + (f"; {self.advice}" if self.advice else "")


def find_spoiler(column: Column, decimal: str = ".") -> Spoiler | None:
    """Return what keeps a column of text from being numbers, None if it is not mostly numbers."""
    values = Values.of(column)
    if values.have("^0[0-9]"):  # numbers that are names, such as postal codes
        return None
    other = "," if decimal == "." else "."
    spellings = {
        pattern(decimal, None): "",
        pattern(decimal, other): f"--thousands '{other}'",
        pattern(decimal, "'"): '--thousands "\'"',
        pattern(decimal, " "): "--thousands ' '",
        pattern(decimal, "\u00a0"): r"--thousands $'\u00a0'",
        pattern(decimal, "\u202f"): r"--thousands $'\u202f'",
        pattern(other, None): f"--decimal '{other}'",
        pattern(other, decimal): f"--decimal '{other}' --thousands '{decimal}'",
    }
    # The first spelling with which as many values as possible are numbers.
    shares = {expression: values.share(expression) for expression in spellings}
    best = max(shares.values())
    if best < MOSTLY:
        return None
    expression = next(one for one, share in shares.items() if share >= best)
    remedy, plain = spellings[expression], pattern(decimal, None)
    if expression == pattern(".", ",") and shares[pattern(",", None)] == best:
        remedy = "--thousands ',' or --decimal ','"
    bad = values.without(expression)
    advice = [f"remedy: {remedy}"] if remedy else []
    if 0 < len(bad) <= MOST_NULLS:
        options = " ".join(f"--missing {_quoted(value)}" for value in bad)
        verb = "means" if len(bad) == 1 else "mean"
        advice.append(f"if {' and '.join(map(_quoted, bad))} {verb} a missing value: {options}")
    trimmed = pc.utf8_trim_whitespace(column)
    wrong = pc.invert(pc.match_substring_regex(trimmed, plain))
    row = pc.index(wrong, pa.scalar(True)).as_py()
    if row < 0:
        return None
    return Spoiler(column[row].as_py(), row, "; ".join(advice))


def _quoted(value: str) -> str:
    """Return a value as it is typed on a command line."""
    return f"'{value}'" if "'" not in value else f'"{value}"'
