"""Workers of a Dask cluster that are killed, stopped or short of memory, and a killed driver."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dask")
pytest.importorskip("distributed")

import dask.dataframe as dd

from dask_clusters import (
    cluster,
    in_partitions,
    itself,
    leaving_nothing,
    parts_of,
    served,
)
from dask_driver import train
from sglb import SGLBRegressor
from sglb.cluster import LostServerError, Server
from sglb.dask.comm import DaskComm
from sglb.dask.workers import workers_of
from test_dask import on_cluster
from test_held import awkward_frame, fitted, model_bytes, with_levels

# Seconds after which a worker that does not answer is lost. A machine with a queue may take them to
# start a worker, so that one more is lost.
PATIENCE = {"timeout": 4.0, "max_failures": 10}


@pytest.fixture(scope="module")
def client():
    with cluster(3) as client:
        yield client
        with contextlib.suppress(TimeoutError):
            settled(client)  # a nanny that starts a worker does not end well


@pytest.fixture(scope="module")
def table():
    frame, y, rng = awkward_frame()
    frame = with_levels(frame, rng)
    return frame, y, fitted(SGLBRegressor, frame, y)


class Faults:
    """Sends signals to workers that hold rows, before questions of some numbers."""

    def __init__(self, monkeypatch, client, number, *before):
        self.client, self.number, self.before = client, number, set(before)
        self.n_asked, self.hit = 0, []
        ask = DaskComm.ask

        def counted(comm, question, *arguments, **options):
            self.n_asked += 1
            if self.n_asked in self.before:
                self.send(next(iter(comm._held)))
            return ask(comm, question, *arguments, **options)

        monkeypatch.setattr(DaskComm, "ask", counted)

    def send(self, address):
        process = self.client.run(os.getpid, workers=[address])[address]
        self.hit.append(process)
        os.kill(process, self.number)


def settled(client, n_workers=3):
    """Wait for workers that nannies start, and let them import what takes seconds."""
    try:
        client.wait_for_workers(n_workers, timeout=20)
    except TimeoutError:  # a nanny does not outlive a worker that is killed before it has started
        client.cluster.scale(0)
        client.cluster.scale(n_workers)
        client.wait_for_workers(n_workers, timeout=60)
    end = time.monotonic() + 60
    while len(client.run(itself, 0, on_error="ignore")) < n_workers and time.monotonic() < end:
        time.sleep(0.1)


# Questions 1 to 8 read and code the rows; then come three for each of eight trees.
@pytest.mark.parametrize(
    ("number", "before"),
    [
        (signal.SIGKILL, (6, 7)),
        (signal.SIGKILL, (14, 16)),
        (signal.SIGSTOP, (6,)),
        (signal.SIGSTOP, (20,)),
    ],
    ids=[
        "two killed in a row while they code",
        "one killed, then one that takes its rows over",
        "stopped while it codes",
        "stopped later",
    ],
)
def test_a_worker_is_lost_and_the_model_is_the_same(client, table, monkeypatch, number, before):
    frame, y, expected = table
    settled(client)
    with monkeypatch.context() as patch, leaving_nothing(client):
        faults = Faults(patch, client, number, *before)
        result = on_cluster(SGLBRegressor, in_partitions(frame), y, fit=PATIENCE)
    assert len(faults.hit) == len(before)
    assert model_bytes(result) == model_bytes(expected)
    assert not any(map(is_alive, faults.hit))


def is_alive(process):
    return Path(f"/proc/{process}").exists()


def test_of_two_chains_both_go_on_when_a_worker_is_lost(client, table, monkeypatch):
    frame, y, _ = table
    settled(client)
    chains = {"n_chains": 2, "n_jobs": 2}
    with monkeypatch.context() as patch, leaving_nothing(client):
        Faults(patch, client, signal.SIGKILL, 30)
        result = on_cluster(SGLBRegressor, in_partitions(frame), y, **chains)
    assert model_bytes(result) == model_bytes(fitted(SGLBRegressor, frame, y, **chains))


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["stops", "is killed"])
def test_a_worker_that_ends_while_it_reads_is_lost(client, table, tmp_path, number):
    frame, y, expected = table
    settled(client)
    path = tmp_path / "process"
    X = dd.from_map(
        signal_first,
        parts_of(frame),
        path=str(path),
        number=number,
        enforce_metadata=False,
        meta=frame.iloc[:0],
    )
    # The nanny tells of a worker that is killed; those that start anew are silent over imports.
    fit = PATIENCE if number == signal.SIGSTOP else {}
    result = on_cluster(SGLBRegressor, X, y, fit=fit)
    assert model_bytes(result) == model_bytes(expected)
    assert not is_alive(path.read_text())


def signal_first(part, path, number):
    """Return a part; the first process that does sends itself a signal over it."""
    try:
        with open(path, "x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return part
    os.kill(os.getpid(), number)
    return part


def pause(client, workers, fraction=1e-6):
    """Let workers be paused for memory, or not any more."""
    client.run(set_fraction, fraction, workers=workers)
    status = "paused" if fraction < 0.5 else "running"
    end = time.monotonic() + 30
    while time.monotonic() < end:
        seen = workers_of(client, 30)
        if all(seen[worker].status == status for worker in workers):
            return
        time.sleep(0.05)
    raise AssertionError(seen)


def set_fraction(fraction, dask_worker):
    dask_worker.memory_manager.memory_pause_fraction = fraction


def test_a_worker_that_is_paused_answers_but_gets_no_rows(client, table):
    frame, y, expected = table
    settled(client)
    paused, other, _ = client.scheduler_info()["workers"]

    class Pausing:
        def start(self, info): ...

        def step(self, info):
            if info.step == 2:
                pause(client, [other])

        def finish(self, info):
            self.homes = served(client)

    watching = Pausing()
    pause(client, [paused])
    try:
        fit = {"max_failures": 0, "callbacks": [watching]}
        result = on_cluster(SGLBRegressor, in_partitions(frame), y, fit=fit)
    finally:
        pause(client, [paused, other], 0.8)
    assert watching.homes[paused] == []
    assert len(watching.homes[other]) == 1
    assert model_bytes(result) == model_bytes(expected)


def test_a_cluster_of_paused_workers_is_told_of(client, table):
    frame, y, _ = table
    settled(client)
    pause(client, list(client.scheduler_info()["workers"]))
    try:
        with pytest.raises(LostServerError, match=r"max_failures=0: .* paused for 1 s; .* memory"):
            on_cluster(
                SGLBRegressor,
                in_partitions(frame),
                y,
                fit={"timeout": 1.0, "max_failures": 0},
            )
    finally:
        client.run(set_fraction, 0.8)


def test_too_many_lost_workers_are_listed(client, table, monkeypatch):
    frame, y, _ = table
    settled(client)
    with monkeypatch.context() as patch, leaving_nothing(client):
        Faults(patch, client, signal.SIGKILL, 12, 15)
        with pytest.raises(LostServerError, match="2 workers were lost, more than max_failures=1"):
            on_cluster(SGLBRegressor, in_partitions(frame), y, fit={"max_failures": 1})


def test_rows_that_are_others_when_they_are_read_again_are_noticed(client, table, monkeypatch):
    frame, y, _ = table
    settled(client)
    X = dd.from_map(shuffled, parts_of(frame), meta=frame.iloc[:0])
    with monkeypatch.context() as patch, leaving_nothing(client):
        Faults(patch, client, signal.SIGKILL, 15)
        with pytest.raises(ValueError, match=r"partition \d of X has other rows than before"):
            on_cluster(SGLBRegressor, X, y)


def shuffled(part):
    return part.sample(frac=1.0, random_state=np.random.default_rng())


def test_rows_that_were_in_the_memory_of_a_lost_worker_are_missed(client, table, monkeypatch):
    frame, y, _ = table
    settled(client)
    held = client.scatter(parts_of(frame))
    X = dd.from_delayed(held, meta=frame.iloc[:0], verify_meta=False)
    with monkeypatch.context() as patch:
        Faults(patch, client, signal.SIGKILL, 15)
        with pytest.raises(LostServerError, match=r"partition \d cannot be read again"):
            on_cluster(SGLBRegressor, X, y)


def test_a_server_that_was_started_anew_is_not_believed(client, table, monkeypatch):
    frame, y, expected = table
    settled(client)
    with monkeypatch.context() as patch:
        faults = Faults(patch, client, signal.SIGKILL, 15)
        faults.send = lambda address: client.run(empty, workers=[address])
        result = on_cluster(SGLBRegressor, in_partitions(frame), y)
    assert model_bytes(result) == model_bytes(expected)


def empty(dask_worker):
    """Do to the server here what a worker does that comes back at the same address."""
    for each in dask_worker.state.actors.values():
        each.server = Server()


def test_a_killed_driver_leaves_nothing_and_is_resumed(client, tmp_path):
    settled(client)
    path, address = tmp_path / "checkpoint", client.scheduler.address
    script = Path(__file__).with_name("dask_driver.py")
    with leaving_nothing(client):
        driver = subprocess.Popen([sys.executable, str(script), address, str(path)])
        end = time.monotonic() + 60
        while not path.exists() and time.monotonic() < end and driver.poll() is None:
            time.sleep(0.05)
        time.sleep(0.3)
        driver.kill()
        assert driver.wait() == -signal.SIGKILL
    resumed = train(client, path, resume_from=path)
    assert model_bytes(resumed) == model_bytes(train(client))
