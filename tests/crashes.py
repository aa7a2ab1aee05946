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

# Fits by name, and up to how many new steps a child takes before it is killed. A cross-validation
# writes a checkpoint every 25 steps of five chains.
KILLED = {"chains that stop": 16, "searched length": 300, "categories": 9}
kind, parameters, arguments = FITS["categories"]
FITS["categories"] = kind, parameters | {"n_estimators": 100}, arguments
# Seconds between the news of a step and the step, and from there to the kill.
PAUSE, LIFE = 0.002, 0.01


def telling(pipe, step=Chain.step):
    """Return a step that tells of itself first, unless it is repeated or one of a pilot."""

    def telling_step(chain):
        if chain.trace.keep_trees and len(chain.trace) >= chain.replay.n_repeated:
            os.write(pipe, b".")
            time.sleep(PAUSE)
        return step(chain)

    return telling_step


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
    model = fitted(name, callbacks=Checkpoint(path, 1), resume_from=path)
    (folder / "model").write_bytes(content(model))


def killed_at(n_steps, seconds, name, folder):
    """Kill a fit so long after the beginning of a new step; return whether it was still there."""
    news, pipe = os.pipe()
    child = in_child(lambda: train(name, folder, telling(pipe)))
    os.close(pipe)
    while n_steps and (words := os.read(news, n_steps)):
        n_steps -= len(words)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.close(news)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def finish(name, folder):
    """Let a fit finish; return whether it has the bytes of a fit that was never killed."""
    assert os.waitpid(in_child(lambda: train(name, folder)), 0)[1] == 0
    return (folder / "model").read_bytes() == content(fitted(name))


def kill(name, n_kills, folder):
    """Kill a fit at random moments, let it finish, and start anew until so many were killed."""
    moments, in_a_row, steps, same = random.Random(7), [], [], True
    while sum(in_a_row) < n_kills:
        in_a_row.append(0)
        of_fit = folder / f"{name} {len(in_a_row)}"
        of_fit.mkdir()
        while sum(in_a_row) < n_kills:
            n_steps, seconds = moments.randint(0, KILLED[name]), moments.uniform(0.0, LIFE)
            if not killed_at(n_steps, seconds, name, of_fit):
                break
            in_a_row[-1] += 1
            snapshot = Store(of_fit / "c").read()
            steps.append(0 if snapshot is None else snapshot.n_steps)
        same &= finish(name, of_fit)
    return {"fit": name, "kills in a row": in_a_row, "steps": steps, "same bytes": same}


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
