"""Workers of a Dask cluster that are busy are waited for; those that are not needed are let be."""

import asyncio
import os
import signal
import threading
import time
import traceback

import dask
import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
import dask.dataframe as dd
from dask.distributed import Client

from dask_clusters import cluster, in_partitions, itself
from sglb import SGLBRegressor
from sglb.cluster import LostServerError, Server, is_of_a_step
from sglb.cluster.raw import RawPiece
from sglb.cluster.server import OF_A_STEP, Served
from sglb.dask.comm import DaskComm
from sglb.dask.lookout import Lookout, LostWorkerError
from sglb.dask.workers import workers_of
from test_dask import on_cluster
from test_held import awkward_frame, fitted, model_bytes

# A machine with a queue takes seconds to answer, too.
IMPATIENT = {"timeout": 5.0, "max_failures": 0}
LONGER = 7.0


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        client.run(fitted, SGLBRegressor, *awkward_frame()[:2])  # imports take seconds
        yield client


@pytest.fixture(scope="module")
def table():
    frame, y, _ = awkward_frame()
    return frame, y, model_bytes(fitted(SGLBRegressor, frame, y))


def test_only_questions_of_a_step_must_be_answered_in_time():
    methods = {name for name in vars(Served) if not name.startswith("_")}
    others = {"shards", "advance", "raw", "energy", "squared_residuals"}
    assert methods - others == OF_A_STEP
    for name in methods | others:
        assert is_of_a_step("ask", (0, None, name)) == (name in OF_A_STEP)
    assert not any(is_of_a_step(name, ()) for name in vars(Server) if name != "ask")


def test_a_question_that_grows_with_the_trees_may_take_long(monkeypatch, table):
    calls = []

    def slowly(served, *arguments, question=Served.squared_residuals):
        calls.append(time.sleep(LONGER))
        return question(served, *arguments)

    frame, y, expected = table
    monkeypatch.setattr(Served, "squared_residuals", slowly)
    with cluster(1, processes=False) as client:
        fit = IMPATIENT | {"client": client}
        result = on_cluster(SGLBRegressor, in_partitions(frame), y, fit=fit)
    assert calls
    assert model_bytes(result) == expected


def test_two_fits_on_a_worker_do_not_wait_for_each_other(monkeypatch, table):
    def slowly(piece, *arguments, question=RawPiece.encode):
        if not started.is_set():
            started.set()
            finished.wait(60)
        return question(piece, *arguments)

    frame, y, expected = table
    started, finished = threading.Event(), threading.Event()
    with cluster(1, processes=False) as client, monkeypatch.context() as patch:
        patch.setattr(RawPiece, "encode", slowly)
        first = threading.Thread(
            target=lambda: on_cluster(SGLBRegressor, frame_of(frame), y, fit={"client": client})
        )
        first.start()
        assert started.wait(60)
        try:
            fit = IMPATIENT | {"client": client}
            result = on_cluster(SGLBRegressor, frame_of(frame), y, fit=fit)
            assert first.is_alive()
        finally:
            finished.set()
            first.join()
    assert model_bytes(result) == expected


def frame_of(frame):
    return in_partitions(frame, ())


def slow_down(seconds):
    """Let coding take longer in this process, from now on."""

    def slowly(*arguments, encode=RawPiece.encode):
        time.sleep(seconds)
        return encode(*arguments)

    RawPiece.encode = slowly


def test_a_server_that_codes_is_not_lost_with_another_one(table, monkeypatch):
    frame, y, expected = table

    def kill_one(comm, question, *arguments, ask=DaskComm.ask, **options):
        if question == "ask_pieces" and arguments[0] == "encode" and not timers:
            process = processes[next(iter(comm._held))]
            timers.append(threading.Timer(0.5, os.kill, (process, signal.SIGKILL)))
            timers[0].start()
        return ask(comm, question, *arguments, **options)

    timers = []
    with cluster(2) as client:
        for nanny in client.cluster.workers.values():
            nanny.close_gracefully()  # no new worker, which would be silent over imports
        client.run(fitted, SGLBRegressor, frame, y)
        client.run(slow_down, LONGER)
        processes = client.run(os.getpid)
        monkeypatch.setattr(DaskComm, "ask", kill_one)
        fit = IMPATIENT | {"max_failures": 1}
        result = on_cluster(SGLBRegressor, in_partitions(frame, (300,)), y, fit=fit)
        assert len(client.scheduler_info()["workers"]) == 1
    assert timers
    assert model_bytes(result) == expected


def test_a_worker_that_is_busy_with_tasks_of_others_is_waited_for(client, table, monkeypatch):
    frame, y, expected = table
    address = next(iter(client.scheduler_info()["workers"]))
    monkeypatch.setattr(DaskComm, "_running", lambda comm: [address])
    monkeypatch.setattr("sglb.dask.comm.holders_of", lambda *arguments: [[]] * 5)
    busy = client.submit(time.sleep, LONGER, workers=[address], pure=False)
    assert (
        model_bytes(on_cluster(SGLBRegressor, in_partitions(frame), y, fit=IMPATIENT)) == expected
    )
    assert busy.done()


