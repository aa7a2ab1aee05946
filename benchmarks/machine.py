"""Where numbers were measured: machine, versions, how busy it was."""

import hashlib
import os
import platform
import resource
import statistics
import subprocess
import threading
import time
from datetime import date
from importlib import metadata
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent


def facts(packages):
    """Machine, versions of the packages that are installed, commit."""
    versions = {name: number for name in packages if (number := _version(name))}
    return {
        "machine": f"{_processor()}, {_cores()} cores, {_memory():.0f} GiB, {platform.platform()}",
        "versions": {"Python": platform.python_version()} | versions,
        "commit": f"{date.today().isoformat()}, commit {commit()}",
        "two_threads": two_threads(),
    }


def lines(several):
    """Markdown of the facts of one run or of several."""
    versions = {}
    for single in several:
        versions |= single["versions"]
    speeds = sorted({f"{single['two_threads']:.2f}" for single in several})
    factor = " to ".join(dict.fromkeys((speeds[0], speeds[-1])))
    return [
        *dict.fromkeys(f"- {single['machine']}" for single in several),
        "- " + ", ".join(f"{name} {number}" for name, number in versions.items()),
        *dict.fromkeys(f"- {single['commit']}" for single in several),
        f"- two threads compute {factor} times as fast as one: no library can scale better",
    ]


def describe(packages):
    """Lines of Markdown about this machine."""
    return lines([facts(packages)])


def two_threads(repeats=15):
    """How much faster two threads are than one at arithmetic without memory, the median.

    Cores of a virtual machine may be two threads of one real core, so that the answer need not be
    2. No library can scale better than this.
    """
    data = bytes(1 << 22)

    def seconds(n_threads):
        threads = [threading.Thread(target=hashlib.blake2b, args=(data,)) for _ in range(n_threads)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start

    seconds(2)
    return statistics.median(2.0 * seconds(1) / seconds(2) for _ in range(repeats))


class Others:
    """Cores that anything but our own child processes kept busy while the block ran."""

    def __enter__(self):
        self._start = self._now()
        return self

    def __exit__(self, *_):
        seconds, busy, this_process = (b - a for a, b in zip(self._start, self._now(), strict=True))
        self.cores = max(0.0, (busy - this_process) / seconds)

    @staticmethod
    def _now():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        first = Path("/proc/stat").read_text().splitlines()[0].split()
        # user nice system idle iowait irq softirq steal, in ticks
        ticks = sum(int(first[position]) for position in (1, 2, 3, 6, 7, 8))
        busy = ticks / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy, usage.ru_utime + usage.ru_stime


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor():
    fields = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = fields.get("flags", "").split()
    vectors = [name for name in ("avx2", "avx512f") if name in flags]
    return " ".join([fields.get("model name", platform.machine()), *vectors])


def _cores():
    return len(os.sched_getaffinity(0))


def _memory():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def commit():
    """The commit, and whether what runs differs from it; the pages that are written may."""
    name = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return f"{name or 'unknown'}{'-dirty' if changed else ''}"


def _git(*arguments):
    """What Git answers; nothing without Git or outside a repository."""
    call = ["git", "-C", str(REPOSITORY), *arguments]
    try:
        return subprocess.run(call, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""
