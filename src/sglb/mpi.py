"""Train in an MPI program, `mpirun -n 8 python train.py`, whose ranks have a part of the rows each.

    model = sglb.mpi.fit(sglb.SGLBRegressor(), X, y)  # on every rank, with its own rows

Rank 0 trains and asks all ranks about their rows. The model is the same bits as that of all rows
on one machine. Needs mpi4py (`pip install "sglb[mpi]"`).
"""

import pickle
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

import numpy as np
from mpi4py import MPI
from mpi4py.util import pkl5

from sglb.cluster import ClusterTable, Server
from sglb.errors import portable
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
    other options of `estimator.fit` count; all rows of a group are on one rank. An error of any
    rank, and Ctrl-C on it, is raised on every rank. If a rank ends the program does: a `Checkpoint`
    lets the next run go on.
    """
    with Interrupts() as interrupts:
        comm = RankComm(ranks, n_threads(estimator.n_jobs), interrupts)
        held = comm.ranks.gather(comm.answered(comm.hold, estimator, X, y, sample_weight, group))

        def train() -> Any:
            by_row = of_all_ranks(("y", "sample_weight", "group"), results_of(held))
            table = ClusterTable(comm, list(range(ranks.size)), X[:0], "rank")
            return estimator.fit(table, **by_row, **options)

        outcome = comm.answered(train) if held else None
        while comm.take_part(None) is not None:
            pass
        return results_of([comm.ranks.bcast(outcome)])[0]


class Interrupts:
    """Ctrl-C is noted, not raised where it would leave the other ranks waiting for this one."""

    def __init__(self) -> None:
        self.noted = False
        self._before: Any = None

    def __enter__(self) -> Self:
        # Only the main thread gets signals; who ignores them, as nohup does, goes on to.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.noted = True

    def raise_noted(self) -> None:
        """Raise KeyboardInterrupt if there was Ctrl-C."""
        if self.noted:
            raise KeyboardInterrupt


class RankComm:
    """A server on each rank, which rank 0 asks; piece k is that of rank k."""

    epoch = 0

    def __init__(self, ranks: MPI.Intracomm, n_threads: int, interrupts: Interrupts) -> None:
        self.ranks: Any = pkl5.Intracomm(ranks)  # for messages of any size
        self._server = Server(n_threads=n_threads)
        self._interrupts = interrupts
        self._lock = threading.Lock()  # chains may run in several threads

    def hold(self, estimator: Any, X: Any, *by_row: Any) -> tuple[Any, ...]:
        """Hold the rows of this rank; return what rank 0 needs of them."""
        rank = self.ranks.rank
        if not hasattr(X, "shape"):
            raise TypeError(f"X of rank {rank} must be an array or a frame, maybe empty")
        y, weight, group = by_row
        # Queries may have their sizes as groups, and weights of their own.
        for name, values in {"y": y, "sample_weight": weight if group is None else None}.items():
            if values is not None and len(values) != X.shape[0]:
                raise ValueError(
                    f"on rank {rank} X has {X.shape[0]} rows but {name} has {len(values)}"
                )
        try:
            pickle.dumps(estimator)
        except Exception as error:
            raise TypeError(f"the estimator cannot be sent to all ranks: {error}") from error
        self._server.read({rank: X})
        return by_row

    def ask(self, question: str, *arguments: Any, shares: Any = None) -> list[Any]:
        """Return the answer of each server; the first error of one is raised here."""
        by_rank = shares and [{n: shares[n]} for n in range(self.ranks.size)]
        message = pickle.dumps((question, arguments), -1), bool(shares)
        with self._lock:
            return results_of(self.take_part(message, by_rank))

    def take_part(self, message: Any, by_rank: Any = None) -> Any:
        """Answer what rank 0 asks, with all other ranks; return the answers, None at the end."""
        message = self.ranks.bcast(message)
        if message is None:
            return None
        pickled, has_shares = message
        shares = (self.ranks.scatter(by_rank),) if has_shares else ()
        return self.ranks.gather(self.answered(self._answer, pickled, shares)) or []

    def _answer(self, pickled: bytes, shares: tuple[Any, ...]) -> Any:
        self._interrupts.raise_noted()
        question, arguments = pickle.loads(pickled)
        return getattr(self._server, question)(*arguments, *shares)

    def answered(
        self, question: Callable[..., Any], *arguments: Any
    ) -> tuple[Any, BaseException | None]:
        """Return an answer, or the error instead of it, which is for others to raise."""
        try:
            return question(*arguments), None
        except BaseException as error:  # a rank that left would be waited for
            error.add_note(f"That was rank {self.ranks.rank}.")
            return None, portable(error)


def of_all_ranks(names: tuple[str, ...], held: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Return what each rank has stated by row, one below the other; nothing that none has."""
    by_row = {}
    for name, values in zip(names, zip(*held, strict=True), strict=True):
        absent = [rank for rank, each in enumerate(values) if each is None]
        if absent and len(absent) < len(values):
            raise ValueError(
                f"{name} is None on ranks {absent} and stated on others; a rank without rows states"
                " an empty array"
            )
        if not absent:
            by_row[name] = np.concatenate(values)
    return by_row


def results_of(answers: Any) -> list[Any]:
    """Return answers; raise the first error."""
    if errors := [error for _, error in answers if error is not None]:
        raise errors[0]
    return [answer for answer, _ in answers]
