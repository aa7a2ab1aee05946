"""Clusters of Dask on this machine, tables in partitions on them, and what is left of a fit."""

import contextlib
import threading
import time
from itertools import pairwise

import dask.dataframe as dd
from dask.distributed import Client, LocalCluster
from distributed.core import Status

from sglb.dask.actors import SERVERS

CUTS = (1, 300, 300, 420)


@contextlib.contextmanager
def cluster(n_workers, **options):
    """A client of workers in processes of their own."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0"} | options
    workers = LocalCluster(n_workers=n_workers, **options)
    try:
        with Client(workers) as client:
            yield client
    finally:
        try:
            workers.close()
        except TimeoutError:  # of a process that a busy machine is slow to end
            pass
        except KeyError:
            # Dask's list of workers may lack one that took the place of a killed one. The list is
            # read when all workers and the scheduler have been closed.
            workers.status = Status.closed
            workers._loop_runner.stop()


def parts_of(table, cuts=CUTS):
    """A table cut before some rows: two numbers that are equal make an empty part."""
    ends = [0, *cuts, len(table)]
    rows = table.iloc if hasattr(table, "iloc") else table
    return [rows[first:last] for first, last in pairwise(ends)]


def in_partitions(frame, cuts=CUTS):
    """A lazy frame of Dask, in uneven partitions."""
    return dd.from_map(itself, parts_of(frame, cuts), meta=frame.iloc[:0])


def itself(part):
    return part


def numbers_on(dask_worker):
    mine = dask_worker.state.actors.values()
    return [sorted(server.server.numbers) for server in SERVERS.values() if server in mine]


def served(client):
    """The numbers of the pieces in each server of rows, by the worker that it is on."""
    return client.run(numbers_on)


def left_over(client):
    """What there is of fits that have ended: keys, servers, clients of their own."""
    keys, clients = client.run_on_scheduler(
        lambda dask_scheduler: (
            [str(key) for key in dask_scheduler.tasks],
            [each for each in dask_scheduler.clients if each != "fire-and-forget"],
        )
    )
    mine = [key for key in keys if "DaskServer" in key or "hand_over" in key]
    others = [each for each in clients if each != client.id]
    return mine + others + [each for held in served(client).values() for each in held]


@contextlib.contextmanager
def leaving_nothing(client, patience=10.0):
    """Nothing of a fit stays on the cluster, and no thread here."""
    before = threads()
    yield
    end = time.monotonic() + patience
    while (left_over(client) or not threads() <= before) and time.monotonic() < end:
        time.sleep(0.05)
    left = left_over(client)
    assert not left, left
    assert threads() <= before, threads() - before


def threads():
    """The threads here but for the pools that Dask keeps."""
    return {each.name for each in threading.enumerate() if "Offload" not in each.name}
