"""The workers of a cluster as its scheduler sees them. No call waits on a scheduler without end."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dask.distributed import Client

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

    def look(dask_scheduler: Any) -> dict[str, tuple[int, str, float]]:
        from distributed.metrics import time  # the clock by which it notes whom it hears

        return {
            address: (worker.nthreads, worker.status.name, time() - worker.last_seen)
            for address, worker in dask_scheduler.workers.items()
        }

    workers = _on_scheduler(client, timeout, look)
    return {address: Worker(*each) for address, each in workers.items()}


def holders_of(client: Client, keys: Sequence[Any], timeout: float) -> list[list[str]]:
    """Return the addresses of the workers that hold each result."""

    def look(dask_scheduler: Any) -> list[list[str]]:
        tasks = [dask_scheduler.tasks.get(key) for key in keys]
        holders = [() if task is None else task.who_has or () for task in tasks]
        return [[worker.address for worker in each] for each in holders]

    holders: list[list[str]] = _on_scheduler(client, timeout, look)
    return holders


def needed_by(client: Client, keys: Sequence[Any], timeout: float) -> set[str]:
    """Return the addresses of the workers that make results, or hold what they are made of."""

    def look(dask_scheduler: Any) -> list[str]:
        to_see = [dask_scheduler.tasks.get(key) for key in keys]
        seen, addresses = set(), set()
        while to_see:
            task = to_see.pop()
            if task is None or task.key in seen:
                continue
            seen.add(task.key)
            workers = [*(task.who_has or ()), task.processing_on]
            addresses |= {worker.address for worker in workers if worker is not None}
            if task.state != "memory":
                to_see += task.dependencies
        return list(addresses)

    return set(_on_scheduler(client, timeout, look))


def forget(client: Client, address: str, timeout: float) -> None:
    """Make the scheduler take a worker for lost, so that nothing waits for data on it.

    If it has a nanny, this kills it and starts another one.
    """

    async def remove(dask_scheduler: Any) -> None:
        import asyncio
        from contextlib import suppress

        from distributed.core import rpc

        async def kill(nanny: str) -> None:
            async with rpc(nanny, connection_args=dask_scheduler.connection_args) as to_nanny:
                await to_nanny.kill(reason="sglb-lost")

        worker = dask_scheduler.workers.get(address)
        if worker is None:
            return
        if worker.nanny:
            with suppress(OSError, TimeoutError):  # it may be lost with its worker
                await asyncio.wait_for(kill(worker.nanny), KILL)
        await dask_scheduler.remove_worker(address, stimulus_id="sglb-lost")

    _on_scheduler(client, timeout + KILL, remove)


def _on_scheduler(client: Client, timeout: float, function: Callable[..., Any]) -> Any:
    """Return what a function returns there; a local one, so that nothing is imported there.

    An import would keep the scheduler from hearing of anyone for seconds.
    """
    try:
        return client.run_on_scheduler(function, callback_timeout=timeout)
    except ValueError as error:  # distributed.scheduler.blocked-handlers names "run_function"
        raise ValueError(
            f"the scheduler {client.scheduler.address} runs no functions of its clients, by which"
            f" sglb looks after the workers: {error}"
        ) from error
    except (OSError, TimeoutError) as error:
        raise LostServerError(
            f"the scheduler {client.scheduler.address} does not answer ({error!r}); train again,"
            " with a Checkpoint to go on from"
        ) from error
