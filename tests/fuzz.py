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
# What a file may cost beside the fuzzer's own memory, which grows with the inputs that it keeps.
LIMIT = 256 << 20


def judge(choices):
    """Judge the file that some bytes choose."""
    forged = damage.forgery(choices)
    damage.limit_memory(LIMIT)
    damage.verdict(*forged)
    damage.limit_memory(None)


def main():
    for name, data in damage.seeds().items():
        damage.verdict(data, name[name.rindex(".") :])  # imports what there is to import
    for module in READERS:
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                atheris.instrument_func(function)
    atheris.Setup(
        [*sys.argv, "-max_len=64", "-len_control=0", "-timeout=10", "-rss_limit_mb=0"], judge
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
