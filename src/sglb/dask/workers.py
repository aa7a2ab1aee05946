"""The workers of a cluster as its scheduler sees them. No call waits on a scheduler without end."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from dask.distributed import Client
from distributed.core import rpc

from sglb.cluster import LostServerError

# Seconds in which a nanny kills its worker: it asks for 4 and then does not.
KILL = 15.0


class Worker(NamedTuple):
    """What is known of a worker; `silence` is how many seconds ago it was last heard of."""

    n_threads: int
    status: str  # "running" takes tasks, "paused" is short of memory
    silence: float


def workers_of(client: Client, timeout: float) -> dict[str, Worker]:
    """Return the workers by address."""
    workers = _on_scheduler(client, timeout, _workers)
    return {address: Worker(*each) for address, each in workers.items()}


def holders_of(client: Client, keys: Sequence[Any], timeout: float) -> list[list[str]]:
    """Return the addresses of the workers that hold each result."""
    holders: list[list[str]] = _on_scheduler(client, timeout, _holders, keys=keys)
    return holders


def forget(client: Client, address: str, timeout: float) -> None:
    """Make the scheduler take a worker for lost, so that nothing waits for data on it.

    If it has a nanny, this kills it and starts another one.
    """
    _on_scheduler(client, timeout + KILL, _remove, address=address)


def _on_scheduler(
    client: Client, timeout: float, function: Callable[..., Any], **arguments: Any
) -> Any:
    try:
        return client.run_on_scheduler(function, callback_timeout=timeout, **arguments)
    except (OSError, TimeoutError) as error:
        raise LostServerError(
            f"the scheduler {client.scheduler.address} does not answer ({error!r}); train again,"
            " with a Checkpoint to go on from"
        ) from error


def _workers(dask_scheduler: Any) -> dict[str, tuple[int, str, float]]:
    now = time.time()  # the clock by which the scheduler notes when it hears of a worker
    return {
        address: (worker.nthreads, worker.status.name, now - worker.last_seen)
        for address, worker in dask_scheduler.workers.items()
    }


def _holders(keys: Sequence[Any], dask_scheduler: Any) -> list[list[str]]:
    tasks = [dask_scheduler.tasks.get(key) for key in keys]
    return [[] if task is None else [each.address for each in task.who_has or ()] for task in tasks]


async def _remove(address: str, dask_scheduler: Any) -> None:
    worker = dask_scheduler.workers.get(address)
    if worker is None:
        return
    if worker.nanny:
        with suppress(OSError, TimeoutError):
            await asyncio.wait_for(_kill(worker.nanny, dask_scheduler), KILL)
    await dask_scheduler.remove_worker(address, stimulus_id="sglb-lost")


async def _kill(nanny: str, dask_scheduler: Any) -> None:
    async with rpc(nanny, connection_args=dask_scheduler.connection_args) as to_nanny:
        await to_nanny.kill(reason="sglb-lost")
