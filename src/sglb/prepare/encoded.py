"""Training rows as the codes that a chain runs on, and how other rows become codes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sglb.bins import Bins
from sglb.categories import Encoder, Encoding, Part, storage
from sglb.cluster import TrainingData
from sglb.columns import Columns
from sglb.frame import Features
from sglb.held import HeldCodes, HeldNumbers
from sglb.prepare.pilot import choose_members, joined_bins, level_mask
from sglb.prepare.rows import LabelledRows
from sglb.recipe import Recipe
from sglb.target import Target
from sglb.training_set import TrainingSet

# Columns that are split one level against the others; those of more levels become means of the
# target. A class: up to 64 levels, and up to what a byte holds where levels have so many rows on
# average. Against means from 65 levels on that changed the test log loss of flights_2001_3m by
# -0.4 %, of kick by 0 and of amazon by -0.7 %, whose levels have 84 rows and more. A number: levels
# have an order by their means, which saves splits; -1.4 % of the test error of diamonds.
MANY_LEVELS = 64
MOST_LEVELS = 254
ROWS_PER_LEVEL = 50
LEVELS_FOR_NUMBERS = 2


class EncodedRows(NamedTuple):
    """Training rows as codes (n_features, n_copies * n_rows), and how other rows become codes."""

    columns: NDArray[np.uint8] | HeldCodes
    bins: Bins
    is_level: NDArray[np.bool_]
    n_copies: int
    encoding: Encoding

    def encode(self, features: Features, n_threads: int) -> NDArray[np.uint8]:
        """Return the codes of other rows."""
        return self.encoding.codes(features, self.bins, n_threads)

    def training_set(self, target: Target, n_threads: int) -> TrainingData:
        """Return what a chain learns from: in each of c copies a row has a c-th of its weight."""
        target, n_codes = target.copies(self.n_copies), self.bins.n_codes
        if isinstance(self.columns, HeldCodes):
            return self.columns.training_set(
                n_codes, self.is_level, target, self.n_copies, n_threads
            )
        return TrainingSet.build(
            self.columns,
            n_codes,
            target,
            n_threads,
            n_copies=self.n_copies,
            is_level=self.is_level,
        )


def is_same(encoded: EncodedRows, recipe: Recipe) -> bool:
    """Whether rows have led to the bins and the encoding of a recipe."""
    bins, recipe_bins = encoded.bins, recipe.bins
    document, arrays = storage.pack(encoded.encoding)
    known_document, known_arrays = storage.pack(recipe.encoding)
    return (
        np.array_equal(bins.thresholds, recipe_bins.thresholds)
        and np.array_equal(bins.n_thresholds, recipe_bins.n_thresholds)
        and document == known_document
        and all(np.array_equal(array, known_arrays[name]) for name, array in arrays.items())
    )


def encoded_by(
    encoding: Encoding, bins: Bins, columns: NDArray[np.uint8] | HeldCodes
) -> EncodedRows:
    """Return rows of codes that an encoding and bins have made."""
    return EncodedRows(columns, bins, encoding.is_level, 1, encoding)


def most_levels(target: Target, max_bins: int) -> int:
    """Return up to how many levels a column is split by level."""
    if not target.n_classes:
        return LEVELS_FOR_NUMBERS
    if max_bins < MANY_LEVELS:
        return max_bins
    return max(MANY_LEVELS, min(MOST_LEVELS, len(target) // ROWS_PER_LEVEL))


def encode_rows(rows: LabelledRows, max_bins: int, seed: int, n_threads: int) -> EncodedRows:
    """Choose bins, levels, statistics and combinations; return the rows as codes."""
    values = rows.features.values
    if not rows.features.labels:
        bins = Bins.fit(values, max_bins, seed=seed, n_threads=n_threads)
        is_level = np.zeros(bins.n_features, dtype=np.bool_)
        numeric = Encoding.numeric(values.shape[1])
        return EncodedRows(_codes(values, bins, n_threads), bins, is_level, 1, numeric)
    encoder = Encoder(
        rows.features,
        rows.target,
        most_levels=most_levels(rows.target, max_bins),
        many=min(max_bins, MANY_LEVELS),
        seed=seed,
        n_threads=n_threads,
    )
    parts, n_copies = [], encoder.n_copies
    if values.shape[1]:
        bins = Bins.fit(values, max_bins, seed=seed, n_threads=n_threads)
        codes = _codes(values, bins, n_threads)
        if not isinstance(codes, HeldCodes):
            codes = np.tile(codes, n_copies)
        parts.append(Part(codes, bins, False))
    parts += encoder.single()
    if encoder.can_combine():
        parts += encoder.combined(choose_members(encoder, parts, rows.target, seed, n_threads))
    return EncodedRows(
        _side_by_side(values, [part.columns for part in parts], n_copies, n_threads),
        joined_bins(parts),
        level_mask(parts),
        n_copies,
        encoder.encoding(),
    )


def _side_by_side(
    values: NDArray[Any] | Columns | HeldNumbers,
    columns: list[NDArray[np.uint8] | HeldCodes],
    n_copies: int,
    n_threads: int,
) -> NDArray[np.uint8] | HeldCodes:
    """Return codes of numbers, if there are any, and of categories, where the numbers are."""
    here = [each for each in columns if not isinstance(each, HeldCodes)]
    if not isinstance(values, HeldNumbers):
        return np.concatenate(here)
    elsewhere = [each for each in columns if isinstance(each, HeldCodes)]
    numbers = elsewhere[0] if elsewhere else values.encode(Bins.of_levels((), 2), n_threads)
    return numbers.extended(n_copies, np.concatenate(here))


def _codes(
    values: NDArray[Any] | Columns | HeldNumbers, bins: Bins, n_threads: int
) -> NDArray[np.uint8] | HeldCodes:
    """Return the codes of numbers, held where these are."""
    if isinstance(values, HeldNumbers):
        return values.encode(bins, n_threads)
    return bins.encode(values, n_threads)
