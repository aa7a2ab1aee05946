"""Python work side by side in threads: kernels release the interpreter's lock."""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from itertools import chain
from threading import Event, Lock, Thread
from typing import TypeVar

Result = TypeVar("Result")


def side_by_side(
    tasks: Sequence[Callable[[], Result]],
    n_threads: int,
    cancel: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Run tasks in up to `n_threads` threads; return their results in the tasks' order.

    The caller's thread takes the first task, and a thread that is done takes the next one. After an
    error no task begins, `cancel` is called to end those that run, and the error is raised when
    all of them have ended. Threads inherit the caller's context, such as np.errstate. Where the
    system gives no more threads, those that there are do all the work.
    """
    n_threads = min(n_threads, len(tasks))
    if n_threads <= 1:
        return [task() for task in tasks]
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    waiting = iter(range(1, len(tasks)))  # next() of it is atomic

    def fail(error: BaseException) -> None:
        errors.append(error)
        cancel()

    def work(*first: int) -> None:
        try:
            for number in chain(first, waiting):
                if errors:
                    break
                results[number] = tasks[number]()
        except BaseException as error:
            fail(error)

    numbers, others = [0], list[_Helper]()
    try:
        for number in [next(waiting) for _ in range(n_threads - 1)]:
            others.append(_Helper(partial(work, number)))
            try:
                others[-1].thread.start()
            except RuntimeError:  # the system gives no more threads
                others.pop()
                numbers.append(number)
        work(*numbers)
        for other in others:
            other.wait()
    except BaseException as error:  # Ctrl-C, while the caller starts the others or waits for them
        fail(error)
        for other in others:
            other.wait_unless_idle()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(tasks))]


class _Helper:
    """A thread beside the caller's, whose end is certain after an interrupted wait.

    A Thread.join that Ctrl-C interrupts takes the thread for ended in Python 3.11 and 3.12, and
    an interrupted Thread.start may or may not have started it: hence an event and a lock.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._claim, self._end = Lock(), Event()
        self.thread = Thread(target=copy_context().run, args=(self._run, work))

    def _run(self, work: Callable[[], None]) -> None:
        if self._claim.acquire(blocking=False):
            try:
                work()
            finally:
                self._end.set()

    def wait(self) -> None:
        """Wait until the work is done and the thread has ended."""
        # Polars handles SIGINT so that a wait without end is not interrupted by Ctrl-C.
        while not self._end.wait(timeout=0.1):
            pass
        self.thread.join()

    def wait_unless_idle(self) -> None:
        """Wait until begun work is done; work that has not begun never will."""
        if not self._claim.acquire(blocking=False):
            self.wait()
