"""The workers of a cluster as its scheduler sees them."""

from typing import Any

from dask.distributed import Client


def running_workers(client: Client) -> dict[str, int]:
    """Return the addresses of the workers that take tasks, and how many threads each has."""
    workers: dict[str, int] = client.run_on_scheduler(_running)
    return workers


def forget(client: Client, address: str) -> None:
    """Make the scheduler take a worker for lost, so that nothing waits for data on it."""
    client.run_on_scheduler(_remove, address=address)


def _running(dask_scheduler: Any) -> dict[str, int]:
    workers = dask_scheduler.workers.items()
    return {address: each.nthreads for address, each in workers if each.status.name == "running"}


async def _remove(address: str, dask_scheduler: Any) -> None:
    await dask_scheduler.remove_worker(address, stimulus_id="sglb-lost", close=False)
