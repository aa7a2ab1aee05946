"""Servers on the workers of a Dask cluster: an actor on each worker that holds partitions.

Dask moves the data, this module asks and answers. A question has an answer in time, or its worker
is taken to be lost: the scheduler is told to forget it, its partitions are read again elsewhere,
and who asked asks once more (`Moved`). Tasks may take any time, as long as the workers are heard
of. A worker that wakes up later is asked nothing.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from types import TracebackType
from typing import Any, NamedTuple, Self

from dask.distributed import Client, Future
from distributed.protocol.pickle import dumps

from sglb.cluster import LostServerError, Moved
from sglb.cluster.comm import share_of
from sglb.dask.actors import DaskServer, NotServedError, hand_over
from sglb.dask.workers import Worker, forget, holders_of, workers_of

# Seconds between two looks whether a worker that has not answered yet is still there.
LOOK_EVERY = 0.5
# Seconds in which a worker that can be reached from here answers, and a client ends.
REACH = 5.0


# Questions that grow with the rows of a worker times columns or trees: to code, and to come to
# where a trace has led.
LONG = frozenset({"ask_pieces", "start"})


class LostWorkerError(Exception):
    """A worker that does not answer any more."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}"


class Held(NamedTuple):
    """A server on a worker: the name that tasks find it by, and the future that keeps it alive."""

    name: str
    actor: Any
    future: Future


