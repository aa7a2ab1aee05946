"""A program that is killed again and again: children of it train, and it kills them.

python tests/crashes.py kills 20 FOLDER      # kill -9 at random moments, then finish
python tests/crashes.py disk FOLDER          # a disk that is full after every number of bytes
"""

import contextlib
import json
import os
import random
import resource
import signal
import sys
import time
from pathlib import Path

from interrupted import FITS, content, fitted
from sglb import Checkpoint, CheckpointError
from sglb.chain import Chain
from sglb.checkpoints.store import Store

KILLED = ("chains that stop", "searched length", "categories")
# Longest life of a child in seconds, and the steps that all of them together may take.
LIFE, STEPS = 0.12, 100


def slowed(seconds, step=Chain.step):
    """Return a step that takes time, unless it is repeated or of a chain that prepares the rows."""

    def slow_step(chain):
        if chain.trace.keep_trees and len(chain.trace) >= chain.replay.n_repeated:
            time.sleep(seconds)
        return step(chain)

    return slow_step


def in_child(task):
    """Run a task in a child; return its number."""
    number = os.fork()
    if number:
        return number
    status = 1
    try:
        task()
        status = 0
    finally:
        os._exit(status)


def train(name, folder, step=Chain.step):
    Chain.step = step
    path = folder / "c"
    model = fitted(name, callbacks=Checkpoint(path, 2), resume_from=path)
    (folder / "model").write_bytes(content(model))


def finish(name, folder):
    """Let a fit finish; return whether it has the bytes of a fit that was never killed."""
    assert os.waitpid(in_child(lambda: train(name, folder)), 0)[1] == 0
    return (folder / "model").read_bytes() == content(fitted(name))


def kill(name, n_kills, folder):
    """Kill a fit at random moments, let it finish, and start anew until so many were killed."""
    moments, killed, same = random.Random(7), [], True
    slow_step = slowed(LIFE * n_kills / STEPS)
    while sum(killed) < n_kills:
        killed.append(0)
        of_fit = folder / f"{name} {len(killed)}"
        of_fit.mkdir()
        while sum(killed) < n_kills:
            child = in_child(lambda: train(name, of_fit, slow_step))  # noqa: B023
            time.sleep(moments.uniform(0.0, LIFE))
            os.kill(child, signal.SIGKILL)
            if os.WIFEXITED(os.waitpid(child, 0)[1]):
                break
            killed[-1] += 1
        same &= finish(name, of_fit)
    return {"fit": name, "kills in a row": killed, "same bytes": same}


def kills(n_kills, folder):
    results = [kill(name, n_kills, folder) for name in KILLED]
    print(json.dumps(results))


def disk(folder):
    """Write a checkpoint with room for 0, 1, 2, ... bytes; the ones before must stay."""
    store = Store(folder / "c")
    kind, parameters, arguments = FITS["numbers"]
    small = kind(**parameters | {"n_estimators": 1, "max_depth": 1, "max_bins": 2})
    small.fit(**arguments, callbacks=Checkpoint(folder / "c", 1))
    before = (folder / "c").read_bytes()
    store.read()
    store.write(before)
    names, failed = sorted(os.listdir(folder)), 0
    numbers = {os.stat(folder / name).st_ino for name in names}
    for size in range(len(before)):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        with contextlib.suppress(CheckpointError):
            store.write(b"x" * len(before))
            break
        failed += 1
        assert sorted(os.listdir(folder)) == names
        assert {os.stat(folder / name).st_ino for name in names} == numbers
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert (folder / "c").read_bytes() == (folder / "c.previous").read_bytes() == before
    print(json.dumps({"bytes": len(before), "failed": failed}))


if __name__ == "__main__":
    if sys.argv[1] == "kills":
        kills(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        disk(Path(sys.argv[2]))
