"""Tables larger than memory: peak of memory and time per row and tree, beside a table in memory.

    python -m benchmarks.out_of_core make FOLDER --rows 100_000_000
    python -m benchmarks.out_of_core fit FOLDER --held disk --limit 8
    python -m benchmarks.out_of_core fit FOLDER --held memory --rows 10_000_000

`make` writes a Parquet file for every ten million rows of 28 float32 features and a class. `fit`
trains in a process of its own and prints a line of JSON. --limit is gigabytes of memory, the cache
of files included, by a control group (version 1, as root).
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

import sglb
from benchmarks.problems.normal import interactions
from sglb import BaseCallback

N_FEATURES = 28
FILE_ROWS = 10_000_000
GROUP_ROWS = 1_000_000
GROUPS = Path("/sys/fs/cgroup/memory")


def make(folder, n_rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    draw = interactions(N_FEATURES)
    names = [f"x{column:02}" for column in range(N_FEATURES)]
    schema = pa.schema([(name, pa.float32()) for name in names] + [("y", pa.int8())])
    for first in range(0, n_rows, FILE_ROWS):
        path = folder / f"part_{first // FILE_ROWS:03}.parquet"
        options = {"compression": "NONE", "use_dictionary": False}
        with pq.ParquetWriter(path, schema, **options) as writer:
            for begin in range(first, min(n_rows, first + FILE_ROWS), GROUP_ROWS):
                X, y = draw(min(GROUP_ROWS, n_rows - begin), begin // GROUP_ROWS)
                arrays = [pa.array(np.ascontiguousarray(column)) for column in X.T]
                writer.write_table(pa.table([*arrays, pa.array(y.astype(np.int8))], schema=schema))


class Peaks:
    """The peaks of resident memory, looked at every twentieth of a second."""

    def __init__(self):
        self.bytes = {"RssAnon": 0, "RssFile": 0, "VmRSS": 0}
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            with open("/proc/self/status") as lines:
                for line in lines:
                    name = line.split(":")[0]
                    if name in self.bytes:
                        self.bytes[name] = max(self.bytes[name], 1024 * int(line.split()[1]))
            time.sleep(0.05)


class Clock(BaseCallback):
    """When each step ended, by the wall and by the work of all threads."""

    def __init__(self):
        self.times = []

    def step(self, info):
        self.times.append((time.perf_counter(), time.process_time()))


def fit(folder, held, n_rows, trees, pages):
    """Train on a folder; return times and peaks of memory."""
    peaks, clock, start = Peaks(), Clock(), time.perf_counter()
    files = sorted(folder.glob("*.parquet"))[: -(-n_rows // FILE_ROWS)]
    if held == "disk":
        table = sglb.ParquetTable(files, folder=pages)
        X, y = table.drop("y"), table["y"]
    else:
        import pyarrow.parquet as pq

        table = pq.read_table(files)
        X, y = table.drop_columns(["y"]), table["y"].to_numpy()
        del table
    read = time.perf_counter()
    model = sglb.SGLBClassifier(n_estimators=trees, learning_rate=0.1, max_depth=6, random_state=0)
    model.fit(X, y, callbacks=[clock])
    steps = np.diff(clock.times, axis=0) / len(y) * 1e9
    wall, work = np.median(steps, axis=0).round(2).tolist()
    return {
        "held": held,
        "rows": len(y),
        "trees": trees,
        "seconds_reading": round(read - start, 1),
        "seconds_encoding": round(clock.times[0][0] - read, 1),
        "seconds": round(time.perf_counter() - start, 1),
        "ns_per_row_and_tree": wall,
        "fastest_ns": round(float(steps[:, 0].min()), 2),
        "work_ns_per_row_and_tree": work,
        "gb": {name: round(value / 1e9, 2) for name, value in peaks.bytes.items()},
        "digits": model.trace_.values.sum().hex(),  # those of tables of equal rows are equal
    }


def in_group(limit, command):
    """Run a command with so many gigabytes of memory; return its exit code and what it used."""
    group = GROUPS / f"sglb_{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(int(limit * 1e9)))

        def enter():
            (group / "cgroup.procs").write_text(str(os.getpid()))

        code = subprocess.run(command, preexec_fn=enter).returncode
        used = int((group / "memory.max_usage_in_bytes").read_text())
        failures = int((group / "memory.failcnt").read_text())
        return code, {"group_gb": round(used / 1e9, 2), "limit_met": failures > 0}
    finally:
        (group / "memory.force_empty").write_text("0")
        group.rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("make", "fit"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--held", choices=("disk", "memory"), default="disk")
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--pages", type=Path, default=None)
    parser.add_argument("--limit", type=float, default=None)
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder, options.rows)
    elif options.limit is None:
        result = fit(options.folder, options.held, options.rows, options.trees, options.pages)
        print(json.dumps(result), flush=True)
    else:
        at = sys.argv.index("--limit")
        unlimited = sys.argv[1:at] + sys.argv[at + 2 :]
        command = [sys.executable, "-m", "benchmarks.out_of_core", *unlimited]
        code, used = in_group(options.limit, command)
        print(json.dumps({"limit_gb": options.limit, **used, "exit": code}), flush=True)


if __name__ == "__main__":
    main()