class DaskComm:
    """Servers that hold partitions; they end with the block: `with DaskComm(...)`.

    `partitions` are delayed objects, arrays or frames, in the order of the table. A question that
    has no answer after `timeout` seconds loses its worker; more than `max_failures` workers may not
    be lost.
    """

    def __init__(
        self,
        client: Client,
        partitions: Sequence[Any],
        *,
        timeout: float,
        max_failures: int,
    ) -> None:
        if not (isinstance(timeout, int | float) and timeout > 0):
            raise ValueError(f"timeout must be a number of seconds above 0, got {timeout!r}")
        if not (isinstance(max_failures, int) and max_failures >= 0):
            raise ValueError(f"max_failures must be a whole number from 0, got {max_failures!r}")
        self.epoch = -1
        self.partitions = list(partitions)
        self.timeout, self.max_failures = timeout, max_failures
        self._client, self._direct = client, direct_client(client, timeout)
        self._lock = RLock()
        self._held: dict[str, Held] = {}
        self._homes: dict[int, str] = {}
        self._lost: list[LostWorkerError] = []
        self._to_place = set(self.numbers)
        self._n_started = 0
        try:
            self._place_all()
        except BaseException:
            self.close()
            raise

    @property
    def numbers(self) -> list[int]:
        """Numbers of the pieces: those of the partitions."""
        return list(range(len(self.partitions)))

    def ask(
        self, question: str, *arguments: Any, shares: Mapping[int, Any] | None = None
    ) -> list[Any]:
        """Return the answer of each server; the first error of one is raised here."""
        message = dumps((question, arguments))
        with self._lock:
            try:
                long = question in LONG
                answers = [] if self._to_place else self._ask_all(message, shares, long=long)
            except LostWorkerError as lost:
                self._shut(lost)
            if self._to_place:
                self._place_all()
                raise Moved
        for _, error in answers:
            if error is not None:
                raise error
        return [answer for answer, _ in answers]

    def bring(self, value: Any) -> Any:
        """Return a collection of Dask as an array or a frame in memory."""
        with releasing([self._client.compute(value)]) as [future]:
            while True:
                try:
                    self._finish(future, f"a {type(value).__name__}")
                    with suppress(TimeoutError):
                        return future.result(timeout=self.timeout)
                    self._look("", 0.0)  # a worker that hangs may have a part of it
                except LostWorkerError as lost:
                    self._shut(lost)

    def close(self) -> None:
        """Let the servers go."""
        self._held.clear()
        with suppress(Exception):
            self._direct.close(timeout=min(self.timeout, REACH))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask_all(
        self, message: bytes, shares: Mapping[int, Any] | None, *, long: bool
    ) -> list[tuple[Any, Any]]:
        waiting, end = [], time.monotonic() + self.timeout
        for address, held in self._held.items():
            here = [number for number, home in self._homes.items() if home == address]
            share = share_of(here, shares)
            try:
                asked = held.actor.ask(message, here, dumps(share[0]) if share else None)
            except RuntimeError as gone:  # the scheduler knows that it is lost
                raise LostWorkerError(address, str(gone)) from gone
            waiting.append((address, asked.result))
        answers = [
            (address, self._wait(address, result, end, long=long)) for address, result in waiting
        ]
        for address, (_, error) in answers:
            if isinstance(error, NotServedError):
                raise LostWorkerError(address, str(error))
        return [answer for _, answer in answers]

    def _wait(
        self, address: str, result: Callable[..., Any], end: float, *, long: bool = False
    ) -> Any:
        """Return a result from a worker; raise LostWorkerError if there is none in time.

        What takes `long` has any time, as long as the worker is heard of.
        """
        while True:
            left = end - time.monotonic()
            try:
                return result(timeout=max(min(left, LOOK_EVERY), 0.01))
            except TimeoutError:
                worker = self._workers().get(address)
                if worker is None:
                    raise LostWorkerError(address, "it has ended") from None
                if left <= 0.0 and not (long and worker.silence <= self.timeout):
                    reason = f"it has not answered for {self.timeout:g} s"
                    raise LostWorkerError(address, reason) from None
            except (OSError, RuntimeError) as error:
                raise LostWorkerError(address, str(error)) from error

    def _shut(self, lost: LostWorkerError) -> None:
        """Do without a worker; raise if too many were lost."""
        self._to_place |= {n for n, home in self._homes.items() if home == lost.address}
        self._homes = {n: home for n, home in self._homes.items() if home != lost.address}
        self._held.pop(lost.address, None)
        self._lost.append(lost)
        if len(self._lost) > self.max_failures:
            raise LostServerError(
                f"{len(self._lost)} workers were lost, more than max_failures={self.max_failures}: "
                + "; ".join(map(str, self._lost))
            ) from self._lost[0]
        # A worker that hangs still counts for the scheduler, which would wait for data on it.
        forget(self._client, lost.address, self.timeout)

    def _place_all(self) -> None:
        """Place partitions until no worker is lost over it."""
        while self._to_place:
            try:
                self._place()
            except LostWorkerError as lost:
                self._shut(lost)
        self.epoch += 1

    def _place(self) -> None:
        """Read partitions that no server holds, where they lie or where there is most room."""
        numbers = sorted(self._to_place)
        with releasing(self._client.compute([self.partitions[n] for n in numbers])) as futures:
            for number, future in zip(numbers, futures, strict=True):
                self._finish(future, f"partition {number}")
            holders = holders_of(self._client, [future.key for future in futures], self.timeout)
            for number, lying in zip(numbers, holders, strict=True):
                self._homes[number] = self._homes.get(number) or self._home(lying)
            with releasing(list(map(self._give, numbers, futures))) as tasks:
                for number, task in zip(numbers, tasks, strict=True):
                    self._finish(task, f"partition {number}", self._homes[number])
                    self._to_place.discard(number)

    def _give(self, number: int, table: Future) -> Future:
        """Give a partition to the server of its home."""
        address = self._homes[number]
        held = self._serve(address)
        return self._client.submit(
            hand_over, held.name, number, table, self.timeout, workers=[address], pure=False
        )

    def _finish(self, future: Future, name: str, address: str = "") -> None:
        """Wait for a task, of a worker or of any, however long it takes; raise its error."""
        stands_still = 0.0
        while True:
            try:
                failure = future.exception(timeout=LOOK_EVERY)
                break
            except TimeoutError:
                stands_still = self._look(address, stands_still)
        if isinstance(failure, NotServedError):
            raise LostWorkerError(address, str(failure))
        if future.cancelled():
            raise LostServerError(
                f"{name} cannot be read again: its source was in the memory of a lost worker; read"
                " X from files, or train again"
            )
        if failure is not None:
            future.result()  # raises it with its traceback

    def _look(self, address: str, stands_still: float) -> float:
        """Look after the workers; return since when the one that shall work does not, or none does.

        Raise LostWorkerError for one that has ended, is silent, or does not work in time.
        """
        workers, now = self._workers(), time.monotonic()
        for held in self._held:
            if held not in workers:
                raise LostWorkerError(held, "it has ended")
        for each, worker in workers.items():
            if worker.silence > self.timeout:
                raise LostWorkerError(each, f"it was not heard of for {self.timeout:g} s")
        needed = [workers[address]] if address else list(workers.values())
        if any(worker.status == "running" for worker in needed):
            return 0.0
        if not stands_still or now - stands_still <= self.timeout:
            return stands_still or now
        if not needed:
            raise LostServerError(f"the cluster has had no workers for {self.timeout:g} s")
        status = ", ".join(sorted({worker.status for worker in needed}))
        reason = f"it has been {status} for {self.timeout:g} s; a paused worker is short of memory"
        raise LostWorkerError(address or next(iter(workers)), reason)

    def _serve(self, address: str) -> Held:
        """Return the server on a worker, started if there is none."""
        if address not in self._held:
            self._n_started += 1
            name = f"sglb-{self._direct.id}-{self._n_started}"
            n_threads = self._workers().get(address, Worker(1, "", 0.0)).n_threads
            future = self._direct.submit(
                DaskServer, name, n_threads, actor=True, workers=[address], pure=False
            )
            with self._direct.as_current():
                actor = self._wait(address, future.result, time.monotonic() + self.timeout)
            self._held[address] = Held(name, actor, future)
        return self._held[address]

    def _workers(self) -> dict[str, Worker]:
        return workers_of(self._client, self.timeout)

    def _home(self, lying: list[str]) -> str:
        """Return a worker where a partition lies, or the one with the fewest; wait for one."""
        stands_still, homes = 0.0, list(self._homes.values())
        while True:
            running = [a for a, worker in self._workers().items() if worker.status == "running"]
            for address in lying:
                if address in running:
                    return address
            if running:
                return min(running, key=homes.count)
            stands_still = self._look("", stands_still)
            time.sleep(LOOK_EVERY)


@contextmanager
def releasing(futures: list[Future]) -> Iterator[list[Future]]:
    """Let results go at once, not when Python collects what refers to them."""
    try:
        yield futures
    finally:
        for future in futures:
            future.release()


def direct_client(client: Client, timeout: float) -> Client:
    """Return a client to talk to actors with, directly if the workers can be reached from here.

    What it keeps on the cluster, and what it waits for, ends with it.
    """
    if client.asynchronous:
        raise ValueError(
            "fit waits for its result, which an asynchronous client cannot do: pass a Client with"
            " asynchronous=False, in a thread of its own if need be"
        )
    workers = workers_of(client, timeout)
    direct = Client(
        client.scheduler.address,
        security=client.security,
        direct_to_workers=True,
        set_as_default=False,
        timeout=timeout,
    )
    direct.direct_to_workers = all(_reaches(direct, address) for address in workers)
    return direct


def _reaches(client: Client, address: str) -> bool:
    try:
        client.sync(client.rpc(address).identity, callback_timeout=REACH)
    except (OSError, TimeoutError):
        return False
    return True
