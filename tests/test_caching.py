"""Attributes that are computed once, whatever other threads and processes compute."""

import os
import signal
import threading
from pathlib import Path

import sglb
from sglb.caching import cached_property


class Slow:
    def __init__(self, wait=lambda: None):
        self.wait, self.n_computed = wait, 0

    @cached_property
    def answer(self):
        """The answer."""
        self.n_computed += 1
        self.wait()
        return [42]


def test_it_is_computed_once():
    slow = Slow()
    assert slow.answer is slow.answer
    assert slow.n_computed == 1
    assert Slow.answer.__doc__ == "The answer."


def test_a_fork_while_another_thread_computes_does_no_harm():
    begun, end = threading.Event(), threading.Event()

    def wait():
        begun.set()
        end.wait(60)

    thread = threading.Thread(target=lambda: Slow(wait).answer)
    thread.start()
    assert begun.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for a thread that it does not have
        os._exit(0 if Slow().answer == [42] else 1)
    status = os.waitpid(child, 0)[1]
    end.set()
    thread.join()
    assert status == 0


def test_nothing_uses_the_one_with_a_lock():
    files = [p for p in Path(sglb.__file__).parent.rglob("*.py") if p.name != "caching.py"]
    users = [p.read_text() for p in files if "cached_property" in p.read_text()]
    assert len(users) > 10
    assert all("from sglb.caching import cached_property" in text for text in users)
