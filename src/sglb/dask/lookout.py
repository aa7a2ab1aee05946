"""Waiting for workers: as long as it takes, if they are heard of and can work."""

import asyncio
import time
from collections.abc import Collection, Sequence
from typing import Any

from dask.distributed import Client, Future
from distributed.scheduler import KilledWorker

from sglb.cluster import LostServerError
from sglb.dask.actors import NotServedError
from sglb.dask.workers import Worker, needed_by, workers_of

# Seconds between two looks whether a worker that has not answered yet is still there.
LOOK_EVERY = 0.5


class LostWorkerError(Exception):
    """A worker that does not answer any more."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}"


class Lookout:
    """Looks after the workers of a cluster, those that are `serving` above all.

    A worker is lost if it ends, is silent or, when it shall take a task, cannot for `timeout`
    seconds. One that nothing here needs may do as it likes.
    """

    def __init__(self, client: Client, timeout: float, serving: Collection[str]) -> None:
        self._client, self._timeout, self._serving = client, timeout, serving

    def workers(self) -> dict[str, Worker]:
        """Return the workers by address."""
        return workers_of(self._client, self._timeout)

    def finish(self, future: Future, name: str, address: str = "") -> None:
        """Wait for a task, of a worker or of any, however long it takes; raise its error."""
        stands_still = 0.0
        while True:
            try:
                failure = future.exception(timeout=LOOK_EVERY)
                break
            except TimeoutError:
                stands_still = self.look(address, stands_still, [future.key])
        if isinstance(failure, NotServedError):
            raise LostWorkerError(address, str(failure))
        if isinstance(failure, KilledWorker):
            raise LostServerError(f"{name} has cost several workers: {failure}") from failure
        if future.cancelled():
            raise LostServerError(
                f"{name} cannot be read again: its source was in the memory of a lost worker; read"
                " X from files, or train again"
            )
        if failure is not None:
            failure.add_note(f"This happened to {name}.")
            raise failure

    def fetch(self, future: Future, name: str) -> Any:
        """Return the result of a task of any worker, however long it takes to make and to come."""
        self.finish(future, name)
        loop = self._client.loop.asyncio_loop
        coming = asyncio.run_coroutine_threadsafe(
            self._client.gather(future, asynchronous=True), loop
        )
        try:
            while True:
                try:
                    return coming.result(LOOK_EVERY)
                except TimeoutError:
                    if coming.done():
                        raise
                self.look("", 0.0, [future.key])
        finally:
            coming.cancel()

    def look(self, address: str, stands_still: float, keys: Sequence[str] = ()) -> float:
        """Look after the workers; return since when the one that shall work does not, or none does.

        `keys` are those of the results that are waited for. Raise LostWorkerError for a worker that
        has ended, is silent, or does not work in time.
        """
        workers, now = self.workers(), time.monotonic()
        wanted = {*self._serving, *([address] if address else [])}
        for each in sorted(wanted - workers.keys()):
            raise LostWorkerError(each, "it has ended")
        silent = [each for each, worker in workers.items() if worker.silence > self._timeout]
        if silent:
            wanted |= needed_by(self._client, keys, self._timeout)
        for each in silent:
            if each in wanted:
                raise LostWorkerError(each, f"it was not heard of for {self._timeout:g} s")
        needed = [workers[address]] if address else list(workers.values())
        if any(worker.status == "running" for worker in needed):
            return 0.0
        if not stands_still or now - stands_still <= self._timeout:
            return stands_still or now
        if not needed:
            raise LostServerError(f"the cluster has had no workers for {self._timeout:g} s")
        status = ", ".join(sorted({worker.status for worker in needed}))
        reason = f"it has been {status} for {self._timeout:g} s; a paused worker is short of memory"
        raise LostWorkerError(address or next(iter(workers)), reason)
