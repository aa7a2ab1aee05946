"""Workers of a Dask cluster killed and stopped at random moments: is the model the same?

    .venv/bin/python -m benchmarks.dask_faults [FITS]

Each fit of FITS (20), of categories or of rankings, on three workers with nannies, loses one to
three of them, by SIGKILL or SIGSTOP, at random times from its start to its end. Prints a line for
each, and how many were the same.
"""

import hashlib
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster

import sglb.dask
from sglb import archive

N_ROWS, N_PARTITIONS, TIMEOUT, SECONDS = 40_000, 6, 8.0, 3.0
PARAMETERS = {"n_estimators": 300, "random_state": 0}


def part(number):
    """Rows of a partition, the same whenever they are read."""
    rng = np.random.default_rng(number)
    n_rows = N_ROWS // N_PARTITIONS
    frame = pd.DataFrame(rng.normal(size=(n_rows, 6)), columns=list("abcdef"))
    frame["town"] = np.char.add("t", rng.integers(0, 300, n_rows).astype(str))
    return frame


def warm():
    """Import what takes seconds, in which a worker would be silent."""
    import sglb.dask  # noqa: F401


def fits():
    """Estimators by name, y and options of `fit`."""
    frame = pd.concat([part(number) for number in range(N_PARTITIONS)])
    y = frame["a"] * frame["b"] + (frame["town"] < "t2")
    positive, group = (y > 0).to_numpy(), np.arange(len(y)) // 6
    return {
        "SGLBClassifier": (frame, positive, {}),
        "SGLBRanker": (frame, positive.astype(float), {"group": group}),
    }


def digest(model):
    return hashlib.sha256(archive.dumps(model._fitted())).hexdigest()


class Killer(threading.Thread):
    """Sends signals to workers at random moments."""

    def __init__(self, client, chance, seconds):
        super().__init__(daemon=True)
        self.client, self.chance, self.sent, self.ended = client, chance, [], False
        self.moments = sorted(chance.uniform(0, seconds) for _ in range(chance.randint(1, 3)))

    def run(self):
        start = time.monotonic()
        for moment in self.moments:
            time.sleep(max(start + moment - time.monotonic(), 0.0))
            if self.ended:
                return
            number = self.chance.choice([signal.SIGKILL, signal.SIGSTOP])
            # Those that the scheduler knows: no nanny starts another one while it starts one.
            known = self.client.scheduler_info(n_workers=-1)["workers"]
            pids = {each.worker_address: each.pid for each in self.client.cluster.workers.values()}
            os.kill(pids[self.chance.choice(sorted(known.keys() & pids.keys()))], number)
            self.sent.append(f"{moment:.1f} s {number.name}")


def main(n_fits=20):
    chance, same = random.Random(1), 0
    cases = fits()
    names = list(cases)
    expected = {
        name: digest(getattr(sglb, name)(**PARAMETERS).fit(X, y, **options))
        for name, (X, y, options) in cases.items()
    }
    left = []
    for k in range(n_fits):
        name = names[k % len(names)]
        with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as cluster:
            with Client(cluster) as client:
                same += fit_once(client, name, cases[name], expected[name], chance)
            processes = {worker.pid for worker in cluster.workers.values()}
        left += [each for each in processes if Path(f"/proc/{each}").exists()]
    print(f"{same} of {n_fits} fits have the bytes of one machine; processes left over: {left}")
    return 0 if same == n_fits and not left else 1


def fit_once(client, name, case, expected, chance):
    """Train while workers are killed; print how it went and return whether the bytes are right."""
    X = dd.from_map(part, range(N_PARTITIONS), meta=part(0).iloc[:0])
    client.run(warm)
    killer, start = Killer(client, chance, SECONDS), time.monotonic()
    killer.start()
    try:
        model = getattr(sglb.dask, name)(**PARAMETERS)
        model.fit(X, case[1], **case[2], timeout=TIMEOUT, max_failures=5)
        result = digest(model) == expected
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    seconds, killer.ended = time.monotonic() - start, True
    killer.join()
    signals = ", ".join(killer.sent) or "none in time"
    print(f"{name}: {seconds:.0f} s, signals at {signals}: same bytes {result}", flush=True)
    return result is True


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
