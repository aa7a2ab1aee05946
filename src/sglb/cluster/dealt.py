"""A table that is dealt to servers, in pieces: what is known of it where the chain is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglb.bundles import Bundles
from sglb.cluster.comm import Comm
from sglb.cluster.parts import by_piece
from sglb.cluster.rows import RemoteRows
from sglb.cluster.server import Moved
from sglb.code_layout import CodeLayout
from sglb.errors import DividedQuery
from sglb.losses import Loss
from sglb.target import Target
from sglb.totals import Totals
from sglb.trace import Trace
from sglb.training_set import TrainingSet


def _nothing() -> None:
    """Do nothing: pieces that do not move are ready."""


@dataclass(frozen=True)
class DealtRows:
    """Rows whose codes and states are on servers; the target of all of them is here too.

    `numbers` are those of the pieces, in the order of the table. `catch_up` makes pieces that have
    moved ready for chains.
    """

    comm: Comm
    numbers: Sequence[int]
    n_codes: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    bundles: Bundles | None
    target: Target  # of n_rows rows, copies included
    n_copies: int = 1
    catch_up: Callable[[], Any] = _nothing
    totals: Totals = field(init=False)

    def __post_init__(self) -> None:
        """Add up what servers need to know of all rows."""
        object.__setattr__(self, "totals", Totals.of([self]))

    @property
    def n_rows(self) -> int:
        """Number of rows, copies included."""
        return len(self.target)

    def in_memory(self, n_threads: int) -> TrainingSet:
        """Return the codes of all rows, and their target, in this process."""
        parts = by_piece(self._ask("codes"))
        copies = [np.split(codes, self.n_copies, axis=1) for codes in parts]
        columns = np.concatenate(
            [part for copy in zip(*copies, strict=True) for part in copy], axis=1
        )
        layout = CodeLayout(self.n_codes, self.kinds, self.bundles)
        rows = layout.rows(columns, n_threads)
        return TrainingSet.laid_out(columns, rows, layout, self.target, n_copies=self.n_copies)

    def digests(self) -> list[str]:
        """Return a digest of the codes of each piece."""
        return by_piece(self._ask("digests"))

    def _ask(self, question: str) -> list[Any]:
        while True:
            try:
                self.catch_up()
                return self.comm.ask(question)
            except Moved:
                continue

    def start_rows(self, loss: Loss, trace: Trace, *, newton: bool, number: int = 0) -> RemoteRows:
        """Return the rows of a chain of a number, in the state that a trace leads to."""
        check_divisible(loss)
        return RemoteRows(self, loss, trace, newton=newton, number=number)


def check_divisible(loss: Loss) -> None:
    """Reject a loss whose rows need to know all others."""
    if not loss.independent and not loss.by_group:
        raise ValueError(
            f"the rows of loss {loss.name!r} depend on all others, which are in other places; train"
            " on one machine"
        )


def check_whole_queries(groups: Sequence[NDArray[np.int64]], name: str) -> None:
    """Reject pieces, which users call by a name, that divide a query."""
    of_pieces = [np.unique(part) for part in groups]
    queries, counts = np.unique(np.concatenate(of_pieces), return_counts=True)
    if (counts > 1).any():
        divided = int(queries[np.argmax(counts > 1)])
        holders = [number for number, part in enumerate(of_pieces) if divided in part]
        raise DividedQuery(divided, holders, name)
