"""A fuzzer of model files, guided by which lines of the reader an input reaches (atheris).

    make fuzz                     # ten minutes from the kept inputs; new ones go to build/fuzz
    make fuzz SECONDS=36000

An input is the choices by which `damage.forgery` changes a kept file, whose digest is made to fit.
What `damage.verdict` raises is a crash; the input is written to build/fuzz-crash-*.
"""

import inspect
import sys

import atheris

import damage
from sglb import archive
from sglb.archive import arguments, blobs, container, draws, parts, validation
from sglb.categories import storage
from sglb.checkpoints import snapshot

READERS = (
    archive, arguments, blobs, container, draws, parts, snapshot, storage, validation,
)  # fmt: skip
# The fuzzer's own memory, 64 kB of counters, comes on top of the reader's.
LIMIT = 256 << 20


def judge(choices):
    """Judge the file that some bytes choose."""
    damage.verdict(*damage.forgery(choices))


def main():
    for name, data in damage.seeds().items():
        damage.verdict(data, name[name.rindex(".") :])  # imports what there is to import
    for module in READERS:
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                atheris.instrument_func(function)
    damage.limit_memory(LIMIT)
    atheris.Setup(
        [*sys.argv, "-max_len=64", "-len_control=0", "-timeout=10", "-rss_limit_mb=0"], judge
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
