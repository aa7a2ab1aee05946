"""Python work side by side in threads."""

import signal
import threading
import time
from functools import partial

import numpy as np
import polars
import pytest

from sglb.threads import side_by_side

MANY = pytest.mark.parametrize("n_threads", [1, 2, 3, 9])


@MANY
def test_results_are_in_the_order_of_the_tasks(n_threads):
    def slow(number):
        time.sleep(0.001 * (5 - number))
        return number

    tasks = [partial(slow, number) for number in range(5)]
    assert side_by_side(tasks, n_threads) == [0, 1, 2, 3, 4]


@MANY
def test_the_first_task_runs_in_the_thread_of_the_caller(n_threads):
    assert side_by_side([threading.get_ident] * 4, n_threads)[0] == threading.get_ident()


def test_a_thread_that_is_done_takes_the_next_task():
    done = threading.Event()

    def last():
        done.set()

    # Two threads: one waits for the last task, so that the other must do all of the rest.
    side_by_side([lambda: done.wait(10), *[lambda: None] * 5, last], 2)
    assert done.is_set()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_comes_back_and_ends_the_others(failing):
    ended, before, begun = threading.Event(), threading.active_count(), []

    def task(number):
        begun.append(number)
        if number == failing:
            raise KeyError("lost")
        assert ended.wait(10)
        raise RuntimeError("cancelled")

    with pytest.raises(KeyError, match="lost"):
        side_by_side([partial(task, number) for number in range(5)], 3, ended.set)
    assert threading.active_count() == before
    assert set(begun) <= {0, 1, 2}


def test_no_task_begins_after_an_error():
    def fail():
        raise KeyError("lost")

    ended, begun = threading.Event(), []
    others = [partial(begun.append, number) for number in range(5)]
    with pytest.raises(KeyError, match="lost"):
        side_by_side([fail, partial(ended.wait, 10), *others], 2, ended.set)
    assert not begun


def test_an_error_in_a_single_thread_comes_back_at_once():
    begun = []
    with pytest.raises(ZeroDivisionError):
        side_by_side([lambda: 1 / 0, lambda: begun.append(1)], 1)
    assert not begun


def test_ctrl_c_ends_the_others_while_the_caller_waits_for_them():
    polars.DataFrame()  # installs a handler of SIGINT that restarts waits
    ended, before = threading.Event(), threading.active_count()
    waited = []
    main = threading.main_thread().ident
    timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))

    timer.start()
    with pytest.raises(KeyboardInterrupt):
        side_by_side([lambda: None, lambda: waited.append(ended.wait(60))], 2, ended.set)
    timer.join()
    assert waited == [True]
    assert threading.active_count() == before


@pytest.mark.parametrize("begins", [False, True])
def test_ctrl_c_while_a_thread_starts_leaves_none_at_work(monkeypatch, begins):
    start, before, waited = threading.Thread.start, threading.active_count(), []
    begun, ended = threading.Event(), threading.Event()

    def interrupted(thread):
        if begins:
            start(thread)
            assert begun.wait(60)
        raise KeyboardInterrupt

    def task():
        begun.set()
        waited.append(ended.wait(60))

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        side_by_side([lambda: None, task], 2, ended.set)
    assert waited == [True] * begins
    assert threading.active_count() == before


def test_threads_inherit_the_context_of_the_caller():
    with np.errstate(over="raise"):
        states = side_by_side([lambda: np.geterr()["over"]] * 3, 3)
    assert states == ["raise"] * 3


@pytest.mark.parametrize("n_started", [0, 1])
def test_where_the_system_gives_no_more_threads_those_there_are_do_the_work(monkeypatch, n_started):
    start, started = threading.Thread.start, []

    def few(thread):
        if len(started) == n_started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", few)
    tasks = [partial(int, number) for number in range(9)]
    assert side_by_side(tasks, 4) == list(range(9))
    assert len(started) == n_started
