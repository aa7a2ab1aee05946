"""Numbers as text: decimal commas, thousands separators, and values that are not numbers.

A column that Arrow could not read as numbers is text; it is examined here.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sglb.tables.arrow import ArrowColumn

# Thousands separators of numbers with a decimal comma: point, three kinds of spaces, apostrophes.
THOUSANDS = (".", " ", "\u00a0", "\u202f", "'", "\u2019")

# A column of text is meant to be numbers if at least this share of its values are.
MOSTLY = 0.5
# At most this many different values may stand for a missing value.
MOST_NULLS = 3


@cache
def number_pattern(decimal: str, thousands: str | None) -> str:
    """Return the regular expression of numbers with this decimal sign and thousands separator."""
    whole = "[0-9]+"
    if thousands is not None:
        whole = rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{re.escape(thousands)}[0-9]{{3}})+)"
    point = re.escape(decimal)
    return rf"^[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


# 1,234 and 1,234,567: the commas may separate thousands.
GROUPED = r"^[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+$"


@dataclass(frozen=True)
class Values:
    """The distinct values of a column of text, and how often each occurs."""

    texts: Any  # a pyarrow.Array of text
    counts: Any  # a pyarrow.Array of whole numbers

    @classmethod
    def of(cls, column: ArrowColumn) -> "Values":
        """Count the values that are not missing."""
        counted = pc.value_counts(column.drop_null())
        return cls(pc.utf8_trim_whitespace(counted.field("values")), counted.field("counts"))

    def share(self, expression: str) -> float:
        """Return the share of the column's values that match an expression."""
        total = pc.sum(self.counts).as_py()
        matching = pc.match_substring_regex(self.texts, expression)
        return float((pc.sum(self.counts.filter(matching)).as_py() or 0) / total) if total else 0.0

    def have(self, expression: str) -> bool:
        """Whether any value matches an expression."""
        return bool(pc.any(pc.match_substring_regex(self.texts, expression)).as_py())

    def without(self, expression: str) -> list[str]:
        """Return the values that do not match an expression, in order of appearance."""
        matching = pc.match_substring_regex(self.texts, expression)
        others: list[str] = self.texts.filter(pc.invert(matching)).to_pylist()
        return others


def has_decimal_commas(values: Values) -> bool:
    """Whether most values are numbers and some have a decimal comma."""
    if not values.have(","):
        return False
    return any(values.share(number_pattern(",", thousands)) >= MOSTLY for thousands in THOUSANDS)


def may_be_thousands(values: Values) -> bool:
    """Whether every comma of a column may separate thousands."""
    with_comma = values.texts.filter(pc.match_substring(values.texts, ","))
    return bool(pc.all(pc.match_substring_regex(with_comma, GROUPED)).as_py())


def find_thousands(values: Values, decimal: str, candidates: tuple[str, ...]) -> str | None:
    """Return the thousands separator with which every value is a number, None if none fits."""
    for thousands in candidates:
        if len(values.texts) and not values.without(number_pattern(decimal, thousands)):
            return thousands
    return None


def as_numbers(column: ArrowColumn, decimal: str, thousands: str) -> ArrowColumn:
    """Return a column of text that spells numbers as numbers."""
    text = pc.replace_substring(pc.utf8_trim_whitespace(column), thousands, "")
    text = pc.replace_substring_regex(text, r"^\+", "")
    text = pc.replace_substring(text, decimal, ".")
    if pc.any(pc.match_substring_regex(text, "[.eE]")).as_py():
        return text.cast(pa.float64())
    try:
        return text.cast(pa.int64())
    except pa.ArrowInvalid:  # more digits than int64 has
        return text.cast(pa.float64())


@dataclass(frozen=True)
class NonNumber:
    """The first value that keeps a column of text from being numbers, and what to do about it."""

    value: str
    row: int
    advice: str

    def __str__(self) -> str:
        return f"{self.value!r} in row {self.row}" + (f"; {self.advice}" if self.advice else "")


def find_non_number(column: ArrowColumn, decimal: str = ".") -> NonNumber | None:
    """Return what keeps a column of text from being numbers, None if few values are numbers."""
    values = Values.of(column)
    if values.have("^0[0-9]"):  # codes, such as postal codes
        return None
    other_sign = "," if decimal == "." else "."
    remedies = {
        number_pattern(decimal, None): "",
        number_pattern(decimal, other_sign): f"--thousands '{other_sign}'",
        number_pattern(decimal, "'"): '--thousands "\'"',
        number_pattern(decimal, " "): "--thousands ' '",
        number_pattern(decimal, "\u00a0"): r"--thousands $'\u00a0'",
        number_pattern(decimal, "\u202f"): r"--thousands $'\u202f'",
        number_pattern(other_sign, None): f"--decimal '{other_sign}'",
        number_pattern(other_sign, decimal): f"--decimal '{other_sign}' --thousands '{decimal}'",
    }
    # The first format with which as many values as possible are numbers.
    shares = {expression: values.share(expression) for expression in remedies}
    best = max(shares.values())
    if best < MOSTLY:
        return None
    expression = next(e for e, share in shares.items() if share >= best)
    remedy, plain = remedies[expression], number_pattern(decimal, None)
    if expression == number_pattern(".", ",") and shares[number_pattern(",", None)] == best:
        remedy = "--thousands ',' or --decimal ','"
    bad = values.without(expression)
    advice = [f"remedy: {remedy}"] if remedy else []
    if 0 < len(bad) <= MOST_NULLS:
        options = " ".join(f"--missing {_quoted(value)}" for value in bad)
        verb = "means" if len(bad) == 1 else "mean"
        advice.append(f"if {' and '.join(map(_quoted, bad))} {verb} a missing value: {options}")
    trimmed = pc.utf8_trim_whitespace(column)
    is_wrong = pc.invert(pc.match_substring_regex(trimmed, plain))
    row = pc.index(is_wrong, pa.scalar(True)).as_py()
    if row < 0:
        return None
    return NonNumber(column[row].as_py(), row, "; ".join(advice))


def _quoted(value: str) -> str:
    """Return a value as typed on a command line."""
    return f"'{value}'" if "'" not in value else f'"{value}"'
