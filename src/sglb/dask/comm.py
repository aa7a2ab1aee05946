"""Servers on the workers of a Dask cluster: an actor on each worker that holds partitions.

Dask moves the data, this module asks and answers. A question has an answer in time, or its worker
is taken to be lost: it is shut out, its partitions are read again elsewhere, and who asked asks
once more (`Moved`). A worker that wakes up later is asked nothing.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from dask.distributed import Client, Future
from distributed.protocol.pickle import dumps, loads

from sglb.cluster import LostServerError, Moved, Server
from sglb.cluster.comm import share_of
from sglb.dask.workers import forget, running_workers

# Seconds between two looks whether a worker that has not answered yet is still there.
LOOK_EVERY = 0.5

# The servers in this process, by the name that their client has given them.
SERVERS: WeakValueDictionary[str, "DaskServer"] = WeakValueDictionary()


class DaskServer:
    """A server as an actor, which tasks on the same worker find by its name."""

    def __init__(self, name: str, n_threads: int) -> None:
        self.server = Server(n_threads=n_threads)
        SERVERS[name] = self

    def ask(self, message: bytes, share: bytes | None) -> tuple[Any, Exception | None]:
        """Return an answer, or the error there was instead."""
        question, arguments = loads(message)
        shares = () if share is None else (loads(share),)
        try:
            return getattr(self.server, question)(*arguments, *shares), None
        except Exception as error:  # an error that is raised would pass for one of the cluster
            return None, error


def hand_over(name: str, number: int, table: Any) -> None:
    """Give a partition to the server on the worker where this runs."""
    SERVERS[name].server.read({number: table})


class LostWorkerError(Exception):
    """A worker that does not answer any more."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason


