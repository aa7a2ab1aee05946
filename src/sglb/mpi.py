"""Train in an MPI program, `mpirun -n 8 python train.py`, whose ranks have a part of the rows each.

    model = sglb.mpi.fit(sglb.SGLBRegressor(), X, y)  # on every rank, with its own rows

Rank 0 trains and asks all ranks about their rows. The model is the same bits as that of all rows
on one machine. Needs mpi4py (`pip install "sglb[mpi]"`).
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.util import pkl5

from sglb.cluster import ClusterTable, Server
from sglb.settings import n_threads


def fit(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    group: Any = None,
    ranks: MPI.Intracomm = MPI.COMM_WORLD,
    **options: Any,
) -> Any:
    """Train an estimator on the rows of all ranks, in the order of the ranks; return it on each.

    X are arrays or frames of the same columns. y, weights and groups come to rank 0, where the
    other options of `estimator.fit` count; all rows of a group are on one rank. An error is raised
    on every rank. If a rank ends the program does: a `Checkpoint` lets the next run go on.
    """
    comm = RankComm(ranks, n_threads(estimator.n_jobs))
    held = comm.ranks.gather(answered(comm.hold, X, y, sample_weight, group))

    def train() -> Any:
        parts = zip(("y", "sample_weight", "group"), *results_of(held), strict=True)
        by_row = {name: np.concatenate(each) for name, *each in parts if each[0] is not None}
        table = ClusterTable(comm, list(range(ranks.size)), X[:0])
        return estimator.fit(table, **by_row, **options)

    outcome = answered(train) if held else None
    while comm.take_part(None) is not None:
        pass
    return results_of([comm.ranks.bcast(outcome)])[0]


class RankComm:
    """A server on each rank, which rank 0 asks; piece k is that of rank k."""

    epoch = 0

    def __init__(self, ranks: MPI.Intracomm, n_threads: int) -> None:
        self.ranks: Any = pkl5.Intracomm(ranks)  # for messages of any size
        self._server = Server(n_threads=n_threads)
        self._lock = Lock()  # chains may run in several threads

    def hold(self, X: Any, *by_row: Any) -> tuple[Any, ...]:
        """Hold the rows of this rank; return what rank 0 needs of them."""
        if not hasattr(X, "shape"):
            raise TypeError(f"X of rank {self.ranks.rank} must be an array or a frame, maybe empty")
        self._server.read({self.ranks.rank: X})
        return by_row

    def ask(self, question: str, *arguments: Any, shares: Any = None) -> list[Any]:
        """Return the answer of each server; the first error of one is raised here."""
        by_rank = shares and [{n: shares[n]} for n in range(self.ranks.size)]
        with self._lock:
            return results_of(self.take_part((question, arguments, bool(shares)), by_rank))

    def take_part(self, asked: Any, by_rank: Any = None) -> Any:
        """Answer what rank 0 asks, with all other ranks; return the answers, None at the end."""
        asked = self.ranks.bcast(asked)
        if asked is None:
            return None
        question, arguments, has_shares = asked
        if has_shares:
            arguments = *arguments, self.ranks.scatter(by_rank)
        return self.ranks.gather(answered(getattr(self._server, question), *arguments)) or []


def answered(question: Callable[..., Any], *arguments: Any) -> tuple[Any, Exception | None]:
    """Return an answer, or the error instead of it, which is for others to raise."""
    try:
        return question(*arguments), None
    except Exception as error:
        return None, error


def results_of(answers: Any) -> list[Any]:
    """Return answers; raise the first error."""
    if errors := [error for _, error in answers if error is not None]:
        raise errors[0]
    return [answer for answer, _ in answers]
