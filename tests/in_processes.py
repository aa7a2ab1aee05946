"""What tests/test_processes.py runs in a process of its own: python tests/in_processes.py NAME ...

Everything prints `done` when it is over; a hang is for the caller to notice.
"""

import hashlib
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from sglb import Checkpoint, SGLBClassifier, SGLBRanker, SGLBRegressor, archive

FAST = {"n_estimators": 10, "max_depth": 4, "random_state": 0}


def table(n_rows, n_columns=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X[:, 0] * X[:, 1] + rng.normal(size=n_rows)


def digest(model):
    return hashlib.sha256(archive.dumps(model._model)).hexdigest()


def trained(_=None, n_jobs=2):
    """The digest of a model; its rows are enough for two threads."""
    X, y = table(5000)
    return digest(SGLBRegressor(**FAST, n_jobs=n_jobs).fit(X, y))


def in_forked_child():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, trained().encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return [os.read(reader, 64).decode()]


def in_daemon_thread():
    result = []
    thread = threading.Thread(target=lambda: result.append(trained()), daemon=True)
    thread.start()
    thread.join()
    return result


def in_thread_pool():
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(trained, range(8)))


def in_processes(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map(trained, range(4))


def in_loky():
    from joblib import Parallel, delayed

    return Parallel(n_jobs=2, backend="loky")(delayed(trained)(i) for i in range(4))


WAYS = {
    "os.fork": in_forked_child,
    "a daemon thread": in_daemon_thread,
    "a thread pool": in_thread_pool,
    "fork": lambda: in_processes("fork"),
    "forkserver": lambda: in_processes("forkserver"),
    "spawn": lambda: in_processes("spawn"),
    "loky": in_loky,
}


def train_again(*ways):
    """Train, train once more elsewhere, and here again."""
    before = trained()
    for way in ways:
        elsewhere = WAYS[way]()
        assert elsewhere, way
        assert set(elsewhere) == {before}, way
        assert trained() == before, way


def end_during_fits():
    """End while daemon threads train: in kernels, in Python, and on the way between them."""
    X, y = table(20_000)

    def train_for_ever():
        while True:
            SGLBRegressor(**FAST, n_jobs=2).fit(X, y)

    for _ in range(3):
        threading.Thread(target=train_for_ever, daemon=True).start()
    time.sleep(float(np.random.default_rng(os.getpid()).uniform(0.1, 0.3)))


class Stages:
    """Long work of each kind, for Ctrl-C to end."""

    def __init__(self, n_rows, n_jobs):
        X, y = table(n_rows)
        self.X, self.y = X, y
        self.levels = np.floor(np.abs(X) * 3000)
        self.short = {**FAST, "n_jobs": n_jobs}
        self.model = SGLBRegressor(**self.short).fit(X, y)
        self.long = {**self.short, "n_estimators": 10**6}
        small = self.short | {"n_estimators": 2000}
        self.large = SGLBRegressor(**small).fit(X[:1000], y[:1000])
        self.folder = Path(tempfile.mkdtemp())
        self.n_jobs = n_jobs

    def binning(self):
        SGLBRegressor(**self.short, max_bins=255).fit(self.X, self.y)

    def encoding(self):
        SGLBRegressor(**self.short, categorical_features=[0, 1, 2, 3]).fit(self.levels, self.y)

    def steps(self):
        SGLBRegressor(**self.long).fit(self.X, self.y, callbacks=[])

    def many_chains(self):
        SGLBRegressor(**self.long, n_chains=3).fit(self.X, self.y)

    def cross_validation(self):
        SGLBClassifier(random_state=0, n_jobs=self.n_jobs).fit(self.X[:9000], self.y[:9000] > 0)

    def posterior(self):
        self.model.posterior(self.X, self.y, n_draws=50, prior_variance=0.3, temperature=1.0)

    def prediction(self):
        self.model.predict(self.X)

    def staged_prediction(self):
        list(self.model.staged_predict(self.X))

    def ranker(self):
        relevance = np.clip(self.y, 0, 4).round()
        queries = np.arange(len(self.y)) // 20
        SGLBRanker(**self.long, loss="pairwise_logistic").fit(self.X, relevance, group=queries)

    def checkpoint(self):
        checkpoint = Checkpoint(self.folder / "c", 1, overwrite=True)
        SGLBRegressor(**self.long).fit(self.X[:5000], self.y[:5000], callbacks=checkpoint)

    def save(self):
        self.large.save(self.folder / "m.sglb")


STAGES = ("binning", "encoding", "steps", "many_chains", "cross_validation", "posterior",
          "prediction", "staged_prediction", "ranker", "checkpoint", "save")  # fmt: skip


def time_in_queue(process):
    """Seconds that the main thread of a process was ready to run, and another one ran."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) * 1e-9


def n_tasks(usual=0):
    """Threads that the system knows of, those of the core and of NumPy too.

    A thread that was joined may be there a moment longer: wait until there are as many as usual.
    """
    for _ in range(100):
        if (n := len(os.listdir("/proc/self/task"))) <= usual:
            break
        time.sleep(0.01)
    return n


def interrupted(n_rows, n_jobs):
    """Repeat each stage until Ctrl-C; print when it came back, its time in the queue, its threads.

    The caller sends a line with the stage's name, then SIGINT.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = trained()
    stages = Stages(int(n_rows), int(n_jobs))
    usual = n_tasks()  # the pool of the core has its threads by now
    for line in sys.stdin:
        stage = getattr(stages, line.strip())
        try:
            print("go", flush=True)
            while True:
                stage()
        except KeyboardInterrupt:
            queued, noticed = time_in_queue(os.getpid()), time.monotonic()
            n_more = n_tasks(usual) - usual
            print(noticed, queued, threading.active_count(), n_more, flush=True)
    shutil.rmtree(stages.folder)
    assert trained() == before


def mixed_work(number, model, X):
    """Fits and predictions of several kinds, as bytes."""
    rows, y = table(3000)
    fits = {
        0: lambda: digest(SGLBRegressor(**FAST, n_jobs=2).fit(rows, y)),
        1: lambda: digest(SGLBClassifier(**FAST, n_jobs=1, n_chains=2).fit(rows, y > 0)),
        2: lambda: model.predict(X).tobytes(),
        3: lambda: model.staged_predict(X[:3000]).__next__().tobytes(),
    }
    return fits[number]()


def side_by_side():
    """Work of four kinds in eight threads at once is what it is alone."""
    X, y = table(20_000)
    model = SGLBRegressor(**FAST, n_jobs=2).fit(X, y)
    alone = [mixed_work(number, model, X) for number in range(4)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda i: mixed_work(i % 4, model, X), range(32)))
    assert together == alone * 8


def short_of_memory(n_jobs, *megabytes):
    """Fits with this much more memory than there is: each in a child; print how it ended.

    0 is a model, 1 a MemoryError.
    """
    X, y = table(200_000)
    model = SGLBRegressor(**FAST, n_jobs=1).fit(X[:1000], y[:1000])
    short = FAST | {"n_estimators": 3}
    warnings.simplefilter("ignore")  # short chains
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for each in map(float, megabytes):
        child = os.fork()
        if child == 0:
            status = 3
            try:
                limit = used + int(each * 2**20)
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
                fitted = SGLBRegressor(**short, n_jobs=int(n_jobs), n_chains=2).fit(X, y)
                fitted.predict_uncertainty(X)
                model.posterior(
                    X[:50_000],
                    y[:50_000],
                    n_draws=4,
                    prior_variance=0.3,
                    temperature=1.0,
                    n_steps=5,
                )
                status = 0
            except MemoryError:
                status = 1
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    print("done", flush=True)