class DaskComm:
    """Servers that hold partitions; they end with the block: `with DaskComm(...)`.

    `partitions` are delayed objects, arrays or frames, in the order of the table. A question that
    has no answer after `timeout` seconds loses its worker; more than `max_failures` workers may not
    be lost.
    """

    epoch = 0

    def __init__(
        self,
        client: Client,
        partitions: Sequence[Any],
        *,
        timeout: float,
        max_failures: int,
    ) -> None:
        self.partitions = list(partitions)
        self.timeout, self.max_failures = timeout, max_failures
        # A client of its own, which talks to workers without a detour by the scheduler.
        self._client = Client(
            client.scheduler.address,
            security=client.security,
            direct_to_workers=True,
            set_as_default=False,
            timeout=timeout,
        )
        self._name = f"sglb-{self._client.id}"
        self._lock = RLock()
        self._actors: dict[str, Any] = {}
        self._kept: list[Future] = []  # of the actors, which live as long as these
        self._homes: dict[int, str] = {}
        self._shut_out: dict[str, str] = {}
        self._to_place = set(range(len(self.partitions)))
        try:
            self._with_replacements(self._place)
        except BaseException:
            self.close()
            raise
        self.epoch = 0

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
                answers = self._ask_all(message, shares)
            except LostWorkerError as lost:
                self._replace(lost)
                raise Moved from lost
        for _, error in answers:
            if error is not None:
                raise error
        return [answer for answer, _ in answers]

    def close(self) -> None:
        """Let the servers go."""
        self._actors.clear()
        for future in self._kept:
            with suppress(Exception):
                future.release()
        with suppress(Exception):
            self._client.close(timeout=min(self.timeout, 5.0))

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
        self, message: bytes, shares: Mapping[int, Any] | None
    ) -> list[tuple[Any, Exception | None]]:
        waiting = []
        for address, actor in self._actors.items():
            here = [number for number, home in self._homes.items() if home == address]
            share = share_of(here, shares)
            try:
                waiting.append((address, actor.ask(message, dumps(share[0]) if share else None)))
            except RuntimeError as error:  # the scheduler knows that it is lost
                raise LostWorkerError(address, str(error)) from error
        return [self._wait(address, future.result) for address, future in waiting]

    def _wait(self, address: str, result: Callable[..., Any]) -> Any:
        """Return a result from a worker; raise LostWorkerError if there is none in time."""
        end = time.monotonic() + self.timeout
        while True:
            left = end - time.monotonic()
            try:
                return result(timeout=max(min(left, LOOK_EVERY), 0.01))
            except TimeoutError:
                if address not in self._workers():
                    raise LostWorkerError(address, "it has ended") from None
                if left <= 0.0:
                    reason = f"it has not answered for {self.timeout:g} s"
                    raise LostWorkerError(address, reason) from None
            except (OSError, RuntimeError) as error:
                raise LostWorkerError(address, str(error)) from error

    def _replace(self, lost: LostWorkerError) -> None:
        """Shut a worker out, and place its partitions elsewhere."""
        self._shut(lost)
        self._with_replacements(self._place)
        self.epoch += 1

    def _with_replacements(self, task: Callable[[], None]) -> None:
        """Do something until no worker is lost over it."""
        while True:
            try:
                return task()
            except LostWorkerError as lost:
                self._shut(lost)

    def _shut(self, lost: LostWorkerError) -> None:
        """Shut a worker out; raise if too many were lost."""
        self._shut_out[lost.address] = lost.reason
        self._actors.pop(lost.address, None)
        self._to_place |= {n for n, home in self._homes.items() if home == lost.address}
        self._homes = {n: home for n, home in self._homes.items() if home != lost.address}
        if len(self._shut_out) > self.max_failures:
            raise LostServerError(
                f"{len(self._shut_out)} workers were lost, more than max_failures="
                f"{self.max_failures}: "
                + "; ".join(f"{address}: {reason}" for address, reason in self._shut_out.items())
            )
        # A worker that hangs still counts for the scheduler, which would wait for data on it.
        with suppress(Exception):
            forget(self._client, lost.address)

    def _place(self) -> None:
        """Read partitions that no server holds, where they lie or where there is most room."""
        numbers = sorted(self._to_place)
        futures = self._client.compute([self.partitions[number] for number in numbers])
        self._finish(futures)
        lies = self._client.who_has(futures)
        for number, future in zip(numbers, futures, strict=True):
            lying = [address for address in lies.get(future.key, ()) if address in self._workers()]
            address = lying[0] if lying else self._emptiest()
            self._serve(address)
            self._run_on(address, hand_over, self._name, number, future)
            self._homes[number] = address
            self._to_place.discard(number)

    def _finish(self, futures: Iterable[Future]) -> None:
        """Wait for partitions, however long they take; raise the error of one that fails."""
        for future in futures:
            while True:
                try:
                    error = future.exception(timeout=self.timeout)
                    break
                except TimeoutError:
                    if not self._workers():
                        raise LostServerError("the cluster has no workers left") from None
            if error is not None:
                raise error

    def _serve(self, address: str) -> None:
        """Start a server on a worker that has none."""
        if address in self._actors:
            return
        n_threads = self._workers().get(address, 1)
        future = self._client.submit(
            DaskServer, self._name, n_threads, actor=True, workers=[address], pure=False
        )
        with self._client.as_current():
            self._actors[address] = self._wait(address, future.result)
        self._kept.append(future)

    def _run_on(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        future = self._client.submit(function, *arguments, workers=[address], pure=False)
        return self._wait(address, future.result)

    def _workers(self) -> dict[str, int]:
        """Return the workers that are not shut out, and how many threads each has."""
        workers = running_workers(self._client)
        return {address: n for address, n in workers.items() if address not in self._shut_out}

    def _emptiest(self) -> str:
        """Return the worker with the fewest partitions; wait for one if there is none."""
        end, homes = time.monotonic() + self.timeout, list(self._homes.values())
        while not (workers := self._workers()):
            if time.monotonic() > end:
                raise LostServerError("the cluster has no workers left")
            time.sleep(LOOK_EVERY)
        return min(workers, key=homes.count)
