"""Python work side by side in threads: kernels release the interpreter's lock."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
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
    all of them have ended. Threads inherit the caller's context, such as np.errstate.
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

    def work(number: int | None) -> None:
        try:
            while number is not None and not errors:
                results[number] = tasks[number]()
                number = next(waiting, None)
        except BaseException as error:
            fail(error)

    with ThreadPoolExecutor(n_threads - 1) as pool:
        try:
            starts = [next(waiting) for _ in range(n_threads - 1)]
            futures = [pool.submit(copy_context().run, work, number) for number in starts]
            work(0)
            for future in futures:
                future.result()
        except BaseException as error:  # Ctrl-C, while the caller waits for the others
            fail(error)
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(tasks))]
