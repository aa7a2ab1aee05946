"""Processes, threads, Ctrl-C and memory limits: no hang, no crash, the same bytes.

Everything runs in a process of its own, with a deadline; `in_processes.py` is what it runs.
SGLB_INTERRUPTS is how often each stage is interrupted.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import in_processes
from sglb import BaseCallback, KeepOnInterrupt, SGLBRegressor, Stop

# Seconds until a process counts as hanging. Work takes a few, and many on a machine with a queue.
PATIENCE = 600
N_INTERRUPTS = int(os.environ.get("SGLB_INTERRUPTS", "1"))


def command(*arguments):
    script = Path(__file__).with_name("in_processes.py")
    return [sys.executable, "-W", "error", str(script), *map(str, arguments)]


def run(*arguments, **environment):
    result = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=os.environ | environment,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    *lines, last = result.stdout.splitlines()
    assert last == "done"
    return lines


@pytest.mark.parametrize(
    "ways",
    [
        ("os.fork", "fork", "a daemon thread", "a thread pool", "os.fork"),
        ("forkserver", "spawn", "loky"),
    ],
    ids=["with the memory of the parent", "with memory of their own"],
)
def test_training_goes_on_in_children_and_threads_with_the_same_bytes(ways):
    run("train_again", *ways)


def test_the_process_ends_while_daemon_threads_train():
    for _ in range(2):
        run("end_during_fits")


def test_fits_and_predictions_in_many_threads_have_the_bytes_they_have_alone():
    run("side_by_side")


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_where_memory_is_short_there_is_a_memory_error_and_no_crash(n_jobs):
    # One arena: others keep up to 64 MB of address space in reserve.
    limits = (0, 1, 2, 3, 5, 7, 9, 12, 15, 20, 25, 30, 40, 1000)
    outcomes = run("short_of_memory", n_jobs, *limits, MALLOC_ARENA_MAX="1")
    assert set(outcomes) == {"0", "1"}, outcomes
    assert outcomes[0] == "1"
    assert outcomes[-1] == "0"


def waiting_times(n_jobs, stages):
    """Seconds from Ctrl-C at a random moment to the KeyboardInterrupt, for each stage.

    Without the time that the process waited for a turn of the processor, which is that of the
    machine. A lock or a sleep counts.
    """
    rng = np.random.default_rng(26)
    with subprocess.Popen(
        command("interrupted", 200_000, n_jobs),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = threading.Timer(PATIENCE, process.kill)
        deadline.start()
        for stage in stages:
            print(stage, file=process.stdin, flush=True)
            assert process.stdout.readline() == "go\n", stage
            time.sleep(rng.uniform(0.0, 0.5))
            sent, queued = time.monotonic(), in_processes.time_in_queue(process.pid)
            process.send_signal(signal.SIGINT)
            noticed, queued_then, n_threads, n_more = process.stdout.readline().split()
            assert (n_threads, n_more) == ("1", "0"), stage
            yield stage, float(noticed) - sent - (float(queued_then) - queued)
        process.stdin.close()
        assert process.stdout.read() == "done\n"
        deadline.cancel()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_is_noticed_in_half_a_second_whatever_runs(n_jobs):
    stages = in_processes.STAGES[n_jobs % 2 :: 2] if N_INTERRUPTS == 1 else in_processes.STAGES
    for stage, seconds in waiting_times(n_jobs, stages * N_INTERRUPTS):
        assert seconds < 0.5, stage


class InterruptAt(BaseCallback):
    """Ctrl-C in the middle of what follows a step, or Stop after it."""

    def __init__(self, step, *, stop=False, times=1):
        self.at, self.stop, self.times = step, stop, times

    def step(self, info):
        if info.step != self.at:
            return None
        if self.stop:
            return Stop("interrupted")
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)
        return None


X, Y = in_processes.table(500)


def fit(callbacks, **parameters):
    model = SGLBRegressor(n_estimators=50, max_depth=3, random_state=0, **parameters)
    return model.fit(X, Y, callbacks=callbacks)


@pytest.mark.parametrize(
    "parameters", [{}, {"n_chains": 3, "n_jobs": 2}, {"sampler": "tempering", "temperature": 1.0}]
)
def test_an_interrupted_fit_keeps_the_model_of_the_steps_taken(parameters):
    keep = KeepOnInterrupt()
    model = fit([InterruptAt(17), keep], **parameters)
    assert keep.interrupted
    assert model.n_iter_ == 17
    stopped = fit([InterruptAt(17, stop=True)], **parameters)
    assert in_processes.digest(model) == in_processes.digest(stopped)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert fit([keep], **parameters).n_iter_ == 50
    assert not keep.interrupted


def test_a_second_ctrl_c_raises():
    with pytest.raises(KeyboardInterrupt):
        fit([InterruptAt(17, times=2), KeepOnInterrupt()])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_gives_ctrl_c_back():
    class Broken(BaseCallback):
        def step(self, info):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        fit([KeepOnInterrupt(), Broken()])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_is_ignored_stays_ignored(monkeypatch):
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        keep = KeepOnInterrupt()
        assert fit([InterruptAt(17), keep]).n_iter_ == 50
        assert not keep.interrupted
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)


def test_a_thread_that_receives_no_signals_is_told_so():
    errors = []

    def work():
        try:
            fit([KeepOnInterrupt()])
        except ValueError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "needs the main thread" in errors[0]
