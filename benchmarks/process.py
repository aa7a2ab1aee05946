"""Time and memory of this process."""

import ctypes
import gc
import time
from typing import NamedTuple

SHORT = 0.05  # seconds; a shorter call is noise unless it is repeated
TIMES = 5


class Cost(NamedTuple):
    seconds: float  # wall clock
    cpu_seconds: float  # of all threads
    memory: int | None = None  # bytes at the peak above what was there before


def timed(call):
    """The value of a call and what it cost."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return value, Cost(time.perf_counter() - wall, time.process_time() - cpu)


def timed_with_memory(call):
    """As `timed`, with the peak of memory during the call above the memory before it."""
    gc.collect()
    _give_back_memory()
    before = _status("VmRSS")
    reset = _reset_peak()
    value, cost = timed(call)
    memory = max(0, _status("VmHWM") - before) if reset else None
    return value, cost._replace(memory=memory)


def least(call, cost=None, short=SHORT, times=TIMES):
    """The cheapest of several calls if the call is short; `cost` is that of a call made before."""
    best = timed(call)[1] if cost is None else cost
    if best.seconds < short:
        for _ in range(times - 1):
            again = timed(call)[1]
            if again.seconds < best.seconds:
                best = again._replace(memory=best.memory)
    return best


def least_in_turn(*calls, seconds=2.0):
    """The cheapest of several calls of each, made in turn: to compare them in the same minutes."""
    best, rounds, end = [], 0, time.perf_counter() + seconds
    while rounds < TIMES or time.perf_counter() < end:
        costs = [timed(call)[1] for call in calls]
        best = costs if not best else list(map(min, best, costs))
        rounds += 1
    return best


def _status(field):
    """A line of /proc/self/status in bytes."""
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return 1024 * int(line.split()[1])
    raise OSError(f"/proc/self/status has no {field}")


def _reset_peak():
    """Make the peak of resident memory what is resident now; False where that is forbidden."""
    try:
        with open("/proc/self/clear_refs", "w") as handle:
            handle.write("5")
    except OSError:
        return False
    return True


def _give_back_memory():
    # Freed memory that malloc keeps would hide the next call's first megabytes.
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
