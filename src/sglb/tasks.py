"""Independent tasks where a joblib context has them run: in other processes, or on a cluster.

    with joblib.parallel_config(backend="loky", n_jobs=4): ...
    with joblib.parallel_config(backend="dask"): ...

Without such a context, and in one of threads, tasks run side by side in this process (`threads`).
"""

import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, wrap_non_picklable_objects
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from sglb import _core
from sglb.errors import portable
from sglb.threads import side_by_side

Result = TypeVar("Result")

# Times that a task is sent before it is given up.
ATTEMPTS = 3
# Errors outside a task that come again however often it is sent, such as a worker without sglb.
HOPELESS = ImportError, TypeError, AttributeError, LookupError, pickle.PickleError


class FailedTask(Exception):  # noqa: N818  # never seen by users: its error is
    """An error of a task itself, unlike its loss."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class LostTaskError(RuntimeError):
    """A task that was lost each time it was sent."""


def are_sent() -> bool:
    """Whether tasks run elsewhere: the joblib context has several workers that are not threads."""
    backend, n_jobs = get_active_backend()
    uses_threads = getattr(backend, "uses_threads", False)
    return not uses_threads and backend.effective_n_jobs(n_jobs) > 1


def run(tasks: Sequence[Callable[[], Result]], n_threads: int = 1) -> list[Result]:
    """Run tasks elsewhere if they are sent, else side by side in threads of this process."""
    return send(tasks) if are_sent() else side_by_side(tasks, n_threads)


def send(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run tasks elsewhere; return their results in the tasks' order.

    What several tasks refer to travels once. No task shares an object with another or with the
    caller. The first error of a task ends all and is raised; a task that gets lost, with the
    process or the worker that ran it, is sent again.
    """
    packed, results = _packed(tasks), dict[int, NDArray[np.uint8]]()
    # Where results come one by one, those before a loss are kept.
    backend, _ = get_active_backend()
    return_as = "generator_unordered" if backend.supports_return_generator else "list"
    for left in reversed(range(ATTEMPTS)):
        missing = [number for number in range(len(tasks)) if number not in results]
        run = Parallel(return_as=return_as, batch_size=1, pre_dispatch="all")
        try:
            for number, result in run(delayed(_result)(packed, number) for number in missing):
                results[number] = result
        except FailedTask as failed:
            raise failed.error from None
        except HOPELESS:
            raise
        except Exception as lost:
            if not left:
                raise LostTaskError(
                    f"{len(tasks) - len(results)} of {len(tasks)} tasks were lost {ATTEMPTS} times,"
                    " perhaps for lack of memory where they ran; use fewer workers, or fit without"
                    " the joblib context"
                ) from lost
        else:
            break
    return [pickle.loads(results[number].data) for number in range(len(tasks))]


def threads_here(n_threads: int) -> int:
    """Return how many of the caller's threads a task has where it runs.

    joblib and Dask divide the cores among tasks by the variable OMP_NUM_THREADS.
    """
    return min(n_threads, _core.available_threads())


def _packed(tasks: Sequence[Callable[[], Any]]) -> NDArray[np.uint8]:
    """Return tasks as bytes: an array, which joblib's backends send to each worker once."""
    portable = wrap_non_picklable_objects(list(tasks), keep_wrapper=False)
    try:
        return np.frombuffer(pickle.dumps(portable), dtype=np.uint8)
    except Exception as error:
        raise TypeError(
            f"what is trained cannot be sent to the workers of a joblib context: {error}. Make your"
            " loss, sampler or metric an object that can be pickled, or fit without the context"
        ) from error


def _result(packed: NDArray[np.uint8], number: int) -> tuple[int, NDArray[np.uint8]]:
    """Run a task; return its number and its result as bytes, so that no other error is in them."""
    try:
        result = pickle.loads(packed.data)[number]()
        return number, np.frombuffer(pickle.dumps(result, pickle.HIGHEST_PROTOCOL), np.uint8)
    except Exception as error:
        error.add_note(f"In a task of a joblib context:\n{traceback.format_exc()}")
        raise FailedTask(portable(error)) from None
