"""Servers on the workers of a Dask cluster: an actor on each worker that holds partitions.

Dask moves the data, this module asks and answers. A question has an answer in time, or its worker
is taken to be lost: the scheduler is told to forget it, its partitions are read again elsewhere,
and who asked asks once more (`Moved`). Tasks, and questions that grow with columns or trees, may
take any time, as long as the workers are heard of. A worker that wakes up later is asked nothing.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from types import TracebackType
from typing import Any, NamedTuple, Self

from dask.distributed import Client, Future
from distributed.protocol.pickle import dumps

from sglb.cluster import LostServerError, Moved, is_of_a_step
from sglb.cluster.comm import share_of
from sglb.dask.actors import DaskServer, NotServedError, Packed, hand_over
from sglb.dask.collections import parts_of
from sglb.dask.lookout import LOOK_EVERY, Lookout, LostWorkerError
from sglb.dask.workers import Worker, forget, holders_of, workers_of

# Seconds in which a worker that can be reached from here answers, and a client ends.
REACH = 5.0


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
        self._lookout = Lookout(client, timeout, self._held.keys())
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
        in_time = is_of_a_step(question, arguments)
        with self._lock:
            answers = {} if self._to_place else self._ask_all(message, shares, in_time=in_time)
            if self._to_place:
                self._place_all()
                raise Moved
        for address, (_, error) in answers.items():
            if error is not None:
                error.add_note(f"That was {address}.")
                raise error
        return [answer for answer, _ in answers.values()]

    def bring(self, value: Any) -> Any:
        """Return a collection of Dask as an array or a frame in memory."""
        parts, join = parts_of(value)
        name = f"a {type(value).__name__} that is brought to the client"
        with releasing(self._client.compute(parts)) as futures:
            return join([self._fetch(future, name) for future in futures])

    def _fetch(self, future: Future, name: str) -> Any:
        while True:
            try:
                return self._lookout.fetch(future, name)
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
        self, message: bytes, shares: Mapping[int, Any] | None, *, in_time: bool
    ) -> dict[str, tuple[Any, Any]]:
        """Return the answer or the error of each server; those without lose their workers."""
        here: dict[str, list[int]] = {address: [] for address in self._held}
        for number, home in self._homes.items():
            here[home].append(number)
        asked, lost = dict[str, Any](), list[LostWorkerError]()
        for address, held in self._held.items():
            share = share_of(here[address], shares)
            try:
                asked[address] = held.actor.ask(
                    message, here[address], dumps(share[0]) if share else None
                )
            except RuntimeError as gone:  # the scheduler knows that it is lost
                lost.append(LostWorkerError(address, str(gone)))
        packed = self._wait(asked, lost, in_time=in_time)
        answers = {address: answer.unpack() for address, answer in packed.items()}
        for address, (_, error) in answers.items():
            if isinstance(error, NotServedError):
                lost.append(LostWorkerError(address, str(error)))
        for each in lost:
            self._shut(each)
        return answers

    def _wait(
        self, asked: Mapping[str, Any], lost: list[LostWorkerError], *, in_time: bool
    ) -> dict[str, Packed]:
        """Return what comes from workers; `lost` gets those from which nothing comes.

        All others are waited for: no server is busy when it gets the partitions of a lost one. What
        need not come `in_time` has any, as long as the worker is heard of.
        """
        answers, waiting = dict[str, Packed](), dict(asked)
        end = time.monotonic() + self.timeout
        while waiting:
            address = next(iter(waiting))
            left = end - time.monotonic()
            try:
                patience = max(min(left, LOOK_EVERY), 0.01) if in_time else LOOK_EVERY
                answers[address] = waiting[address].result(timeout=patience)
                del waiting[address]
            except (OSError, RuntimeError) as error:
                if waiting[address].done() or not isinstance(error, TimeoutError):
                    lost.append(LostWorkerError(address, str(error) or repr(error)))
                    del waiting[address]
                    continue
                late = in_time and left <= 0.0
                for each in self._gone(waiting, late=late):
                    lost.append(each)
                    del waiting[each.address]
        return answers

    def _gone(self, waiting: Mapping[str, Any], *, late: bool) -> list[LostWorkerError]:
        """Return those of workers that have ended or are silent, or all that have not answered."""
        workers, gone = self._lookout.workers(), []
        for address, answer in waiting.items():
            worker = workers.get(address)
            if worker is None:
                gone.append(LostWorkerError(address, "it has ended"))
            elif not answer.done() and (late or worker.silence > self.timeout):
                reason = f"it has not answered for {self.timeout:g} s"
                gone.append(LostWorkerError(address, reason))
        return gone

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
                self._lookout.finish(future, f"partition {number}")
            holders = holders_of(self._client, [future.key for future in futures], self.timeout)
            self._find_homes(dict(zip(numbers, holders, strict=True)))
            with releasing(list(map(self._give, numbers, futures))) as tasks:
                for number, task in zip(numbers, tasks, strict=True):
                    self._lookout.finish(task, f"partition {number}", self._homes[number])
                    self._to_place.discard(number)

    def _give(self, number: int, table: Future) -> Future:
        """Give a partition to the server of its home."""
        address = self._homes[number]
        held = self._serve(address)
        return self._client.submit(
            hand_over, held.name, number, table, workers=[address], pure=False
        )

    def _serve(self, address: str) -> Held:
        """Return the server on a worker, started if there is none."""
        if address not in self._held:
            self._n_started += 1
            name = f"sglb-{self._direct.id}-{self._n_started}"
            n_threads = self._lookout.workers().get(address, Worker(1, "", 0.0)).n_threads
            future = self._direct.submit(
                DaskServer, name, n_threads, actor=True, workers=[address], pure=False
            )
            self._lookout.finish(future, "a server of rows", address)  # once its worker has time
            try:
                with self._direct.as_current():
                    actor = future.result(timeout=self.timeout)
            except TimeoutError:
                raise LostWorkerError(address, "it has started no server") from None
            self._held[address] = Held(name, actor, future)
        return self._held[address]

    def _find_homes(self, holders: Mapping[int, list[str]]) -> None:
        """Give partitions homes: where they lie, or with the workers that have the fewest."""
        running, counts = self._running(), Counter(self._homes.values())
        for number, lying in holders.items():
            if number not in self._homes:
                near = [address for address in lying if address in running]
                home = near[0] if near else min(running, key=counts.__getitem__)
                self._homes[number] = home
                counts[home] += 1

    def _running(self) -> list[str]:
        """Return the workers that take tasks; wait for one."""
        stands_still = 0.0
        while True:
            workers = self._lookout.workers()
            running = [
                address
                for address, worker in workers.items()
                if worker.status == "running" and worker.silence <= self.timeout
            ]
            if running:
                return running
            stands_still = self._lookout.look("", stands_still)
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
    try:
        direct.direct_to_workers = all(_reaches(direct, address) for address in workers)
    except BaseException:
        direct.close(timeout=min(timeout, REACH))
        raise
    return direct


def _reaches(client: Client, address: str) -> bool:
    try:
        client.sync(client.rpc(address).identity, callback_timeout=REACH)
    except (OSError, TimeoutError):
        return False
    return True