def test_what_comes_to_the_client_may_take_longer_than_an_answer(client, table, monkeypatch):
    async def slowly(*arguments, gather=Client._gather, **options):
        await asyncio.sleep(LONGER)
        return await gather(*arguments, **options)

    frame, y, _ = table
    with DaskComm(client, [dask.delayed(frame)], **IMPATIENT) as comm:
        monkeypatch.setattr(Client, "_gather", slowly)
        brought = comm.bring(da.from_array(y, chunks=400))
    assert np.array_equal(brought, y)


def test_collections_are_the_same_here(client, table):
    frame, y, _ = table
    two = np.stack([y, -y], axis=1)
    frame = frame.assign(city=np.where(y > 0, "Oslo", "Rome")).astype({"city": "category"})
    with DaskComm(client, [dask.delayed(frame)], timeout=9.0, max_failures=0) as comm:
        assert np.array_equal(comm.bring(da.from_array(two, chunks=(300, 1))), two)
        brought = comm.bring(in_partitions(frame))
        assert brought.equals(frame)
        assert comm.bring(in_partitions(frame)["city"]).equals(frame["city"])


def test_a_silent_worker_that_nothing_needs_is_let_be(client, monkeypatch):
    client.wait_for_workers(2, timeout=60)
    near, far = client.scheduler_info()["workers"]

    def looks(*arguments):
        seen = workers_of(*arguments)
        return seen | {far: seen[far]._replace(silence=99.0)}

    monkeypatch.setattr("sglb.dask.lookout.workers_of", looks)
    here = client.submit(itself, 1, workers=[near], pure=False)
    busy = client.submit(time.sleep, 2.0, workers=[far], pure=False)
    later = client.submit(itself, busy, workers=[near], pure=False)
    here.result()
    lookout = Lookout(client, 5.0, {near})
    assert lookout.look("", 0.0, [here.key]) == 0.0
    for needed in (busy, later):
        with pytest.raises(LostWorkerError, match="was not heard of for 5 s"):
            lookout.look("", 0.0, [needed.key])
    for seen, address in ((Lookout(client, 5.0, {far}), ""), (lookout, far)):
        with pytest.raises(LostWorkerError, match="was not heard of for 5 s"):
            seen.look(address, 0.0)
    with pytest.raises(LostWorkerError, match="it has ended"):
        lookout.look("tcp://127.0.0.1:1", 0.0)


class Unreadable:
    """Can be sent, and not be read."""

    def __reduce__(self):
        return int, ("not a number",)


def answer_unreadably(question):
    """Let servers in this process answer what nobody can read."""
    setattr(Server, question, lambda server: Unreadable())


def test_an_answer_that_cannot_be_read_is_an_error(client, table):
    frame, _, _ = table
    with DaskComm(client, [dask.delayed(frame)], **IMPATIENT) as comm:
        client.run(answer_unreadably, "unreadable")
        with pytest.raises(ValueError, match="invalid literal for int"):
            comm.ask("unreadable")


def test_an_error_names_the_worker(client, table):
    frame, y, _ = table
    frame = frame.copy()
    frame.loc[555, "missing"] = np.inf
    with pytest.raises(ValueError, match="row 555") as caught:
        on_cluster(SGLBRegressor, in_partitions(frame), y)
    notes = "\n".join(caught.value.__notes__)
    assert any(f"That was {address}." in notes for address in client.scheduler_info()["workers"])


def fail(part):
    raise OSError("the disk is gone")


def end(part):
    os._exit(1)


def test_an_error_of_reading_names_the_partition(client, table):
    frame, y, _ = table
    parts = [dask.delayed(frame[:300]), dask.delayed(fail)(0)]
    X = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(OSError, match="the disk is gone") as caught:
        on_cluster(SGLBRegressor, X, y)
    assert "This happened to partition 1." in caught.value.__notes__
    assert "fail" in [frame.name for frame in traceback.extract_tb(caught.tb)]


def test_a_partition_that_ends_its_workers_is_named(table):
    frame, y, _ = table
    parts = [dask.delayed(frame[:300]), dask.delayed(end)(0)]
    X = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    allowed = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with allowed, cluster(1) as client:
        fit = {"client": client}
        with pytest.raises(LostServerError, match=r"partition \d has cost several workers: .*tcp"):
            on_cluster(SGLBRegressor, X, y, fit=fit)
        client.wait_for_workers(1, timeout=60)


def test_a_scheduler_that_runs_no_functions_is_told_of(table):
    frame, y, _ = table
    blocked = dask.config.set({"distributed.scheduler.blocked-handlers": ["run_function"]})
    with blocked, cluster(1, processes=False) as client:
        fit = {"client": client}
        with pytest.raises(ValueError, match=r"runs no functions of its clients, by which"):
            on_cluster(SGLBRegressor, in_partitions(frame), y, fit=fit)
