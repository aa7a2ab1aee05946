"""A table dealt to parts that know their own rows only: what a cluster is, in one process."""

import numpy as np
import pandas as pd

from sglb.bundles import Bundles, meetings
from sglb.code_layout import CodeCounts, CodeLayout
from sglb.frame import read_label_column
from sglb.held import HeldCodes, HeldNumbers, HeldTable
from sglb.training_set import TrainingSet


class PartsTable(HeldTable):
    """A pandas frame whose rows are dealt to parts."""

    def __init__(self, frame, n_parts):
        self.frame, self.n_parts = frame, n_parts

    def __len__(self):
        return len(self.frame)

    @property
    def empty(self):
        return self.frame.iloc[:0]

    def held_labels(self, column):
        return read_label_column(self.frame.iloc[:, column])

    def held_numbers(self, columns):
        values = self.frame.iloc[:, columns].to_numpy(np.float64)
        return PartsNumbers(np.array_split(values, self.n_parts))


class PartsNumbers(HeldNumbers):
    def __init__(self, parts):
        self.parts = parts

    @property
    def shape(self):
        return len(self), self.parts[0].shape[1]

    def __len__(self):
        return sum(map(len, self.parts))

    def sample(self, rows):
        return np.concatenate(self.parts)[rows]

    def take(self, kept):
        ends = np.cumsum([len(part) for part in self.parts])[:-1]
        masks = np.split(kept, ends)
        return PartsNumbers([part[mask] for part, mask in zip(self.parts, masks, strict=True)])

    def encode(self, bins, n_threads):
        return PartsCodes([bins.encode(part, n_threads) for part in self.parts])


class PartsCodes(HeldCodes):
    """Codes of a copy of the rows, dealt to parts; parts of several copies hold the same rows."""

    def __init__(self, parts, n_copies=1):
        self.parts, self.n_copies = parts, n_copies

    @property
    def shape(self):
        return len(self.parts[0]), sum(part.shape[1] for part in self.parts)

    def gather(self):
        copies = [np.split(part, self.n_copies, axis=1) for part in self.parts]
        return np.concatenate([part[c] for c in range(self.n_copies) for part in copies], axis=1)

    def sample(self, rows):
        return self.gather()[:, rows]

    def extended(self, n_copies, columns):
        ends = np.cumsum([part.shape[1] for part in self.parts])[:-1]
        copies = np.split(columns, n_copies, axis=1)
        more = [np.split(copy, ends, axis=1) for copy in copies]
        return PartsCodes(
            [
                np.concatenate(
                    [np.tile(part, n_copies), np.concatenate([m[i] for m in more], axis=1)]
                )
                for i, part in enumerate(self.parts)
            ],
            n_copies,
        )

    def training_set(self, n_codes, is_level, target, n_copies, n_threads):
        counts = [CodeCounts.of(part, n_codes) for part in self.parts]
        total = counts[0]
        for other in counts[1:]:
            total = total.plus(other)
        layout = CodeLayout.decide(
            n_codes,
            total,
            lambda two, counts: Bundles.find_in_parts(
                two, counts.n_twos, counts.n_rows, self.meetings
            ),
            is_level=is_level,
        )
        copies = [np.split(layout.rows(part, n_threads), n_copies) for part in self.parts]
        rows = np.concatenate([part[copy] for copy in range(n_copies) for part in copies])
        return TrainingSet.laid_out(self.gather(), rows, layout, target, n_copies=n_copies)

    def meetings(self, groups, on, *, first_rows):
        pairs = [meetings(part, groups, on, first_rows=first_rows) for part in self.parts]
        return np.concatenate(pairs)


def as_parts(table, n_parts=3):
    """Return an array or a frame in parts."""
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)
    return PartsTable(frame, n_parts)
