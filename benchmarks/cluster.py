"""A cluster on this machine: time and bytes a tree, beside other libraries on the same workers.

    python -m benchmarks.cluster [--rows 1000000,10000000] [--workers 1,2] [--libraries sglb]

A job is a process with a LocalCluster of its own, workers of one thread. Rows are made where they
are used, partition by partition, and persisted. A tree costs what a long fit takes more than a
short one, over the trees it has more: time and bytes through the loopback interface, those of other
programs included, so the machine should be quiet. From the fits of sglb on two workers, of the
fewest and the most rows, `benchmarks.cluster_model` says what other clusters should take.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import cluster_model
from benchmarks.machine import Others, describe

N_COLUMNS = 28
DEPTH, MAX_BINS, LEARNING_RATE = 6, 64, 0.1
FEW, MANY = 5, 45
PARTITIONS_PER_WORKER = 4
TIMEOUT = 1800.0
PACKAGES = ("sglb", "dask", "distributed", "xgboost", "lightgbm")


@dataclass
class Result:
    library: str
    n_rows: int
    n_workers: int
    seconds: dict  # of a fit, by its number of trees
    moved: dict  # bytes, by the number of trees
    worker_memory: float  # the largest resident set of a worker, GB
    others: float  # cores that were busy with something else
    parts: dict = field(default_factory=dict)  # of a tree of sglb, ms

    @property
    def ms_per_tree(self):
        return 1e3 * (self.seconds[MANY] - self.seconds[FEW]) / (MANY - FEW)

    @property
    def mb_per_tree(self):
        return 1e-6 * (self.moved[MANY] - self.moved[FEW]) / (MANY - FEW)


def sglb_fit(client, X, y, n_trees):
    from sglb.dask import SGLBClassifier

    model = SGLBClassifier(
        n_estimators=n_trees,
        max_depth=DEPTH,
        max_bins=MAX_BINS,
        learning_rate=LEARNING_RATE,
        random_state=0,
    )
    return model.fit(X, y, client=client)


def xgboost_fit(client, X, y, n_trees):
    from xgboost import dask as xgboost_dask

    model = xgboost_dask.DaskXGBClassifier(
        n_estimators=n_trees,
        max_depth=DEPTH,
        max_bin=MAX_BINS,
        learning_rate=LEARNING_RATE,
        tree_method="hist",
    )
    model.client = client
    return model.fit(X, y)


def lightgbm_fit(client, X, y, n_trees):
    import lightgbm

    model = lightgbm.DaskLGBMClassifier(
        n_estimators=n_trees,
        num_leaves=2**DEPTH,
        max_depth=DEPTH,
        max_bin=MAX_BINS,
        learning_rate=LEARNING_RATE,
        verbose=-1,
        client=client,
    )
    return model.fit(X, y)


FITS = {"sglb": sglb_fit, "xgboost": xgboost_fit, "lightgbm": lightgbm_fit}


class Stopwatch:
    """Adds up the seconds that questions to the servers and searches take."""

    def __init__(self):
        self.seconds = defaultdict(float)

    def watch(self, owner, method, name_of):
        inner = getattr(owner, method)

        def timed(*arguments, **options):
            start = time.perf_counter()
            try:
                return inner(*arguments, **options)
            finally:
                self.seconds[name_of(*arguments)] += time.perf_counter() - start

        setattr(owner, method, timed)

    def start(self):
        from sglb.cluster.rows import RemoteRows
        from sglb.structure import GreedySearch

        self.watch(RemoteRows, "_ask", lambda rows, question, *_: question)
        self.watch(GreedySearch, "search", lambda *_: "search")
        return self


def partition(number, n_rows):
    """The rows of a partition, the last column their class."""
    from benchmarks.problems.normal import interactions

    X, y = interactions(N_COLUMNS)(n_rows, number)
    return np.column_stack([X, y]).astype(np.float32)


def loopback_bytes():
    for line in Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[0])
    raise OSError("there is no loopback interface")


def resident_gb():
    """The largest resident set of this process so far."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def run(library, n_rows, n_workers):
    """Fit a library twice on a cluster of its own."""
    import dask
    import dask.array as da
    from dask.distributed import Client, LocalCluster, wait

    n_partitions = PARTITIONS_PER_WORKER * n_workers
    sizes = [n_rows // n_partitions] * n_partitions
    settings = {"n_workers": n_workers, "threads_per_worker": 1, "memory_limit": 0}
    result = Result(library, n_rows, n_workers, {}, {}, 0.0, 0.0)
    stopwatch = Stopwatch().start()
    with (
        LocalCluster(**settings, dashboard_address=None) as cluster,
        Client(cluster) as client,
        Others() as others,
    ):
        make = dask.delayed(partition)
        blocks = [
            da.from_delayed(make(number, size), (size, N_COLUMNS + 1), np.float32)
            for number, size in enumerate(sizes)
        ]
        rows = da.concatenate(blocks).persist()
        wait(rows)
        X, y = rows[:, :-1].persist(), rows[:, -1].persist()
        wait([X, y])
        FITS[library](client, X, y, 1)  # imports, and memory from the system
        for n_trees in (FEW, MANY):
            at_start = stopwatch.seconds.copy()
            before, start = loopback_bytes(), time.perf_counter()
            FITS[library](client, X, y, n_trees)
            result.seconds[n_trees] = time.perf_counter() - start
            result.moved[n_trees] = loopback_bytes() - before
        result.parts = {
            name: 1e3 * (seconds - at_start[name]) / MANY
            for name, seconds in stopwatch.seconds.items()
        }
        result.worker_memory = max(client.run(resident_gb).values())
    result.others = others.cores
    return result


def run_job(*job):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.cluster", "--job", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"{job}: {done.stderr[-2000:]}")
    read = json.loads(lines[-1])
    for name in ("seconds", "moved"):  # keys of JSON are strings
        read[name] = {int(n): value for n, value in read[name].items()}
    return Result(**read)


def table(results):
    """A Markdown table of results."""
    lines = [
        "| rows | workers | library | ms a tree | MB a tree | fit of 45 trees, s | GB a worker |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r.n_rows:,} | {r.n_workers} | {r.library} | {r.ms_per_tree:.0f} | {r.mb_per_tree:.2f}"
        f" | {r.seconds[MANY]:.1f} | {r.worker_memory:.1f} |"
        for r in results
    ]
    return lines


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--rows", default="1000000,10000000", help="comma-separated (%(default)s)")
    parser.add_argument("--workers", default="1,2", help="comma-separated (%(default)s)")
    parser.add_argument("--libraries", default=",".join(FITS), help="(%(default)s)")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(asdict(run(*json.loads(options.job)))))
        return
    print("\n".join(describe(PACKAGES)))
    results = []
    for n_rows in map(int, options.rows.split(",")):
        for n_workers in map(int, options.workers.split(",")):
            for library in options.libraries.split(","):
                results.append(run_job(library, n_rows, n_workers))
                print(results[-1], flush=True)
    print("\n".join(table(results)))
    print("\n".join(cluster_model.lines(results)))


if __name__ == "__main__":
    main()
