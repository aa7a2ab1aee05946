"""The thread pool as seen from Python: forks, Python threads, failures, Ctrl-C, limits.

What could hang or die runs in a process of its own, with a deadline.
"""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from problems import boosted, make_problem
from sglb import _core
from sglb.leaves import LeafRule
from sglb.losses import Squared
from sglb.samplers import Langevin
from sglb.structure import GreedySearch
from sglb.trace import Trace

# Seconds until a process counts as hanging; work takes about one.
PATIENCE = 60


def fit(training_set, bins, n_threads, n_steps=5):
    return boosted(
        training_set,
        Squared(),
        Langevin(0.1, 1.0, 0.01),
        GreedySearch(4, n_threads=n_threads),
        LeafRule(),
        Trace(bins, 4, np.zeros(1)),
        n_steps=n_steps,
        seed=5,
        n_threads=n_threads,
    )


PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
from problems import boosted, make_problem
from sglb import _core
from test_parallel import fit
X, bins, training_set = make_problem(np.random.default_rng(0), 40_000)
def digest(trace):
    return sum(float(np.abs(a).sum()) for a in trace.arrays().values())
"""


def start(script, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=os.path.dirname(__file__),
        env=os.environ | environment,
        start_new_session=True,
    )


def run(script, **environment):
    process = start(script, **environment)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # also children, which hold the pipes
        pytest.fail(f"hangs: {process.communicate()}")
    assert process.returncode == 0, err
    return out


def test_a_forked_child_can_fit_after_its_parent_did():
    out = run("""
        before = digest(fit(training_set, bins, 3))
        for _ in range(5):
            child = os.fork()
            if child == 0:
                same = digest(fit(training_set, bins, 3)) == before
                threads = os.listdir("/proc/self/task")  # a pool of its own
                os._exit(0 if same and len(threads) == 3 else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert digest(fit(training_set, bins, 3)) == before  # the parent still can
        print("done")
    """)
    assert out.strip() == "done"


def test_a_fork_while_another_thread_is_in_a_kernel_does_no_harm():
    out = run("""
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                fit(training_set, bins, 2, n_steps=1)
        thread = threading.Thread(target=busy)
        thread.start()
        for _ in range(20):
            time.sleep(0.01)
            child = os.fork()
            if child == 0:
                fit(training_set, bins, 2, n_steps=1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        thread.join()
        print("done")
    """)
    assert out.strip() == "done"


def test_the_process_ends_while_workers_sleep():
    out = run("""
        fit(training_set, bins, 8)
        print("done")
    """)
    assert out.strip() == "done"


def test_several_python_threads_may_fit_at_once():
    _, bins, training_set = make_problem(np.random.default_rng(0), 20_000)
    expected = fit(training_set, bins, 1).values
    result = {}

    def work(number):
        result[number] = [fit(training_set, bins, 1 + number % 3).values for _ in range(3)]

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(result) == 6
    for values in result.values():
        assert all(np.array_equal(value, expected) for value in values)


def test_kernels_let_other_python_threads_run():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    _core.testing.normals(1, 0, 7, 0, 0, np.empty(5_000_000), 1)
    end = time.monotonic()
    stop.set()
    thread.join()
    assert sum(begin < t < end for t in ticks) >= 3


@pytest.mark.parametrize("n_threads", [1, 4])
def test_an_exception_of_a_task_comes_back_and_the_pool_goes_on(n_threads):
    # Each task of a prediction needs 40 MB for 20,000 outputs; then memory is made short.
    out = run(f"""
        import resource
        K, n, T = 20_000, 1024, 20
        trees = (np.zeros((T, 0), np.int32), np.zeros((T, 0), np.uint8), np.zeros((T, 0), np.uint8),
                 np.zeros(T, np.int32), np.ones((T, 1, K)))
        x = np.ones((n, 1))
        result = np.zeros((K, n))
        bins = np.zeros((1, 1)), np.zeros(1, np.int32)
        zeros = np.zeros((T, 0)), np.zeros((T, 1)), np.zeros((T, 3))
        trees = _core.Trees(*trees[:4], zeros[0], trees[4], zeros[1], zeros[2])
        states = np.ones((T, 1)), np.array([T]), np.ones((1, 1, 1))
        predictor = _core.Predictor(*bins, trees, *states, np.zeros(K))
        def predict():
            _core.predict(predictor, x, result, {n_threads})
        predict()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        unlimited = resource.getrlimit(resource.RLIMIT_AS)
        for _ in range(3):
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**22, unlimited[1]))
            try:
                predict()
            except MemoryError:
                print("caught")
            finally:
                resource.setrlimit(resource.RLIMIT_AS, unlimited)
        result[:] = 0
        predict()
        print(result.min(), result.max())
    """)
    assert out.split() == ["caught", "caught", "caught", "20.0", "20.0"]


INTERRUPTED = {
    "in one kernel call": """
        trees = (np.zeros((20_000, 1), np.int32), np.zeros((20_000, 1), np.uint8),
                 np.ones((20_000, 1), np.uint8), np.ones(20_000, np.int32),
                 np.ones((20_000, 2, 1)))
        x = np.ones((2_000_000, 1))
        result = np.zeros((1, 2_000_000))
        bins = np.zeros((1, 1)), np.zeros(1, np.int32)
        zeros = np.zeros((20_000, 1)), np.zeros((20_000, 2)), np.zeros((20_000, 3))
        trees = _core.Trees(*trees[:4], zeros[0], trees[4], zeros[1], zeros[2])
        states = np.ones((20_000, 1)), np.array([20_000]), np.ones((1, 1, 1))
        predictor = _core.Predictor(*bins, trees, *states, np.zeros(1))
        def work():
            _core.predict(predictor, x, result, {n_threads})
    """,
    "in the loop": """
        def work():
            fit(training_set, bins, {n_threads}, n_steps=10**6)
    """,
}


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("where", INTERRUPTED)
def test_ctrl_c_is_noticed_within_half_a_second(where, n_threads):
    process = start(
        textwrap.dedent(INTERRUPTED[where].format(n_threads=n_threads))
        + textwrap.dedent("""
        print("go", flush=True)
        try:
            work()
            print("finished")
        except KeyboardInterrupt:
            print(time.monotonic())
        # The pool is as good as new.
        first = digest(fit(training_set, bins, 2))
        print(first == digest(fit(training_set, bins, 2)))
        """)
    )
    assert process.stdout.readline() == "go\n"
    time.sleep(0.7)
    sent = time.monotonic()  # one clock for all processes
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    noticed, works = out.split()
    assert noticed != "finished"
    assert float(noticed) - sent < 0.5
    assert works == "True"


def test_available_threads_honour_omp_num_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    every = _core.available_threads()
    assert 1 <= every <= len(os.sched_getaffinity(0))
    for text, expected in (("1", 1), ("100000", every), ("1,2", 1), ("0", every), ("x", every)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert _core.available_threads() == expected


def test_available_threads_honour_the_affinity_of_the_process():
    out = run("""
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(_core.available_threads())
    """)
    assert out.strip() == "1"


def test_available_threads_honour_what_changes_between_calls_and_in_a_forked_child():
    out = run("""
        every = sorted(os.sched_getaffinity(0))
        counts = [_core.available_threads()]
        os.sched_setaffinity(0, every[:1])
        counts.append(_core.available_threads())
        os.sched_setaffinity(0, every)
        counts.append(_core.available_threads())
        child = os.fork()
        if child == 0:
            same = _core.available_threads() == counts[0]
            os.environ["OMP_NUM_THREADS"] = "1"
            os._exit(0 if same and _core.available_threads() == 1 else 1)
        print(counts[1] == 1, counts[2] == counts[0], os.waitpid(child, 0)[1])
    """)
    assert out.split() == ["True", "True", "0"]


@pytest.mark.parametrize("n_threads", [-5, 0, 10**6])
def test_any_number_of_threads_is_only_a_wish(n_threads):
    expected, result = np.empty((2, 20_000))
    _core.testing.normals(1, 2, 7, 0, 0, expected, 1)
    _core.testing.normals(1, 2, 7, 0, 0, result, n_threads)
    assert np.array_equal(result, expected)
