"""Python work side by side in threads: kernels release the interpreter's lock."""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import chain
from threading import Thread
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

    numbers, others = [0], list[Thread]()
    try:
        for number in [next(waiting) for _ in range(n_threads - 1)]:
            thread = Thread(target=copy_context().run, args=(work, number))
            try:
                thread.start()
                others.append(thread)
            except RuntimeError:  # the system gives no more threads
                numbers.append(number)
        work(*numbers)
        for thread in others:
            thread.join()
    except BaseException as error:  # Ctrl-C, while the caller waits for the others
        fail(error)
        for thread in others:
            thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(tasks))]
